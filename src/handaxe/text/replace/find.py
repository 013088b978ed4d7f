"""Where a text is in a file: the classes in their order, the first with any place decides."""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain, islice

import msgspec

from handaxe.text.encoding import has_surrogates
from handaxe.text.replace import normalize
from handaxe.text.replace.haystack import Haystack
from handaxe.text.replace.indentation import build_indent_map
from handaxe.text.replace.normalize import PLAIN, NormalizedText, to_plain_typography
from handaxe.text.replace.plan import AmbiguousMatch, MatchedWith, NoPlace, Tolerance

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
    words = to_plain_typography(needle)
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


_MAX_COUNTED = 1_000
_MAX_LINES = 20
_BLANKS = " \t"


class MatchSpan(msgspec.Struct, frozen=True):
    """A span of the haystack."""

    begin: int
    end: int


Fits = Callable[[MatchedWith, MatchSpan], MatchSpan | None]
"""The place as it counts for an edit of less than every place; None if it does not."""


def _accept_any(_matched_with: MatchedWith, place: MatchSpan) -> MatchSpan:
    return place


class MatchSearch:
    """All places of the first class that has any."""

    def __init__(
        self, haystack: Haystack, old: str, tolerance: Tolerance, fits: Fits = _accept_any
    ) -> None:
        self._haystack = haystack
        self._fits = fits
        self.matched_with: MatchedWith
        self.matched_with, self._places = self._decide(old, tolerance)

    def find_only(self) -> MatchSpan:
        """The one place.

        Raises:
            AmbiguousMatch: There are more.
        """
        places = list(islice(self._places, _MAX_COUNTED))
        if len(places) > 1:
            begins = [place.begin for place in places[:_MAX_LINES]]
            raise AmbiguousMatch(
                self.matched_with, self._haystack.line_numbers(begins), len(places)
            )
        return places[0]

    def find_all_places(self) -> Iterator[MatchSpan]:
        """The places from left to right, without those that overlap an earlier one."""
        free = 0
        for place in self._places:
            if place.begin >= free:
                yield place
                free = place.end

    def _decide(self, old: str, tolerance: Tolerance) -> tuple[MatchedWith, Iterator[MatchSpan]]:
        if not has_surrogates(old):
            for matched_with, found in _list_match_classes(self._haystack, old, tolerance):
                places = self._fitting(matched_with, found)
                first = next(places, None)
                if first is not None:
                    return matched_with, chain((first,), places)
        raise NoPlace

    def _fitting(
        self, matched_with: MatchedWith, found: Iterator[MatchSpan]
    ) -> Iterator[MatchSpan]:
        fitted = (self._fits(matched_with, place) for place in found)
        return (place for place in fitted if place is not None)


def _list_match_classes(
    haystack: Haystack, old: str, tolerance: Tolerance
) -> Iterator[tuple[MatchedWith, Iterator[MatchSpan]]]:
    yield "exact", _find_exact(haystack, old)
    if tolerance == "exact":
        return
    needle = haystack.normalize_breaks(old)
    finders = [_Finder(haystack, needle, span) for span in find_windows_by_line(haystack, needle)]
    yield "line_endings", _each(finder.find_ignoring_endings() for finder in finders)
    if to_plain_typography(needle).isspace():
        # Blanks that may differ in blanks would fit anywhere.
        return
    yield "trailing_blanks", _each(finder.find_ignoring_trailing_blanks() for finder in finders)
    yield "indentation", _each(finder.find_ignoring_indentation() for finder in finders)
    if _can_differ_in_signs(haystack, needle):
        finders = [
            _Finder(haystack, needle, span) for span in find_windows_by_word(haystack, needle)
        ]
        yield "quotes", _each(finder.find_ignoring_signs() for finder in finders)


_each = chain.from_iterable


def _find_exact(haystack: Haystack, old: str) -> Iterator[MatchSpan]:
    length = haystack.length(old)
    for begin in haystack.find_all(old):
        # A line break is one thing: what begins with its LF takes its CR along.
        split = old[0] == "\n" and haystack.is_inside_crlf(begin)
        yield MatchSpan(begin - split, begin + length)


