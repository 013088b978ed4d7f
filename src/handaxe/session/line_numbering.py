"""Under which numbers the lines of one file were shown with tags, and where those lines are now.

A session that changes a file moves lines, and whoever was shown the old numbers may use them
still. Where two lines are alike a tag cannot tell them apart, so it takes this to notice. Only
files that Read showed with tags have one; nothing else loads this module.
"""

from collections.abc import Iterable, Sequence

Move = tuple[int, int, int]
"""The first line, how many went and how many came in their place."""


class Numbering:
    """What happened to the numbers since all lines were shown."""

    def __init__(self) -> None:
        # A range that was shown anew, lines that moved, or None where nobody knows how they did.
        self._steps: list[range | tuple[Move, ...] | None] = []

    def show(self, first: int, last: int) -> None:
        """Some lines were shown as they are now."""
        if self._steps:
            self._steps.append(range(first, last + 1))

    def move(self, moves: Sequence[Move]) -> None:
        """Lines made way for others, all at once; those behind them moved."""
        if moving := tuple(move for move in moves if move[1] != move[2]):
            self._steps.append(moving)

    def lose(self) -> None:
        """Somebody wrote another content, and no line is known to be where it was."""
        self._steps.append(None)

    def meant_by(self, number: int) -> frozenset[int] | None:
        """Where the line may be that was shown under a number; None if nobody knows.

        The number may be the one of today, or that of any time since the line was shown.
        """
        lines, is_known = {number}, True
        for step in self._steps:
            if step is None:
                is_known = False
            elif not isinstance(step, range):
                lines = {number, *_moved(lines, step)}
            elif number in step:
                lines, is_known = {number}, True
        return frozenset(lines) if is_known else None


def _moved(lines: Iterable[int], moves: Sequence[Move]) -> Iterable[int]:
    """Where lines are after a change; those that made way are nowhere."""
    for line in lines:
        if not any(first <= line < first + went for first, went, _ in moves):
            yield line + sum(came - went for first, went, came in moves if first + went <= line)
