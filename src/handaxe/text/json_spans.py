"""Where the parts of a JSON document stand, so that one can be replaced and the rest left alone.

Only the level that is asked for is looked at closely; what lies deeper is skipped by its brackets
and checked when it is parsed. Positions count bytes. This is no validator.
"""

import json
import re
from typing import Any

_BLANKS = re.compile(rb"[ \t\r\n]*")
# Short strings without escapes are taken whole; of others only the opening quote.
_TOKEN = re.compile(rb'"[^"\\]{0,200}"|["\[\]{}]')
_SCALAR = re.compile(rb"[^\s,\[\]{}\"]+")

Span = tuple[int, int]


class BadJson(Exception):
    """The bytes are not JSON, or not of the kind that was expected."""


def document(data: bytes) -> Span:
    """The one value of a document, with a byte order mark before it or not."""
    start = _skip_blanks(data, 3 if data.startswith(b"\xef\xbb\xbf") else 0)
    end = _end_of(data, start)
    if _skip_blanks(data, end) != len(data):
        raise BadJson(f"there is something behind its end, at byte {end:,}")
    return start, end


def members(data: bytes, span: Span) -> dict[str, Span]:
    """The members of the object at `span`, in order; of two with one name the later one counts."""
    found: dict[str, Span] = {}
    at = _opened(data, span, b"{")
    while data[at : at + 1] != b"}":
        if data[at : at + 1] != b'"':
            raise BadJson(f"a name is missing at byte {at:,}")
        end = _string_end(data, at)
        colon = _skip_blanks(data, end)
        if data[colon : colon + 1] != b":":
            raise BadJson(f"a colon is missing at byte {colon:,}")
        value = _skip_blanks(data, colon + 1)
        name, end = value_at(data, (at, end)), _end_of(data, value)
        found[name] = (value, end)
        at = _next(data, end, b"}")
    return found


def items(data: bytes, span: Span) -> list[Span]:
    """The items of the array at `span`."""
    found: list[Span] = []
    at = _opened(data, span, b"[")
    while data[at : at + 1] != b"]":
        found.append((at, _end_of(data, at)))
        at = _next(data, found[-1][1], b"]")
    return found


def value_at(data: bytes, span: Span) -> Any:  # noqa: ANN401 - JSON is what it is
    """The value at `span`, parsed."""
    try:
        return json.loads(str(memoryview(data)[slice(*span)], "utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadJson(f"byte {span[0]:,} and on: {_short(error)}") from None


def _opened(data: bytes, span: Span, bracket: bytes) -> int:
    """Behind the opening bracket and the blanks after it."""
    if data[span[0] : span[0] + 1] != bracket:
        kind = "an object" if bracket == b"{" else "a list"
        raise BadJson(f"{kind} is missing at byte {span[0]:,}")
    return _skip_blanks(data, span[0] + 1)


def _next(data: bytes, at: int, closing: bytes) -> int:
    """Where the next item begins, or the closing bracket stands."""
    at = _skip_blanks(data, at)
    if data[at : at + 1] == closing:
        return at
    behind = _skip_blanks(data, at + 1)
    if data[at : at + 1] != b"," or data[behind : behind + 1] == closing:
        raise BadJson(f"a comma is missing or too many at byte {at:,}")
    return behind


def _end_of(data: bytes, at: int) -> int:
    """Behind the value that begins at `at`."""
    first = data[at : at + 1]
    if first == b'"':
        return _string_end(data, at)
    if first not in (b"{", b"["):
        match = _SCALAR.match(data, at)
        if match is None:
            raise BadJson(f"a value is missing at byte {at:,}")
        return match.end()
    depth = 0
    while match := _TOKEN.search(data, at):
        token, at = match[0], match.end()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if not depth:
                return at
        elif token == b'"':
            at = _string_end(data, at - 1)
    raise BadJson("it ends too early")


def _string_end(data: bytes, at: int) -> int:
    """Behind the closing quote of the string that opens at `at`."""
    while (at := data.find(b'"', at + 1)) >= 0:
        before = at
        while data[before - 1] == 0x5C:
            before -= 1
        if (at - before) % 2 == 0:
            return at + 1
    raise BadJson("a string has no end")


def _skip_blanks(data: bytes, at: int) -> int:
    match = _BLANKS.match(data, at)
    return match.end() if match else at


def _short(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
