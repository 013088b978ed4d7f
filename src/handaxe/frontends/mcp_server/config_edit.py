"""Edit one value of a settings file of another program; all other text stays.

Editors allow comments and trailing commas in their JSON, so the text is edited in place instead of
parsed and rewritten.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_BLANKS = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_PLAIN = re.compile(r"[^\s,\]}\"{\[/]+")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class ConfigEditError(Exception):
    """The text cannot be edited; it is unchanged."""


class _Member(NamedTuple):
    start: int
    end: int


class _Object(NamedTuple):
    members: dict[str, _Member]
    last_end: int
    """The position after the last member or the opening brace."""
    has_comma: bool
    """Whether a comma follows the last member."""


def put_json(text: str, path: Sequence[str], value: object) -> str:
    """The text with the value at the path; missing objects are added."""
    if not text.strip():
        text = "{}\n"
    step = _detect_indent(text)
    at = _skip(text, 0)
    for depth, name in enumerate(path):
        found = _read_object(text, at)
        member = found.members.get(name)
        if member is None:
            return _insert(text, found, path[depth:], value, depth, step)
        at = member.start
        if depth == len(path) - 1:
            if _is_written(text[at : member.end], value):
                return text
            return text[:at] + _dump_value(value, depth + 1, step) + text[member.end :]
    raise ConfigEditError("the path is empty")


def drop_json(text: str, path: Sequence[str]) -> str:
    """The text without the member at the path; unchanged if it has no such member."""
    at = _skip(text, 0)
    for depth, name in enumerate(path):
        if not text.strip():
            return text
        found = _read_object(text, at)
        member = found.members.get(name)
        if member is None:
            return text
        if depth == len(path) - 1:
            return _remove_member(text, found, name)
        at = member.start
    raise ConfigEditError("the path is empty")


def _remove_member(text: str, within: _Object, name: str) -> str:
    """The text without one member, its comma and its line."""
    member = within.members[name]
    start = text.rfind(json.dumps(name, ensure_ascii=False), 0, member.start)
    if start < 0:
        raise ConfigEditError(f"{name!r} is written in a form that handaxe cannot edit")
    end = _skip(text, member.end)
    is_last = text[end : end + 1] != ","
    before = text[:start].rstrip()
    if is_last:
        return before.removesuffix(",") + text[member.end :]
    tail = text[end + 1 :]
    return before + tail


def _is_written(text: str, value: object) -> bool:
    try:
        return json.loads(text) == value
    except ValueError:
        return False


def _insert(
    text: str, into: _Object, path: Sequence[str], value: object, depth: int, step: str
) -> str:
    for name in reversed(path[1:]):
        value = {name: value}
    margin = "\n" + step * (depth + 1)
    entry = f"{json.dumps(path[0])}: {_dump_value(value, depth + 1, step)}"
    comma = "," if into.members and not into.has_comma else ""
    at = into.last_end
    rest = text[at + 1 :] if into.has_comma else text[at:]
    kept = "," if into.has_comma else comma
    closing = "" if into.members else "\n" + step * depth
    tail = rest if into.members else rest.lstrip(" \t\r\n")
    return f"{text[:at]}{kept}{margin}{entry}{closing}{tail}"


def _dump_value(value: object, depth: int, step: str) -> str:
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", "\n" + step * depth)


def _detect_indent(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found and len(found[1]) <= 8 else "  "


def _read_object(text: str, at: int) -> _Object:
    if text[at : at + 1] != "{":
        raise ConfigEditError("expected an object")
    members: dict[str, _Member] = {}
    last_end, has_comma = at + 1, False
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        name = _STRING.match(text, at)
        if name is None:
            raise ConfigEditError("expected a quoted name in an object")
        at = _skip(text, name.end())
        if text[at : at + 1] != ":":
            raise ConfigEditError("expected a colon after a name")
        start = _skip(text, at + 1)
        last_end = _find_value_end(text, start)
        members[json.loads(name[0])] = _Member(start, last_end)
        at = _skip(text, last_end)
        has_comma = text[at : at + 1] == ","
        if has_comma:
            last_end = at
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "}":
            raise ConfigEditError("an object does not end")
    return _Object(members, last_end, has_comma)


def _find_value_end(text: str, at: int) -> int:
    """The position after the value that starts here."""
    open_brackets = 0
    while True:
        at = _skip(text, at)
        sign = text[at : at + 1]
        if sign == "":
            raise ConfigEditError("the text ends inside a value")
        if sign in "{[":
            open_brackets += 1
            at += 1
        elif sign in "}]":
            open_brackets -= 1
            at += 1
        elif sign in ",:":
            at += 1
        else:
            found = _STRING.match(text, at) or _PLAIN.match(text, at)
            if found is None:
                raise ConfigEditError("invalid value")
            at = found.end()
        if open_brackets == 0:
            return at
        if open_brackets < 0:
            raise ConfigEditError("missing value")


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def put_toml(text: str, table: Sequence[str], values: dict[str, Any]) -> str:
    """The text with these keys in a table of strings and lists of strings."""
    header = f"[{'.'.join(_quote_key(part) for part in table)}]"
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    rows = text.splitlines()
    spellings = {header, f"[{'.'.join(table)}]"}
    at = next((n for n, row in enumerate(rows) if row.partition("#")[0].strip() in spellings), None)
    if at is None:
        gap = [""] if rows and rows[-1].strip() else []
        return "\n".join([*rows, *gap, header, *lines]) + "\n"
    end = next((n for n in range(at + 1, len(rows)) if rows[n].lstrip().startswith("[")), len(rows))
    kept = [row for row in rows[at + 1 : end] if row.partition("=")[0].strip() not in values]
    return "\n".join([*rows[: at + 1], *lines, *kept, *rows[end:]]) + "\n"


def _quote_key(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)
