"""Indents of a text as given, the file's own, and the way from one to the other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise, product

_BLANKS = " \t"
_TAB_WIDTHS = (8, 4, 2)
_GIVEN_TAB = 4
_USUAL_STEP = 4


def indent_of(line: str) -> str:
    """The blanks a line begins with."""
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def indent_map(given: Sequence[str], stored: Sequence[str]) -> dict[str, str] | None:
    """From the indents of the given lines to those of the file's lines beside them.

    None where no map is one to one and keeps deeper lines deeper. Blank lines have no depth.
    """
    mapping: dict[str, str] = {}
    for mine, theirs in zip(given, stored, strict=True):
        if mine.strip(_BLANKS) and mapping.setdefault(indent_of(mine), indent_of(theirs)) != (
            indent_of(theirs)
        ):
            return None
    return mapping if _keeps_depth(mapping) else None


def _keeps_depth(mapping: dict[str, str]) -> bool:
    """Whether some reading of tabs as columns makes the map strictly rising."""
    for mine, theirs in product(_TAB_WIDTHS, _TAB_WIDTHS):
        columns = sorted((_width(a, mine), _width(b, theirs)) for a, b in mapping.items())
        if all(a < c and b < d for (a, b), (c, d) in pairwise(columns)):
            return True
    return not mapping


class Indenter:
    """Puts lines that were given in one indentation into the file's."""

    def __init__(
        self, mapping: dict[str, str], old: Sequence[str], new: Sequence[str], nearby: Sequence[str]
    ) -> None:
        self._mapping = mapping
        # The old lines show levels for certain; a small step in the new ones may be an alignment.
        self._given_step = min(_steps(old), default=min(_steps(new), default=_USUAL_STEP))
        self._unit = self._own_unit(nearby)

    def indent(self, line: str) -> str:
        """`line` with the file's indent for its depth."""
        if not line:
            return line
        given = indent_of(line)
        return self._stored_indent(given) + line[len(given) :]

    def _stored_indent(self, given: str) -> str:
        if given in self._mapping:
            return self._mapping[given]
        if "\t" in given and not any("\t" in known for known in self._mapping):
            # Tabs where the text to replace had none: already in the file's own way.
            return given
        width = _width(given)
        shallower = [known for known in self._mapping if _width(known) <= width]
        if shallower:
            nearest = max(shallower, key=_width)
            levels, rest = divmod(width - _width(nearest), self._given_step)
            return self._mapping[nearest] + self._unit * levels + " " * rest
        nearest = min(self._mapping, key=_width)
        levels = -(-(_width(nearest) - width) // self._given_step)
        return self._without_levels(self._mapping[nearest], levels)

    def _without_levels(self, indent: str, levels: int) -> str:
        for _ in range(levels):
            indent = indent.removesuffix(self._unit) if indent.endswith(self._unit) else ""
        return indent

    def _own_unit(self, nearby: Sequence[str]) -> str:
        """The file's own step: from the map where it shows one, else from the lines nearby."""
        if any("\t" in indent for indent in self._mapping.values()):
            return "\t"
        columns = sorted((_width(a), len(b)) for a, b in self._mapping.items())
        for (a, b), (c, d) in pairwise(columns):
            levels, rest = divmod(c - a, self._given_step)
            if levels and not rest and (d - b) % levels == 0:
                return " " * ((d - b) // levels)
        return indent_unit(nearby)


def indent_unit(lines: Iterable[str]) -> str:
    """One level of indentation as `lines` have it: a tab or so many spaces."""
    indents = [indent_of(line) for line in lines if line.strip(_BLANKS)]
    tabs = sum(indent.startswith("\t") for indent in indents)
    if tabs > sum(indent.startswith(" ") for indent in indents):
        return "\t"
    steps = Counter(
        len(b) - len(a)
        for a, b in pairwise(indents)
        if len(a) < len(b) <= len(a) + 8 and "\t" not in b
    )
    return " " * (steps.most_common(1)[0][0] if steps else _USUAL_STEP)


def _steps(lines: Sequence[str]) -> list[int]:
    """By how much lines are deeper than the line before them."""
    widths = [_width(indent_of(line)) for line in lines if line.strip(_BLANKS)]
    return [b - a for a, b in pairwise(widths) if a < b <= a + 8]


def _width(indent: str, tab: int = _GIVEN_TAB) -> int:
    return len(indent.expandtabs(tab))
