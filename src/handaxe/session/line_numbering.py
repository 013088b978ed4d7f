"""Under which numbers the lines of one file were shown with tags, and where those lines are now.

A session that changes a file moves lines, and whoever was shown the old numbers may use them
still. Where two lines are alike a tag cannot tell them apart, so it takes this to notice. Only
files that Read showed with tags have one; nothing else loads this module.
"""

from collections.abc import Sequence

import msgspec

from handaxe.text.line_tags import TAG_CHARS, tag_of

Move = tuple[int, int, int, str]
"""The first line, how many went, how many came in their place, and the tags of those that went."""


class Meant(msgspec.Struct, frozen=True):
    """What a number may stand for: its line of today, or of any time since it was shown."""

    lines: frozenset[int]
    """Where those lines are now."""
    gone: frozenset[str] = frozenset()
    """The tags of those that are not there any more."""


class Numbering:
    """What happened to the numbers since all lines were shown."""

    def __init__(self) -> None:
        # Lines that were shown anew, lines that moved, or None where nobody knows how they did.
        self._steps: list[range | tuple[Move, ...] | None] = []

    def show(self, first: int, last: int) -> None:
        """Some lines were shown as they are now."""
        if self._steps:
            self._steps.append(range(first, last + 1))

    def move(self, moves: Sequence[Move]) -> None:
        """Lines made way for others, all at once; those behind them moved."""
        if moves:
            self._steps.append(tuple(moves))

    def lose(self) -> None:
        """Somebody wrote another content, and no line is known to be where it was."""
        self._steps.append(None)

    def meant_by(self, number: int) -> Meant | None:
        """What a number may stand for; None if nobody knows."""
        lines, gone, is_known = {number}, set[str](), True
        for step in self._steps:
            if step is None:
                is_known = False
            elif not isinstance(step, range):
                gone |= {tag for line in lines for tag in _tag_of_gone(line, step)}
                lines = {number, *(new for line in lines for new in _moved(line, step))}
            elif number in step:
                lines, gone, is_known = {number}, set[str](), True
        return Meant(frozenset(lines), frozenset(gone)) if is_known else None


def tags_of(lines: Sequence[str]) -> str:
    """The tags of lines, one behind the other."""
    return "".join(map(tag_of, lines))


def _moved(line: int, moves: Sequence[Move]) -> tuple[int, ...]:
    """Where a line is after a change; nowhere if it made way."""
    if any(first <= line < first + went for first, went, _, _ in moves):
        return ()
    return (line + sum(came - went for first, went, came, _ in moves if first + went <= line),)


def _tag_of_gone(line: int, moves: Sequence[Move]) -> tuple[str, ...]:
    for first, went, _, tags in moves:
        if first <= line < first + went:
            at = (line - first) * TAG_CHARS
            return (tags[at : at + TAG_CHARS],)
    return ()
