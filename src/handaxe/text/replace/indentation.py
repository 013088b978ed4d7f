"""Indents of a text as given, the file's own, and the way from one to the other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from math import gcd

_BLANKS = " \t"
_TAB_WIDTHS = (8, 4, 2)
_GIVEN_TAB = 4
_USUAL_STEP = 4


def get_indent(line: str) -> str:
    """The blanks a line begins with."""
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def build_indent_map(given: Sequence[str], stored: Sequence[str]) -> dict[str, str] | None:
    """From the indents of the given lines to those of the file's lines beside them.

    None where no map is one to one and keeps deeper lines deeper. Blank lines have no depth.
    """
    mapping: dict[str, str] = {}
    for mine, theirs in zip(given, stored, strict=True):
        if mine.strip(_BLANKS) and mapping.setdefault(get_indent(mine), get_indent(theirs)) != (
            get_indent(theirs)
        ):
            return None
    return mapping if _is_depth_preserving(mapping) else None


def _is_depth_preserving(mapping: dict[str, str]) -> bool:
    """Whether some reading of tabs as columns makes the map strictly rising."""
    for mine, theirs in product(_TAB_WIDTHS, _TAB_WIDTHS):
        columns = sorted(
            (_measure_width(a, mine), _measure_width(b, theirs)) for a, b in mapping.items()
        )
        if all(a < c and b < d for (a, b), (c, d) in pairwise(columns)):
            return True
    return not mapping


class Indenter:
    """Puts lines that were given in one indentation into the file's."""

    def __init__(
        self, mapping: dict[str, str], old: Sequence[str], new: Sequence[str], nearby: Sequence[str]
    ) -> None:
        self._mapping = mapping
        self._given_step = self._step(old, new, detect_indent_unit(nearby))
        self._unit = self._detect_unit(nearby)
        self._is_given_in_spaces = any(mapping) and not any("\t" in known for known in mapping)

    def indent(self, line: str) -> str:
        """`line` with the file's indent for its depth."""
        if not line:
            return line
        given = get_indent(line)
        return self._find_stored_indent(given) + line[len(given) :]

    def _find_stored_indent(self, given: str) -> str:
        if given in self._mapping:
            return self._mapping[given]
        if "\t" in given and self._unit == "\t" and self._is_given_in_spaces:
            # Tabs where the text to replace had spaces: already in the file's own way.
            return given
        width = _measure_width(given)
        shallower = [known for known in self._mapping if _measure_width(known) <= width]
        if shallower:
            nearest = max(shallower, key=_measure_width)
            levels, rest = divmod(width - _measure_width(nearest), self._given_step)
            return self._mapping[nearest] + self._unit * levels + " " * rest
        nearest = min(self._mapping, key=_measure_width)
        levels = -(-(_measure_width(nearest) - width) // self._given_step)
        return self._remove_levels(self._mapping[nearest], levels)

    def _remove_levels(self, indent: str, levels: int) -> str:
        for _ in range(levels):
            indent = indent.removesuffix(self._unit) if indent.endswith(self._unit) else ""
        return indent

    def _step(self, old: Sequence[str], new: Sequence[str], unit: str) -> int:
        """One level as given."""
        # The old lines show levels for certain; a small step in the new ones may be an alignment.
        shown = _list_steps(old) or self._find_steps(unit) or _list_steps(new)
        if shown:
            return min(shown)
        # So many blanks stand for so many levels, unless the new lines do not fit that.
        widths = {_measure_width(get_indent(line)) for line in new if line.strip(_BLANKS)}
        for mine, theirs in self._mapping.items():
            step = _measure_level_columns(_measure_width(mine), theirs, unit)
            if step and all((width - _measure_width(mine)) % step == 0 for width in widths):
                return step
        deeper = (width - _measure_width(mine) for width in widths for mine in self._mapping)
        return min((by for by in deeper if 1 < by < _USUAL_STEP), default=_USUAL_STEP)

    def _find_steps(self, unit: str) -> list[int]:
        """The steps between given indents, by how many levels lie between the file's."""
        found: list[int] = []
        for (a, b), (c, d) in pairwise(
            sorted(self._mapping.items(), key=lambda i: _measure_width(i[0]))
        ):
            if d.startswith(b) and (
                step := _measure_level_columns(
                    _measure_width(c) - _measure_width(a), d[len(b) :], unit
                )
            ):
                found.append(step)
        return found

    def _detect_unit(self, nearby: Sequence[str]) -> str:
        """The file's own step: from the map where it shows one, else from the lines nearby."""
        if any("\t" in indent for indent in self._mapping.values()):
            return "\t"
        columns = sorted((_measure_width(a), len(b)) for a, b in self._mapping.items())
        for (a, b), (c, d) in pairwise(columns):
            levels, rest = divmod(c - a, self._given_step)
            if levels and not rest and (d - b) % levels == 0:
                return " " * ((d - b) // levels)
        return detect_indent_unit(nearby)


def detect_indent_unit(lines: Iterable[str]) -> str:
    """One level of indentation in `lines`: a tab or a number of spaces."""
    indents = [get_indent(line) for line in lines if line.strip(_BLANKS)]
    tabs = sum(indent.startswith("\t") for indent in indents)
    if tabs > sum(indent.startswith(" ") for indent in indents):
        return "\t"
    steps = Counter(
        len(b) - len(a)
        for a, b in pairwise(indents)
        if len(a) < len(b) <= len(a) + 8 and "\t" not in b
    )
    return " " * (steps.most_common(1)[0][0] if steps else _guess_step(indents))


def _measure_level_columns(columns: int, indent: str, unit: str) -> int | None:
    """How many of `columns` stand for one level, if `indent` is whole levels of the file's."""
    unit = "\t" if "\t" in indent else unit
    levels = indent.count(unit)
    if not levels or indent != unit * levels or columns % levels:
        return None
    return columns // levels or None


def _guess_step(indents: Sequence[str]) -> int:
    """The step that lines may have which are all equally deep: the usual one if it fits."""
    shared = gcd(*(len(indent) for indent in indents if "\t" not in indent))
    return next((step for step in (_USUAL_STEP, 2, 3) if shared % step == 0), _USUAL_STEP)


def _list_steps(lines: Sequence[str]) -> list[int]:
    """By how much lines are deeper than the line before them."""
    widths = [_measure_width(get_indent(line)) for line in lines if line.strip(_BLANKS)]
    return [b - a for a, b in pairwise(widths) if a < b <= a + 8]


def _measure_width(indent: str, tab: int = _GIVEN_TAB) -> int:
    return len(indent.expandtabs(tab))
