"""The replacement as it has to look in its place: the file's line endings, indents and signs.

Lines that the replacement only repeats keep the bytes they have in the file.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from handaxe.text.encoding import UnencodableCharacter, encode_part
from handaxe.text.replace.find import MatchSpan
from handaxe.text.replace.haystack import Haystack
from handaxe.text.replace.indentation import Indenter, build_indent_map
from handaxe.text.replace.normalize import detect_sign_style, keep_typography
from handaxe.text.replace.plan import Block, ByteSplice, MatchedWith, align_blocks

_NEARBY_UNITS = 20_000
# From lines as given, the file's lines beside them and the lines wanted, to the lines to write.
_Change = Callable[[list[str], list[str], list[str]], list[str]]


class ReplacementAdapter:
    """Makes the splices of one replacement."""

    def __init__(self, haystack: Haystack, old: str, new: str, matched_with: MatchedWith) -> None:
        self._haystack = haystack
        self._new = new
        self._matched_with = matched_with
        self._old_lines, _ = haystack.split(old)
        self._new_lines, self._new_breaks = haystack.split(new)

    def splices(self, places: Iterable[MatchSpan]) -> Iterator[ByteSplice]:
        """The text to remove and to insert at each place."""
        for place in places:
            start = self._haystack.get_byte_offset(place.begin)
            data = self._given if self._is_as_given else self._encode(self._adapt(place))
            yield ByteSplice(start, self._haystack.get_byte_offset(place.end), data)

    @cached_property
    def _is_as_given(self) -> bool:
        """Whether the replacement is right as it is, because no line break in it can be wrong."""
        if self._matched_with not in ("exact", "line_endings"):
            return False
        return not self._new_breaks or ("\r" not in self._new and self._haystack.find("\r") < 0)

    @cached_property
    def _given(self) -> bytes:
        return self._encode(self._new)

    def _encode(self, text: str) -> bytes:
        try:
            return encode_part(text, self._haystack.stored.encoding)
        except UnencodableCharacter as error:
            # Count in what was given, not in what was made of it.
            position = self._new.find(error.character)
            raise UnencodableCharacter(error.character, position, error.encoding) from None

    def _adapt(self, place: MatchSpan) -> str:
        stored, breaks = self._haystack.split(self._haystack.text(place.begin, place.end))
        lines = self._lines(stored, place)
        endings = self._endings(breaks, place)
        return "".join(line + ending for line, ending in zip(lines, [*endings, ""], strict=True))

    @cached_property
    def _blocks(self) -> list[Block]:
        return list(align_blocks(self._old_lines, self._new_lines))

    def _lines(self, stored: list[str], place: MatchSpan) -> list[str]:
        if self._matched_with in ("exact", "line_endings"):
            return self._new_lines
        change = self._change(stored, place)
        lines: list[str] = []
        for block in self._blocks:
            theirs = stored[block.old_begin : block.old_end]
            wanted = self._new_lines[block.new_begin : block.new_end]
            if block.kept:
                lines += theirs
            elif wanted:
                lines += change(self._old_lines[block.old_begin : block.old_end], theirs, wanted)
        return lines

    def _change(self, stored: list[str], place: MatchSpan) -> _Change:
        """How lines that are not kept come to look as the file's do."""
        if self._matched_with == "indentation":
            indenter = self._build_indenter(stored, place)
            return lambda _old, _stored, wanted: list(map(indenter.indent, wanted))
        if self._matched_with == "quotes":
            style = detect_sign_style("\n".join(self._old_lines), "\n".join(stored))
            return lambda old, stored, wanted: keep_typography(
                "\n".join(old), "\n".join(stored), "\n".join(wanted), style
            ).split("\n")
        return lambda _old, _stored, wanted: wanted

    def _build_indenter(self, stored: list[str], place: MatchSpan) -> Indenter:
        begin = max(self._haystack.first, place.begin - _NEARBY_UNITS)
        nearby, _ = self._haystack.split(self._haystack.text(begin, place.end + _NEARBY_UNITS))
        mapping = build_indent_map(self._old_lines, stored) or {}
        return Indenter(mapping, self._old_lines, self._new_lines, nearby)

    def _endings(self, breaks: list[str], place: MatchSpan) -> list[str]:
        """The line breaks of the replacement, each that of the line it takes the place of."""
        after = self._haystack.find_ending_after(place.end)
        stored = [*breaks, after or (breaks[-1] if breaks else None)]
        if stored[-1] is None:
            before = self._haystack.find_ending_before(place.begin)
            return [before or given for given in self._new_breaks]
        if len(set(stored)) == 1:
            return [stored[0] or "\n"] * len(self._new_breaks)
        return self._align_endings([ending or "\n" for ending in stored])

    def _align_endings(self, stored: list[str]) -> list[str]:
        endings: list[str] = []
        for block in self._blocks:
            for index in range(block.new_end - block.new_begin):
                # What is added ends like the line before it, or the first one.
                last = max(block.old_end - 1, 0)
                endings.append(stored[min(block.old_begin + index, last)])
        return endings[: len(self._new_breaks)]