def _can_differ_in_signs(haystack: Haystack, needle: str) -> bool:
    """Whether `needle` or the file holds a sign that could be another on the other side."""
    if to_plain_typography(needle) != needle:
        return True
    if haystack.is_ascii or not any(sign in needle for sign in PLAIN.values()):
        return False
    return any(haystack.find(sign) >= 0 for sign in PLAIN)


class _Finder:
    """The tolerant classes, each over a view of the same lines."""

    def __init__(self, haystack: Haystack, needle: str, window: CandidateWindow) -> None:
        self._haystack = haystack
        self._window = window
        self._needle = haystack.to_units(needle)
        self._old_lines = self._needle.split("\n")

    @cached_property
    def _lines(self) -> NormalizedText:
        units = self._haystack.get_units(self._window.begin, self._window.end)
        return normalize.normalize_line_breaks(units, breaks_at_cr=self._haystack.breaks_at_cr)

    def find_ignoring_endings(self) -> Iterator[MatchSpan]:
        """Places that are equal but for their line endings."""
        length = len(self._needle)
        for begin in self._lines.find_all(self._needle):
            yield self._place(self._lines, begin, begin + length)

    def find_ignoring_trailing_blanks(self) -> Iterator[MatchSpan]:
        """Places that are equal but for blanks at line ends."""
        view = normalize.strip_trailing_blanks(self._lines)
        needle = "\n".join(line.rstrip(_BLANKS) for line in self._old_lines)
        if (view.text, needle) == (self._lines.text, self._needle):
            return
        # Blanks at the end of what was given say that the line ends there.
        to_line_end = self._old_lines[-1].endswith((" ", "\t"))
        for begin in view.find_all(needle):
            end = begin + len(needle)
            if view.is_line_end(end) or not to_line_end:
                yield self._place(view, begin, end, end_after=to_line_end)

    def find_ignoring_indentation(self) -> Iterator[MatchSpan]:
        """Places whose lines are equal but for blanks at their start, mapped one to one."""
        view = normalize.strip_indentation(self._lines)
        needle = "\n".join(line.lstrip(_BLANKS) for line in self._old_lines)
        if (view.text, needle) == (self._lines.text, self._needle):
            return
        # An empty first or last line is only the line break next to it, not a line to compare.
        from_line_start, to_line_end = bool(self._old_lines[0]), bool(self._old_lines[-1])
        for begin in view.find_all(needle):
            end = begin + len(needle)
            if (view.is_line_start(begin) or not from_line_start) and (
                view.is_line_end(end) or not to_line_end
            ):
                bias = {"begin_after": not from_line_start, "end_after": to_line_end}
                if self._is_one_to_one(view, begin, end, **bias):
                    yield self._place(view, begin, end, **bias)

    def find_ignoring_signs(self) -> Iterator[MatchSpan]:
        """Places that are equal but for typographic signs."""
        units = {self._haystack.to_units(sign): substitute for sign, substitute in PLAIN.items()}
        view = normalize.replace_typography(self._lines, units)
        needle = self._needle
        for sign, substitute in units.items():
            needle = needle.replace(sign, substitute)
        for begin in view.find_all(needle):
            yield self._place(view, begin, begin + len(needle))

    def _is_one_to_one(
        self, view: NormalizedText, begin: int, end: int, *, begin_after: bool, end_after: bool
    ) -> bool:
        first = view.to_source_position(begin, after=begin_after)
        last = view.to_source_position(end, after=end_after)
        stored = self._lines.text[first:last].split("\n")
        return build_indent_map(self._old_lines, stored) is not None

    def _place(
        self,
        view: NormalizedText,
        begin: int,
        end: int,
        *,
        begin_after: bool = True,
        end_after: bool = False,
    ) -> MatchSpan:
        first = self._window.begin
        return MatchSpan(
            first + view.origin(begin, after=begin_after),
            first + view.origin(end, after=end_after),
        )
