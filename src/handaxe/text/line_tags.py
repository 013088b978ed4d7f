"""A short tag of what is on a line, so that a line can be named by number and checked by content.

A tag depends on nothing but the line's text: blanks at its end count, its line ending does not,
and neither does its number. Different lines may share a tag; the number says which is meant.
Only the edit format `lines` shows tags; nothing else loads this module.
"""

import re
from collections.abc import Sequence
from zlib import crc32

import msgspec

from handaxe.text.line_window import LineFormat

# Without i, l, o, 0 and 1, which are taken for each other. The letter in front keeps a tag from
# being read as a part of the number.
_FIRST = "abcdefghjkmnpqrstuvwxyz"
_SECOND = f"{_FIRST}23456789"
_TAGS = tuple(first + second for first in _FIRST for second in _SECOND)
TAG_COUNT = len(_TAGS)
TAG_CHARS = 2
# What Read shows in front of a line may be copied as a whole, with the line or without it.
_REF = re.compile(r"\s*(\d{1,12})(?:\s*:\s*([A-Za-z0-9]{2}))?\s*(?:[→\t].*)?", re.DOTALL)
_SHOWN = re.compile(rf" *(\d{{1,12}}):([{_FIRST}][{_SECOND}])[→\t]")


class LineRef(msgspec.Struct, frozen=True):
    """A line by its number, from 1, and the tag it is said to have; empty where none was given."""

    number: int
    tag: str

    def __str__(self) -> str:
        return f"{self.number}:{self.tag}" if self.tag else str(self.number)


def compute_tag(line: str) -> str:
    """The tag of a line without its ending."""
    return _TAGS[crc32(line.encode("utf-8", "surrogatepass")) % TAG_COUNT]


def make_line_ref(number: int, line: str) -> LineRef:
    """How a line is named."""
    return LineRef(number, compute_tag(line))


def parse_ref(text: str) -> LineRef | None:
    """The line that `12:k3` names, also with what Read shows behind it; None if it names none."""
    found = _REF.fullmatch(text)
    return LineRef(int(found[1]), (found[2] or "").lower()) if found else None


def parse_shown_ref(line: str) -> LineRef | None:
    """The number and tag that a line begins with as Read shows them, where it does."""
    found = _SHOWN.match(line)
    return LineRef(int(found[1]), found[2]) if found else None


def format_tagged_lines(
    shown: Sequence[str],
    first: int,
    style: LineFormat = "arrow",
    *,
    whole: Sequence[str] | None = None,
    untagged: int | None = None,
) -> str:
    """Lines with numbers and tags, as the model sees them.

    `whole` are the same lines uncut; the line with the number `untagged` is not known whole.
    """
    mark = "\t" if style == "tab" else "→"
    width = 0 if style == "tab" else 6
    lines: list[str] = []
    for number, (line, all_of_it) in enumerate(zip(shown, whole or shown, strict=False), first):
        tag = "" if number == untagged else f":{compute_tag(all_of_it)}"
        lines.append(f"{number:{width}d}{tag}{mark}{line}")
    return "\n".join(lines)
