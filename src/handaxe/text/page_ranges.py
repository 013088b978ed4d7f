"""Pages as people write them: `3`, `1-5`, `2-4,7`, `12-`."""

import re
from collections.abc import Iterable

Range = tuple[int, int | None]

_RANGE = re.compile(r"(\d{1,9})(?:\s*(-)\s*(\d{1,9})?)?")


class BadRange(ValueError):
    """The text names no pages."""


def parse_pages(text: str) -> tuple[Range, ...]:
    """The ranges in `text`, as they were written.

    Raises:
        BadRange: A part of it is not a page or a range.
    """
    ranges: list[Range] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip().replace("–", "-"))
        if match is None:
            raise BadRange(f"{part.strip()!r} is not a page or a range")
        first = int(match[1])
        last = int(match[3]) if match[3] else None if match[2] else first
        if first < 1 or (last is not None and last < first):
            raise BadRange(f"{part.strip()!r} is not a range: pages count from 1 upwards")
        ranges.append((first, last))
    return tuple(ranges)


def count_pages(ranges: Iterable[Range]) -> int:
    """How many pages closed ranges hold; one without an end counts as one page."""
    spans = sorted((first, first if last is None else last) for first, last in ranges)
    total, done = 0, 0
    for first, last in spans:
        total += max(0, last - max(first, done + 1) + 1)
        done = max(done, last)
    return total


def pick_pages(ranges: Iterable[Range], total: int, limit: int) -> list[int]:
    """The existing pages in `ranges`, in order and each once, `limit` of them at most."""
    spans = sorted((first, total if last is None else min(last, total)) for first, last in ranges)
    picked: list[int] = []
    for first, last in spans:
        begin = max(first, picked[-1] + 1 if picked else 1)
        picked += range(begin, min(last, begin + limit - len(picked) - 1) + 1)
    return picked
