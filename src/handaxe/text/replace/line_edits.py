"""Edits of whole lines in one file, as patches have them.

Every hunk is searched in the original file, with the classes of `places`, and fits one place or
none. A header such as `@@ class A` narrows the search to the lines that belong to such a line. They
are found by indentation, up to the next line as deep as the header's. Two remaining places are a
refusal. Line numbers are ignored.
"""

from bisect import bisect_left
from itertools import pairwise

import msgspec

from handaxe.text.encoding import Format, encode_part, sniff
from handaxe.text.replace.adapt import ReplacementAdapter
from handaxe.text.replace.chain import SpliceChain, pick_least_exact
from handaxe.text.replace.find import MatchSearch, MatchSpan
from handaxe.text.replace.haystack import Haystack, find_missing_line_break
from handaxe.text.replace.plan import (
    AmbiguousMatch,
    ByteSplice,
    MatchedWith,
    NoAnchor,
    NoHeader,
    NoPlace,
    Overlapping,
    Plan,
    SameText,
    Tolerance,
)

_BLANKS = " \t"
_BLANKS_MAY_DIFFER = ("trailing_blanks", "indentation")
_MAX_HEADERS = 50
_MAX_BREAK_BYTES = 8
_MAX_BLOCK_LINES = 10_000
# A line as deep as the one that opens a block goes on with it where it begins with one of these.
_STILL_INSIDE = tuple("{}()[]")


class LineHunk(msgspec.Struct, frozen=True):
    """Lines to find and lines to put there, without their endings."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    headers: tuple[str, ...] = ()
    """Lines that the place belongs to, the outermost first."""
    is_last: bool = False
    """Whether the file ends with these lines."""


class _Region(msgspec.Struct, frozen=True):
    """Lines that a header narrows the search to; `first` is the header's own."""

    begin: int
    first_end: int
    end: int


class _Placed(msgspec.Struct, frozen=True):
    begin: int
    end: int
    splice: ByteSplice
    matched_with: MatchedWith


