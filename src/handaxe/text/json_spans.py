"""The positions of parts of a JSON document, so that one can be replaced and the rest kept.

Only the requested level is read closely; deeper levels are skipped by their brackets and checked
when they are parsed. Positions count bytes. This does not validate the document.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

_BLANKS = re.compile(rb"[ \t\r\n]*")
_COMMA = re.compile(rb"[ \t\r\n]*(,?)[ \t\r\n]*")
_SHORT = re.compile(rb'"[^"\\]{0,500}(?:\\.[^"\\]{0,500}){0,20}"', re.DOTALL)
# The next bracket, past any strings and scalars before it; or the opening quote of a string that is
# long or full of escapes, which is better looked through in another way.
_BRACKET = re.compile(
    rb'[^"\[\]{}]*(?:"[^"\\]{0,500}(?:\\.[^"\\]{0,500}){0,20}"[^"\[\]{}]*){0,200}(["\[\]{}])',
    re.DOTALL,
)
_WHOLE = re.compile(rb'(?:[^"\\]{1,500}|\\u[0-9a-fA-F]{4}|\\[^u]){0,100000}', re.DOTALL)
# Places that are not inside an escape: where a run of backslashes begins, or six bytes behind one.
_BETWEEN = re.compile(rb"(?<=[^\\])(?=\\)|(?<=[^\\]{6})", re.DOTALL)
_ESCAPES = re.compile(rb'(?:\\.[^"\\]*){1,500}', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\[\]{}\"]+")

Span = tuple[int, int]


class MalformedJson(Exception):
    """The bytes are not JSON, or not of the kind that was expected."""


def find_document(data: bytes) -> Span:
    """The one value of a document, with a byte order mark before it or not."""
    start = _skip_blanks(data, 3 if data.startswith(b"\xef\xbb\xbf") else 0)
    end = _find_value_end(data, start)
    if _skip_blanks(data, end) != len(data):
        raise MalformedJson(f"there is something behind its end, at byte {end:,}")
    return start, end


def find_members(data: bytes, span: Span) -> dict[str, Span]:
    """The members of the object at `span`, in order; of two with one name the later one counts."""
    found: dict[str, Span] = {}
    at = _skip_opening(data, span, b"{")
    while data[at : at + 1] != b"}":
        if data[at : at + 1] != b'"':
            raise MalformedJson(f"a name is missing at byte {at:,}")
        end = _find_string_end(data, at)
        colon = _skip_blanks(data, end)
        if data[colon : colon + 1] != b":":
            raise MalformedJson(f"a colon is missing at byte {colon:,}")
        value = _skip_blanks(data, colon + 1)
        name, end = parse_value(data, (at, end)), _find_value_end(data, value)
        found[name] = (value, end)
        at = _find_next_item(data, end, b"}")
    return found


def list_items(data: bytes, span: Span) -> list[Span]:
    """The items of the array at `span`."""
    return list(walk_items(data, span))


def walk_items(data: bytes, span: Span) -> Iterator[Span]:
    """The items of the array at `span`, one by one, for there may be millions."""
    at = _skip_opening(data, span, b"[")
    while data[at : at + 1] != b"]":
        end = _find_value_end(data, at)
        yield at, end
        at = _find_next_item(data, end, b"]")


def parse_value(data: bytes, span: Span) -> Any:  # noqa: ANN401 - JSON is what it is
    """The value at `span`, parsed."""
    try:
        return json.loads(str(memoryview(data)[slice(*span)], "utf-8"))
    except (ValueError, RecursionError) as error:
        raise MalformedJson(f"byte {span[0]:,} and on: {_shorten_error(error)}") from None


def parse_string_ends(data: bytes, span: Span, head_bytes: int, tail_bytes: int) -> tuple[str, str]:
    """How a long string begins and how it ends, without making all of it."""
    begin, end = span[0] + 1, span[1] - 1
    head = _WHOLE.match(data, begin, min(end, begin + head_bytes))
    start = _BETWEEN.search(data, max(begin, end - tail_bytes), end)
    first = str(memoryview(data)[begin : head.end() if head else begin], "utf-8", "ignore")
    last = str(memoryview(data)[start.end() if start else end : end], "utf-8", "ignore")
    try:
        return json.loads(f'"{first}"'), json.loads(f'"{last}"')
    except ValueError as error:
        raise MalformedJson(f"byte {begin:,} and on: {error}") from None


def _skip_opening(data: bytes, span: Span, bracket: bytes) -> int:
    """Behind the opening bracket and the blanks after it."""
    if data[span[0] : span[0] + 1] != bracket:
        kind = "an object" if bracket == b"{" else "a list"
        raise MalformedJson(f"{kind} is missing at byte {span[0]:,}")
    return _skip_blanks(data, span[0] + 1)


def _find_next_item(data: bytes, at: int, closing: bytes) -> int:
    """Where the next item begins, or the closing bracket stands."""
    match = _COMMA.match(data, at)
    behind = match.end() if match else at
    is_last = data[behind : behind + 1] == closing
    if is_last == bool(match and match[1]):
        raise MalformedJson(f"a comma is missing or too many at byte {at:,}")
    return behind


def _find_value_end(data: bytes, at: int) -> int:
    """Behind the value that begins at `at`."""
    first = data[at : at + 1]
    if first == b'"':
        short = _SHORT.match(data, at)
        return short.end() if short else _find_string_end(data, at)
    if first not in (b"{", b"["):
        match = _SCALAR.match(data, at)
        if match is None:
            raise MalformedJson(f"a value is missing at byte {at:,}")
        return match.end()
    depth = 0
    while match := _BRACKET.match(data, at):
        bracket, at = match[1], match.end()
        if bracket in (b"{", b"["):
            depth += 1
        elif bracket != b'"':
            depth -= 1
            if not depth:
                return at
        else:
            at = _find_string_end(data, at - 1)
    raise MalformedJson("it ends too early")


def _find_string_end(data: bytes, at: int) -> int:
    """Behind the closing quote of the string that opens at `at`."""
    at, quote = at + 1, -1
    while True:
        if quote < at:
            quote = data.find(b'"', at)
        escape = data.find(b"\\", at, quote) if quote >= 0 else -1
        if escape < 0:
            break
        escapes = _ESCAPES.match(data, escape)
        at = escapes.end() if escapes else len(data)
    if quote < 0:
        raise MalformedJson("a string has no end")
    return quote + 1


def _skip_blanks(data: bytes, at: int) -> int:
    match = _BLANKS.match(data, at)
    return match.end() if match else at


def _shorten_error(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
