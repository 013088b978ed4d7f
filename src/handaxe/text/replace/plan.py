"""What a search for a replacement can come to: a plan of splices, or a refusal with its data."""

from collections.abc import Iterator
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
        self.matched_with = matched_with
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
