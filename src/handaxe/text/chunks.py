"""Process long text in chunks, so that other threads can run in between.

Most functions on text hold the interpreter until they finish. On 26 MB that delays all other
threads noticeably; on a chunk it does not.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, AnyStr, cast

import msgspec

CHUNK = 1 << 18
"""Number of characters or bytes per chunk."""
LONG = 1 << 19
"""Longer texts are worked on in chunks, and in a thread where that is possible."""

_TURN_S = 0.0001
_MOST_VALUES = 64
_MANY_VALUES = 10_000


def yield_turn() -> None:
    """Let other threads have the interpreter; nothing happens in the thread of an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # To give it up without a pause would mean to take it again before anybody woke.
        time.sleep(_TURN_S)


def is_long(value: object, depth: int = 4) -> bool:
    """Whether a value seems to hold a long text or many values, by a quick check."""
    kind = value.__class__
    if kind is dict and depth:
        for one in cast("dict[object, object]", value).values():
            if one.__class__ is str:
                if len(cast("str", one)) > LONG:
                    return True
            elif (one.__class__ is list or one.__class__ is dict) and is_long(one, depth - 1):
                return True
        return False
    if kind is list and depth:
        return _has_long_member(cast("list[object]", value), depth)
    return kind is str and len(cast("str", value)) > LONG


def _has_long_member(values: list[object], depth: int) -> bool:
    if len(values) <= _MOST_VALUES:
        return any(is_long(one, depth - 1) for one in values)
    if len(values) > _MANY_VALUES:
        return True
    return sum(len(one) for one in values if isinstance(one, str)) > LONG


def split_chunks(text: AnyStr) -> Iterator[AnyStr]:
    """The text in chunks, with a turn for others after each."""
    if len(text) <= CHUNK:
        yield text
        return
    for start in range(0, len(text), CHUNK):
        yield text[start : start + CHUNK]
        yield_turn()


def encode_chunks(text: str) -> list[bytes]:
    """A text as UTF-8, in pieces."""
    return [chunk.encode() for chunk in split_chunks(text)]


def find_in_chunks(text: AnyStr, needle: AnyStr, begin: int = 0, end: int | None = None) -> int:
    """Like `text.find(needle, begin, end)`; positions count from the beginning."""
    size = len(text)
    end = size if end is None or end > size else end
    if end - begin <= LONG:
        return text.find(needle, begin, end)
    beyond = max(0, len(needle) - 1)
    for start in range(begin, end, CHUNK):
        found = text.find(needle, start, min(start + CHUNK + beyond, end))
        if found >= 0:
            return found
        yield_turn()
    return -1


def count_in_chunks(text: AnyStr, needle: AnyStr, begin: int, end: int) -> int:
    """Like `text.count(needle, begin, end)`; positions count from the beginning."""
    if end - begin <= LONG or len(needle) > 1:
        # What a chunk counts of a longer one depends on the chunk before.
        return text.count(needle, begin, end)
    count = 0
    for start in range(begin, min(end, len(text)), CHUNK):
        count += text.count(needle, start, min(start + CHUNK, end))
        yield_turn()
    return count


def replace_long_texts(value: Any, mark: Callable[[str], str]) -> Any:  # noqa: ANN401
    """JSON data with a mark in place of every long text."""
    kind = value.__class__
    if kind is str:
        return mark(value) if len(value) > LONG else value
    if kind is dict and is_long(value):
        pairs = cast("dict[Any, Any]", value).items()
        return {name: replace_long_texts(one, mark) for name, one in pairs}
    if kind is list and is_long(value):
        return [replace_long_texts(one, mark) for one in cast("list[Any]", value)]
    return value


def put_long_texts(encoded: bytes, texts: Mapping[str, str]) -> list[bytes]:
    """JSON in pieces, with long texts in the places of their marks."""
    pieces: list[bytes] = []
    done = 0
    for place, mark in sorted((encoded.find(f'"{mark}"'.encode()), mark) for mark in texts):
        pieces.append(encoded[done : place + 1])
        pieces += [msgspec.json.encode(chunk)[1:-1] for chunk in split_chunks(texts[mark])]
        done = place + 1 + len(mark)
    return [*pieces, encoded[done:]]
