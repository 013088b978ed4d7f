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

from handaxe.text.replace.plan import align_blocks

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
        """The ends of shortened runs in this text, and the characters removed up to each."""
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


def replace_typography(lines: NormalizedText, plain: dict[str, str]) -> NormalizedText:
    """`lines` with each sign that `plain` lists replaced by its plain one."""
    text = lines.text
    for sign, substitute in plain.items():
        text = text.replace(sign, substitute)
    pattern = re.compile("|".join(map(re.escape, plain)))
    return NormalizedText(text, lines, lambda: _find_spans(pattern, lines.text), kept=1)


def _find_spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in pattern.finditer(text))


def _split_blocks(text: str) -> Iterator[list[str]]:
    """The lines of `text` in groups, so that a huge file is not split all at once."""
    begin = 0
    while (end := text.find("\n", begin + _BLOCK_CHARS)) >= 0:
        yield text[begin:end].split("\n")
        begin = end + 1
    yield text[begin:].split("\n")


PLAIN: dict[str, str] = {
    **dict.fromkeys("\u2018\u2019\u201a", "'"),
    **dict.fromkeys("\u201c\u201d\u201e", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u202f", " "),
}
Style = dict[str, set[str]]
_TABLE = str.maketrans(PLAIN)
_PAIRS = {"'": ("\u2018", "\u2019"), '"': ("\u201c", "\u201d")}
_TOKEN = re.compile(r"\w+|.", re.DOTALL)
_OPENS_AFTER = frozenset(" \t\n\u00a0\u202f([{<=:,/-\u2013\u2014")


def to_plain_typography(text: str) -> str:
    """`text` with plain signs only; as many characters as before."""
    return text if text.isascii() else text.translate(_TABLE)


def keep_typography(old: str, stored: str, new: str, style: Style) -> str:
    """`new` with the file's own signs wherever it repeats `old`, and in its style elsewhere.

    Args:
        old: The text to replace, as given.
        stored: What the file has there: the same but for its signs.
        new: The replacement, as given.
        style: The style of the whole place, of which these may be a part.
    """
    given, wanted = _TOKEN.findall(old), _TOKEN.findall(new)
    result, read, written = "", 0, 0
    for block in align_blocks(given, wanted):
        old_length = sum(map(len, given[block.old_begin : block.old_end]))
        new_length = sum(map(len, wanted[block.new_begin : block.new_end]))
        if block.kept:
            result += stored[read : read + old_length]
        else:
            result = _append(result, new, range(written, written + new_length), style)
        read += old_length
        written += new_length
    return result


def detect_sign_style(old: str, stored: str) -> Style:
    """For every sign that was given, what the file has in its places."""
    style: Style = {}
    for given, kept in zip(old, stored, strict=True):
        if given in PLAIN or kept in PLAIN or given in _PAIRS:
            style.setdefault(given, set()).add(kept)
    return style


def _append(result: str, new: str, span: range, style: Style) -> str:
    """`result` with characters of `new` that nothing in the file stands for."""
    for index in span:
        character = new[index]
        if character in style:
            following = new[index + 1 : index + 2]
            character = _apply_style(character, result[-1:], following, style[character])
        result += character
    return result


def _apply_style(character: str, before: str, following: str, kept: set[str]) -> str:
    """One inserted sign the way the file writes it, where that is beyond doubt."""
    if character in PLAIN:
        # A typographic sign that the file has as a plain one throughout was never meant.
        return PLAIN[character] if kept == {PLAIN[character]} else character
    # Dashes and spaces differ in meaning; only quotation marks and apostrophes follow a style.
    if character not in _PAIRS or character in kept:
        return character
    opening, closing = _PAIRS[character]
    if before.isalnum() and following.isalnum():
        return closing if closing in kept else character
    if not {opening, closing} <= kept:
        return character
    return opening if not before or before in _OPENS_AFTER else closing
