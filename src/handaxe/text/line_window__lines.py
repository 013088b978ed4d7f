"""Lines of a text or of bytes by position, without splitting the whole.

A line ends with LF, alone or after CR; with CR alone only in a text that has no LF.
"""

from typing import AnyStr


def split_keeping_ends(text: str, line_break: str = "\n") -> list[str]:
    """The lines of `text` with their breaks; nothing after the last break is no line."""
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
