"""The plan of a replacement: splices and the runs of items in them, or a refusal."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

MatchedWith = Literal["exact", "line_endings", "trailing_blanks", "indentation", "quotes"]
Tolerance = Literal["exact", "visible"]


class SameText(Exception):
    """The edit would leave every byte as it is."""


class EmptyNeedle(Exception):
    """There is nothing to look for."""


class NoPlace(Exception):
    """No place in the file fits, exactly or with tolerance."""


class AmbiguousMatch(Exception):
    """More than one place fits where only one may.

    Attributes:
        matched_with: The class in which they fit.
        lines: The lines they begin on, counted from 1.
        count: How many there are, overlapping ones included; counting stops at 1,000.
    """

    def __init__(self, matched_with: MatchedWith, lines: list[int], count: int) -> None:
        super().__init__(f"{count} places fit ({matched_with}), on lines {lines}")
        self.matched_with: MatchedWith = matched_with
        self.lines = lines
        self.count = count


class NoHeader(Exception):
    """No line is what a hunk's header says."""

    def __init__(self, header: str) -> None:
        super().__init__(header)
        self.header = header


class NoAnchor(Exception):
    """Lines were to be added, and nothing says where."""


class Overlapping(Exception):
    """Two hunks change the same lines; `line` is the first of them, counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


class ByteSplice(msgspec.Struct, frozen=True):
    """Bytes `start` to `end` of the original make way for `data`."""

    start: int
    end: int
    data: bytes


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A replacement as splices over the original bytes, in order and without overlap."""

    splices: tuple[ByteSplice, ...]
    matched_with: MatchedWith
    encoding: str
    places: int

    def pieces(self, content: bytes) -> Iterator[memoryview]:
        """The file after the edit, piece by piece, without a second copy of what stays."""
        view = memoryview(content)
        position = 0
        for splice in self.splices:
            yield view[position : splice.start]
            yield memoryview(splice.data)
            position = splice.end
        yield view[position:]

    def apply(self, content: bytes) -> bytes:
        """The file after the edit."""
        return b"".join(self.pieces(content))


class Block(msgspec.Struct, frozen=True):
    """A run of old items that became a run of new ones, or stayed as it was."""

    old_begin: int
    old_end: int
    new_begin: int
    new_end: int
    kept: bool


def align_blocks(
    old: Sequence[str], new: Sequence[str], *, max_pairs: int = 20_000
) -> Iterator[Block]:
    """`old` and `new` as runs that are kept and runs that are replaced, in order.

    Args:
        old: The old items.
        new: The new items.
        max_pairs: How many pairs of equal items may be looked at; beyond it the middle is one run.
    """
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old_end, new_end = len(old) - tail, len(new) - tail
    if head:
        yield Block(0, head, 0, head, kept=True)
    for block in _compare(old[head:old_end], new[head:new_end], max_pairs):
        yield Block(
            head + block.old_begin,
            head + block.old_end,
            head + block.new_begin,
            head + block.new_end,
            kept=block.kept,
        )
    if tail:
        yield Block(old_end, len(old), new_end, len(new), kept=True)


def _compare(old: Sequence[str], new: Sequence[str], max_pairs: int) -> Iterator[Block]:
    if not old and not new:
        return
    if not 0 < _count_equal_pairs(old, new) <= max_pairs:
        yield Block(0, len(old), 0, len(new), kept=False)
        return
    from difflib import SequenceMatcher

    for tag, *span in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield Block(*span, kept=tag == "equal")


def _count_equal_pairs(old: Sequence[str], new: Sequence[str]) -> int:
    """How many pairs of equal items there are: what a comparison costs."""
    counts = Counter(new)
    return sum(counts[item] for item in old)
