"""Under which numbers the lines of one file were shown with tags, and where those lines are now.

A session that changes a file moves lines, and the model may still use the old numbers. A tag does
not distinguish two equal lines, so this table does. Only
files that Read showed with tags have one; nothing else loads this module.
"""

from collections.abc import Sequence

import msgspec

from handaxe.text.line_tags import TAG_CHARS, compute_tag

Move = tuple[int, int, int, str]
"""The first line, how many went, how many replaced them, and the tags of the removed ones."""


class LineCandidate(msgspec.Struct, frozen=True):
    """A line that had the number at some time, and what became of it."""

    line: int | None
    """Where it is now; None if it made way for another."""
    gone: str = ""
    """Its tag, if it made way."""
    is_shown: bool = False
    """Whether it was shown under the number, with its tag."""


class LineCandidates(msgspec.Struct, frozen=True):
    """The current lines that a number may mean, the newest first."""

    lines: tuple[LineCandidate, ...]
    is_complete: bool = True
    """Whether nothing is unknown before these."""


class LineNumberHistory:
    """The changes of line numbers since all lines were shown."""

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

    def reset(self) -> None:
        """Another content was written, and no line is known to be where it was."""
        self._steps.append(None)

    def find_candidates(self, number: int) -> LineCandidates:
        """The lines that had the number since all were shown; the last has it now."""
        lines, is_complete = [LineCandidate(number, is_shown=True)], True
        for step in self._steps:
            if step is None:
                lines, is_complete = [LineCandidate(number)], False
            elif not isinstance(step, range):
                lines = [*(_follow_line(line, step) for line in lines), LineCandidate(number)]
            elif number in step:
                lines[-1] = LineCandidate(number, is_shown=True)
        return LineCandidates(tuple(reversed(lines)), is_complete)


def join_tags(lines: Sequence[str]) -> str:
    """The tags of lines, one behind the other."""
    return "".join(map(compute_tag, lines))


def _follow_line(meaning: LineCandidate, moves: Sequence[Move]) -> LineCandidate:
    """A line after a change."""
    line = meaning.line
    if line is None:
        return meaning
    for first, went, _, tags in moves:
        if first <= line < first + went:
            at = (line - first) * TAG_CHARS
            return LineCandidate(None, tags[at : at + TAG_CHARS], meaning.is_shown)
    shift = sum(came - went for first, went, came, _ in moves if first + went <= line)
    return LineCandidate(line + shift, is_shown=meaning.is_shown)
