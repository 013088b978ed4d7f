"""The replacement as it has to look in its place: the file's line endings, indents and signs.

Lines that the replacement only repeats keep the bytes they have in the file.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property

from handaxe.text.encoding import CannotEncode, encode_part
from handaxe.text.replace.align import Block, blocks
from handaxe.text.replace.haystack import Haystack
from handaxe.text.replace.indentation import Indenter, indent_map
from handaxe.text.replace.outcome import MatchedWith, Splice
from handaxe.text.replace.places import Place
from handaxe.text.replace.signs import keep_signs

_NEARBY_UNITS = 20_000


class Dresser:
    """Makes the splices of one replacement."""

    def __init__(self, haystack: Haystack, old: str, new: str, matched_with: MatchedWith) -> None:
        self._haystack = haystack
        self._new = new
        self._matched_with = matched_with
        self._old_lines, _ = haystack.split(old)
        self._new_lines, self._new_breaks = haystack.split(new)

    def splices(self, places: Iterable[Place]) -> Iterator[Splice]:
        """What to take out and put in at each place."""
        for place in places:
            start = self._haystack.byte_offset(place.begin)
            data = self._given if self._is_as_given else self._encoded(self._dressed(place))
            yield Splice(start, self._haystack.byte_offset(place.end), data)

    @property
    def _is_as_given(self) -> bool:
        return self._matched_with in ("exact", "line_endings") and not self._new_breaks

    @cached_property
    def _given(self) -> bytes:
        return self._encoded(self._new)

    def _encoded(self, text: str) -> bytes:
        try:
            return encode_part(text, self._haystack.stored.encoding)
        except CannotEncode as error:
            # Count in what was given, not in what was made of it.
            position = self._new.find(error.character)
            raise CannotEncode(error.character, position, error.encoding) from None

    def _dressed(self, place: Place) -> str:
        stored, breaks = self._haystack.split(self._haystack.text(place.begin, place.end))
        lines = self._lines(stored, place)
        endings = self._endings(breaks, place)
        return "".join(line + ending for line, ending in zip(lines, [*endings, ""], strict=True))

    @cached_property
    def _blocks(self) -> list[Block]:
        return list(blocks(self._old_lines, self._new_lines))

    def _lines(self, stored: list[str], place: Place) -> list[str]:
        if self._matched_with in ("exact", "line_endings"):
            return self._new_lines
        indenter = self._indenter(stored, place) if self._matched_with == "indentation" else None
        lines: list[str] = []
        for block in self._blocks:
            wanted = self._new_lines[block.new_begin : block.new_end]
            theirs = stored[block.old_begin : block.old_end]
            if block.kept:
                lines += theirs
            elif indenter:
                lines += map(indenter.indent, wanted)
            elif self._matched_with == "quotes":
                mine = self._old_lines[block.old_begin : block.old_end]
                if wanted:
                    kept = keep_signs("\n".join(mine), "\n".join(theirs), "\n".join(wanted))
                    lines += kept.split("\n")
            else:
                lines += wanted
        return lines

    def _indenter(self, stored: list[str], place: Place) -> Indenter:
        begin = max(self._haystack.first, place.begin - _NEARBY_UNITS)
        nearby, _ = self._haystack.split(self._haystack.text(begin, place.end + _NEARBY_UNITS))
        mapping = indent_map(self._old_lines, stored) or {}
        return Indenter(mapping, (self._old_lines, self._new_lines), nearby)

    def _endings(self, breaks: list[str], place: Place) -> list[str]:
        """The line breaks of the replacement, each that of the line it takes the place of."""
        after = self._haystack.ending_after(place.end)
        stored = [*breaks, after or (breaks[-1] if breaks else None)]
        if stored[-1] is None:
            before = self._haystack.ending_before(place.begin)
            return [before or given for given in self._new_breaks]
        if len(set(stored)) == 1:
            return [stored[0] or "\n"] * len(self._new_breaks)
        return self._aligned_endings([ending or "\n" for ending in stored])

    def _aligned_endings(self, stored: list[str]) -> list[str]:
        endings: list[str] = []
        for block in self._blocks:
            for index in range(block.new_end - block.new_begin):
                # What is added ends like the line before it, or the first one.
                last = max(block.old_end - 1, 0)
                endings.append(stored[min(block.old_begin + index, last)])
        return endings[: len(self._new_breaks)]
