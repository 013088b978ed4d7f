"""Numbered lines, and previews of texts that are too long to show."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import AnyStr, Literal

LineFormat = Literal["arrow", "tab"]
PREVIEW_CHARS = 2_000

_SPLIT_CHARS = 1 << 16
"""Up to here splitting the whole text costs less than looking for a part of it."""


def number_lines(lines: Sequence[str], first: int, style: LineFormat = "arrow") -> str:
    """The lines with their numbers, as the model sees them."""
    count = len(lines)
    # Prefixes and lines in turn, joined once: a third of the time of joining line by line.
    parts = [""] * (2 * count)
    parts[0::2] = _build_prefixes(first, count, style)
    parts[1::2] = lines
    return "".join(parts)


def split_lines(text: str, line_break: str | None = None) -> list[str]:
    """The lines of a text without their endings; only LF, CRLF, or CR where there is no LF.

    `line_break` says which it is for a part of a text that may not hold one itself.
    """
    if not text:
        return []
    line_break = line_break or detect_line_break(text)
    lines = text.split(line_break)
    # What stands behind the last break is a line only if there is something, and has no ending.
    last = lines.pop()
    if line_break == "\n" and "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return [*lines, last] if last else lines


def slice_lines(text: str, offset: int, limit: int) -> tuple[list[str], int, int]:
    """Some lines, the number of the first of them, and how many there are in all.

    A negative offset counts from the end. Lines outside the window are counted, not made.
    """
    if len(text) <= _SPLIT_CHARS:
        lines = split_lines(text)
        first = max(1, len(lines) + offset + 1) if offset < 0 else offset
        return lines[first - 1 : first - 1 + limit], first, len(lines)
    line_break = detect_line_break(text)
    total = text.count(line_break) + (not text.endswith(line_break))
    first = max(1, total + offset + 1) if offset < 0 else offset
    begin = _find_line_offset(text, line_break, min(first - 1, total))
    last = first - 1 + limit
    end = len(text) if last >= total else _find_line_offset(text, line_break, last)
    if begin >= end:
        return [], first, total
    return split_lines(text[begin:end], line_break), first, total


def build_preview(text: str, keep: Callable[[str], str], *, within: int | None = None) -> str:
    """The preview of an oversized result: where it is stored, its beginning and its end.

    `keep` stores the text and returns its path; if it cannot, the preview still has both ends. The
    preview is no longer than `within`.
    """
    end_chars = PREVIEW_CHARS if within is None else max(1, min(PREVIEW_CHARS, within // 2))
    head, tail = text[:end_chars], text[max(end_chars, len(text) - end_chars) :]
    left_out = len(text) - len(head) - len(tail)
    from handaxe.text.escape import format_count

    line_break = detect_line_break(text)
    lines = text.count(line_break) + (not text.endswith(line_break))
    try:
        path = keep(text)
        where = f"Full output saved to: {path}\n"
        where += "Read it with offset and limit, search it with Grep, or give it whole to any tool "
        where += f'in place of a text: {{"$file": "{path}"}}.'
    except OSError as error:
        where = f"It could not be saved ({error.strerror or error}), so the rest is lost.\n"
        where += "Ask for less at a time."
    from handaxe.text.framing import frame

    preview = frame(
        "persisted-output",
        f"Output too large ({len(text):,} characters, {format_count(lines, 'line')}). {where}\n\n"
        f"Preview (first {end_chars:,} characters):\n{head}\n\n"
        f"[... {left_out:,} characters left out ...]\n\n"
        f"Preview (last {end_chars:,} characters):\n{tail}",
    )
    return str(preview)


def _find_line_offset(text: str, line_break: str, count: int) -> int:
    """The position behind the `count`-th line break, or the end where there are fewer."""
    if not count:
        return 0
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        found = text.count(line_break, low, middle)
        if found >= count:
            high = middle
        else:
            count -= found
            low = middle
    return high


# Most windows start at line 1 or at a round place, so the same prefixes come again and again.
@lru_cache(maxsize=16)
def _build_prefixes(first: int, count: int, style: LineFormat) -> tuple[str, ...]:
    """The prefix of each line; all but the first include the break before it."""
    numbers = range(first, first + count)
    plain = [f"{number}\t" if style == "tab" else f"{number:6d}→" for number in numbers]
    return tuple(f"\n{prefix}" if index else prefix for index, prefix in enumerate(plain))


def split_keeping_ends(text: str, line_break: str = "\n") -> list[str]:
    """The lines of `text` with their breaks; an empty end after the last break does not count."""
    lines = [line + line_break for line in text.split(line_break)]
    last = lines.pop().removesuffix(line_break)
    return [*lines, last] if last else lines


def detect_line_break(text: str) -> str:
    """The character that ends lines in `text`."""
    return "\r" if "\n" not in text and "\r" in text else "\n"


def find_line_start(text: AnyStr, position: int, count: int, line_break: AnyStr) -> int:
    """Where the line begins that is `count` lines before the one at `position`."""
    begin = text.rfind(line_break, 0, position) + 1
    for _ in range(count):
        if begin <= 0:
            return 0
        begin = text.rfind(line_break, 0, begin - 1) + 1
    return begin


def find_line_end(text: AnyStr, position: int, count: int, line_break: AnyStr) -> int:
    """Where `count` lines have ended, from the one at `position` on."""
    for _ in range(count):
        found = text.find(line_break, position)
        if found < 0:
            return len(text)
        position = found + 1
    return position
