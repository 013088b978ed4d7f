"""A text with differences of one kind smoothed away, and the way back to where a match was.

A view shortens some runs of its source: CR LF to LF, blanks at a line's end or start to nothing, a
typographic sign to a plain one. Searching it is one plain `find`, linear however alike the lines
are; the way back is worked out only once something was found.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

_Runs = Callable[[], Iterable[tuple[int, int]]]

_BLOCK_CHARS = 1 << 20
_CRLF = re.compile("\r\n")
# Looking behind first keeps a long run of blanks from being tried again at each of its blanks.
_TRAILING = re.compile(r"(?<![ \t])[ \t]++(?=\n|\Z)")
_LEADING = re.compile(r"^[ \t]+", re.MULTILINE)


class NormalizedText:
    """A smoothed text; `kept` is how many characters of each shortened run are left."""

    def __init__(
        self,
        text: str,
        source: "NormalizedText | None" = None,
        runs: _Runs | None = None,
        kept: int = 0,
    ) -> None:
        self.text = text
        self._source = source
        self._runs = runs
        self._kept = kept

    def find_all(self, needle: str) -> Iterator[int]:
        """Every position of `needle`, overlapping ones included."""
        position = self.text.find(needle)
        while position >= 0:
            yield position
            position = self.text.find(needle, position + 1)

    def is_line_end(self, position: int) -> bool:
        """Whether a line ends at `position`."""
        return position == len(self.text) or self.text[position] == "\n"

    def is_line_start(self, position: int) -> bool:
        """Whether a line begins at `position`."""
        return position == 0 or self.text[position - 1] == "\n"

    def to_source_position(self, position: int, *, after: bool) -> int:
        """`position` in the source; `after` or before a run that left nothing there."""
        if self._runs is None:
            return position
        marks, shifts = self._cuts
        pick = bisect_right if after or self._kept else bisect_left
        count = pick(marks, position)
        return position + (shifts[count - 1] if count else 0)

    def origin(self, position: int, *, after: bool) -> int:
        """`position` in the text that the first view was made of."""
        position = self.to_source_position(position, after=after)
        return position if self._source is None else self._source.origin(position, after=after)

    @cached_property
    def _cuts(self) -> tuple["array[int]", "array[int]"]:
        """Where shortened runs end in this text, and how much shorter it is from there on."""
        marks, shifts = array("q"), array("q")
        shift = 0
        for begin, end in self._runs() if self._runs else ():
            marks.append(begin - shift + self._kept)
            shift += end - begin - self._kept
            shifts.append(shift)
        return marks, shifts


def normalize_line_breaks(units: str, *, breaks_at_cr: bool) -> NormalizedText:
    """`units` with LF for every line break."""
    if breaks_at_cr:
        return NormalizedText(units.replace("\r", "\n"))
    if "\r\n" not in units:
        return NormalizedText(units)
    return NormalizedText(
        units.replace("\r\n", "\n"), runs=lambda: _find_spans(_CRLF, units), kept=1
    )


def strip_trailing_blanks(lines: NormalizedText) -> NormalizedText:
    """`lines` without blanks at line ends."""
    text = "\n".join(
        "\n".join([line.rstrip(" \t") for line in block]) for block in _split_blocks(lines.text)
    )
    return NormalizedText(text, lines, lambda: _find_spans(_TRAILING, lines.text))


def strip_indentation(lines: NormalizedText) -> NormalizedText:
    """`lines` without blanks at line starts."""
    text = "\n".join(
        "\n".join([line.lstrip(" \t") for line in block]) for block in _split_blocks(lines.text)
    )
    return NormalizedText(text, lines, lambda: _find_spans(_LEADING, lines.text))


def replace_signs(lines: NormalizedText, plain: dict[str, str]) -> NormalizedText:
    """`lines` with each sign that `plain` lists replaced by its plain one."""
    text = lines.text
    for sign, substitute in plain.items():
        text = text.replace(sign, substitute)
    pattern = re.compile("|".join(map(re.escape, plain)))
    return NormalizedText(text, lines, lambda: _find_spans(pattern, lines.text), kept=1)


def _find_spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in pattern.finditer(text))


def _split_blocks(text: str) -> Iterator[list[str]]:
    """The lines of `text`, so many at a time that a huge file is not split all at once."""
    begin = 0
    while (end := text.find("\n", begin + _BLOCK_CHARS)) >= 0:
        yield text[begin:end].split("\n")
        begin = end + 1
    yield text[begin:].split("\n")