class LineEdits:
    """Collects hunks for one content, then gives the plan that makes them all."""

    def __init__(
        self, content: bytes, *, tolerance: Tolerance = "visible", stored: Format | None = None
    ) -> None:
        """Raise `NotText` where the content is binary."""
        stored = stored or sniff(content)
        self._content = content
        self._tolerance: Tolerance = tolerance
        self._added_end = find_missing_line_break(content, stored)
        # With a line break at its end every line of the file is alike.
        self._lines = content + self._added_end
        self._haystack = Haystack.of(self._lines, stored)
        self._placed: list[_Placed] = []
        self._opened: dict[tuple[str, _Region], list[_Region]] = {}

    def add(self, hunk: LineHunk) -> None:
        """Find the place of one hunk.

        Raises:
            NoPlace, AmbiguousMatch: It fits nowhere, or in several places.
            NoHeader: One of its headers is not in the file.
            NoAnchor: It only adds lines and does not say where.
            Overlapping: Another hunk changes the same lines.
            CannotEncode: The file's encoding cannot hold its lines.
        """
        if hunk.old == hunk.new:
            return
        regions = self._find_regions(hunk.headers)
        old, new = _join_lines(hunk.old), _join_lines(hunk.new)
        if hunk.old:
            matched_with, place = self._find(old, hunk, regions)
        else:
            matched_with, place = "exact", self._find_insertion(hunk, regions)
        (splice,) = ReplacementAdapter(self._haystack, old, new, matched_with).splices((place,))
        self._take(splice, matched_with)

    def plan(self) -> Plan:
        """All hunks as one plan.

        Raises:
            SameText: They change nothing.
        """
        if not self._placed:
            raise SameText
        chain = SpliceChain(self._content)
        if self._added_end:
            end = len(self._content)
            chain.add((ByteSplice(end, end, self._added_end),))
        chain.add(tuple(placed.splice for placed in self._placed))
        end = len(chain.content)
        last = self._measure_last_break(chain.content) if self._added_end else 0
        # A file without a line break at its end stays one, unless an empty line would go with it.
        first = max(len(self._haystack.stored.bom), end - last - _MAX_BREAK_BYTES)
        before = chain.content[first : end - last]
        if last and before and not self._measure_last_break(before):
            chain.add((ByteSplice(end - last, end, b""),))
        return Plan(
            splices=chain.splices(),
            matched_with=pick_least_exact([placed.matched_with for placed in self._placed]),
            encoding=self._haystack.stored.encoding,
            places=len(self._placed),
        )

    def _find(
        self, old: str, hunk: LineHunk, regions: list[_Region]
    ) -> tuple[MatchedWith, MatchSpan]:
        within = regions or [_Region(self._haystack.first, 0, self._haystack.size)]
        try:
            return self._find_only_place(old, hunk, within)
        except NoPlace:
            if not regions:
                raise
        # Not in the block that the header opens: somewhere behind the header, then.
        behind = _Region(min(region.begin for region in regions), 0, self._haystack.size)
        return self._find_only_place(old, hunk, [behind])

    def _find_only_place(
        self, old: str, hunk: LineHunk, regions: list[_Region]
    ) -> tuple[MatchedWith, MatchSpan]:
        def fits(matched_with: MatchedWith, place: MatchSpan) -> MatchSpan | None:
            whole = self._from_line_start(matched_with, place, hunk.old[0])
            if whole is None or (hunk.is_last and whole.end != self._haystack.size):
                return None
            is_inside = any(
                whole.end > region.begin and whole.begin < region.end for region in regions
            )
            return whole if is_inside else None

        search = MatchSearch(self._haystack, old, self._tolerance, fits)
        return search.matched_with, search.find_only()

    def _from_line_start(
        self, matched_with: MatchedWith, place: MatchSpan, first_line: str
    ) -> MatchSpan | None:
        begin = place.begin
        if not first_line.strip(_BLANKS) and matched_with in _BLANKS_MAY_DIFFER:
            # Blanks alone on the first line were smoothed away; they belong to it.
            while begin > self._haystack.first and self._get_unit_before(begin) in _BLANKS:
                begin -= 1
        return MatchSpan(begin, place.end) if self._is_line_start(begin) else None

    def _find_insertion(self, hunk: LineHunk, regions: list[_Region]) -> MatchSpan:
        haystack = self._haystack
        if hunk.is_last or haystack.size == haystack.first:
            return MatchSpan(haystack.size, haystack.size)
        if not regions:
            raise NoAnchor
        if len(regions) > 1:
            lines = haystack.line_numbers(region.begin for region in regions)
            raise AmbiguousMatch("exact", lines[:20], len(regions))
        return MatchSpan(regions[0].first_end, regions[0].first_end)

    def _find_regions(self, headers: tuple[str, ...]) -> list[_Region]:
        """Where the innermost header is; empty where a hunk has none."""
        haystack = self._haystack
        regions: list[_Region] = []
        for header in headers:
            outer = regions or [_Region(haystack.first, haystack.first, haystack.size)]
            found = [new for region in outer for new in self._find_blocks(header, region)]
            if not found:
                behind = _Region(outer[0].begin, outer[0].first_end, haystack.size)
                found = list(self._find_blocks(header, behind))
            if not found:
                raise NoHeader(header)
            regions = sorted(set(found), key=lambda region: region.begin)
        return regions

    def _find_blocks(self, header: str, outer: _Region) -> list[_Region]:
        """The blocks below lines that are the header, or else that hold it."""
        key = (header.strip(), outer)
        if key not in self._opened:
            begins = self._find_lines(key[0], outer)
            if len(begins) > _MAX_HEADERS:
                lines = self._haystack.line_numbers(begins[:20])
                raise AmbiguousMatch("exact", lines, len(begins))
            self._opened[key] = [self._block(begin) for begin in begins]
        return self._opened[key]

    def _find_lines(self, wanted: str, outer: _Region) -> list[int]:
        same: list[int] = []
        holding: list[int] = []
        position = self._haystack.find(wanted, outer.first_end, outer.end)
        while position >= 0:
            begin = self._haystack.find_line_start(position, 0)
            end = self._haystack.find_line_end(position, 1)
            is_same = self._haystack.text(begin, end).strip() == wanted
            (same if is_same else holding).append(begin)
            position = self._haystack.find(wanted, end, outer.end)
        return same or holding

    def _block(self, begin: int) -> _Region:
        """A line and all behind it that is deeper, up to the end of a file where that is far."""
        first_end = end = self._haystack.find_line_end(begin, 1)
        depth = _measure_depth(self._haystack.text(begin, first_end))
        for _ in range(_MAX_BLOCK_LINES):
            following = self._haystack.find_line_end(end, 1)
            text = self._haystack.text(end, following)
            bare = text.strip()
            if bare and _measure_depth(text) <= depth and not bare.startswith(_STILL_INSIDE):
                return _Region(begin, first_end, end)
            if following >= self._haystack.size:
                break
            end = following
        return _Region(begin, first_end, self._haystack.size)

    def _take(self, splice: ByteSplice, matched_with: MatchedWith) -> None:
        new = _Placed(splice.start, splice.end, self._trim(splice), matched_with)
        at = bisect_left(self._placed, new.splice.start, key=lambda placed: placed.splice.start)
        while at < len(self._placed) and self._placed[at].splice.start == new.splice.start:
            at += 1
        for first, second in pairwise((*self._placed[max(at - 1, 0) : at], new)):
            self._refuse_overlap(first, second)
        for other in self._placed[at : at + 1]:
            self._refuse_overlap(new, other)
        self._placed.insert(at, new)

    def _refuse_overlap(self, first: _Placed, second: _Placed) -> None:
        """Contexts may share lines; changes that touch each other must not."""
        shared = max(first.begin, second.begin) < min(first.end, second.end)
        gap = second.splice.start - first.splice.end
        if gap < 0 or (gap == 0 and shared):
            raise Overlapping(self._get_line_number(second.splice.start))

    def _trim(self, splice: ByteSplice) -> ByteSplice:
        """The splice without the lines at its ends that stay as they are."""
        stored = self._lines[splice.start : splice.end].splitlines(keepends=True)
        wanted = splice.data.splitlines(keepends=True)
        shorter = min(len(stored), len(wanted))
        head = tail = 0
        while head < shorter and stored[head] == wanted[head]:
            head += 1
        while tail < shorter - head and stored[-1 - tail] == wanted[-1 - tail]:
            tail += 1
        start = splice.start + sum(map(len, stored[:head]))
        end = splice.end - sum(map(len, stored[len(stored) - tail :]))
        return ByteSplice(start, end, b"".join(wanted[head : len(wanted) - tail]))

    def _get_line_number(self, offset: int) -> int:
        text = self._lines[:offset].decode(self._haystack.stored.encoding, "replace")
        return text.count("\r" if self._haystack.breaks_at_cr else "\n") + 1

    def _measure_last_break(self, content: bytes) -> int:
        """How many bytes the line break at the end of a content takes."""
        encoding = self._haystack.stored.encoding
        breaks = ("\r\n", "\n", "\r") if self._haystack.breaks_at_cr else ("\r\n", "\n")
        encoded = (encode_part(line_break, encoding) for line_break in breaks)
        return next((len(one) for one in encoded if content.endswith(one)), 0)

    def _is_line_start(self, position: int) -> bool:
        line_break = "\r" if self._haystack.breaks_at_cr else "\n"
        return position == self._haystack.first or self._get_unit_before(position) == line_break

    def _get_unit_before(self, position: int) -> str:
        return self._haystack.get_units(position - 1, position)


def _join_lines(lines: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _measure_depth(line: str) -> int:
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
