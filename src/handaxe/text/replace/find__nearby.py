"""The parts of a file where a text can be at all, found by its most telling piece.

Every tolerant class leaves some piece of the text as it is. Where that piece is not, there is
nothing to search; where it is rare, only the lines around it are smoothed and searched.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from handaxe.text.replace.haystack import Haystack
from handaxe.text.replace.normalize__signs import to_plain_signs

_BLANKS = " \t"
_MAX_WINDOWS = 64


class CandidateWindow(msgspec.Struct, frozen=True):
    """Whole lines of a haystack, one more on each side than a place can need."""

    begin: int
    end: int


def find_windows_by_line(haystack: Haystack, needle: str) -> list[CandidateWindow]:
    """Where the longest line of `needle` is, blanks around it aside."""
    pieces = [line.strip(_BLANKS) for line in needle.split("\n")]
    return _find_windows(haystack, pieces)


def find_windows_by_word(haystack: Haystack, needle: str) -> list[CandidateWindow]:
    """Where the longest piece of `needle` is that holds no sign of any kind."""
    words = to_plain_signs(needle)
    for sign in ("'", '"', "-"):
        words = words.replace(sign, " ")
    pieces = [max(line.split(" "), key=len) for line in words.split("\n")]
    return _find_windows(haystack, pieces)


def _find_windows(haystack: Haystack, pieces: list[str]) -> list[CandidateWindow]:
    """The lines around each occurrence of the longest of `pieces`, one piece for each line."""
    piece = max(pieces, key=len)
    index = pieces.index(piece)
    if not piece:
        return [CandidateWindow(haystack.first, haystack.size)]
    found = list(islice(haystack.find_all(piece), _MAX_WINDOWS + 1))
    if len(found) > _MAX_WINDOWS:
        return [CandidateWindow(haystack.first, haystack.size)]
    spans = (
        CandidateWindow(
            haystack.find_line_start(position, index + 1),
            haystack.find_line_end(position, len(pieces) - index + 1),
        )
        for position in found
    )
    return list(_merge_windows(spans))


def _merge_windows(spans: Iterator[CandidateWindow]) -> Iterator[CandidateWindow]:
    """Windows that touch are one, so that no place is found twice."""
    current: CandidateWindow | None = None
    for span in spans:
        if current and span.begin <= current.end:
            current = CandidateWindow(current.begin, max(current.end, span.end))
        else:
            if current:
                yield current
            current = span
    if current:
        yield current
