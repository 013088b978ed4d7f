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


class Meaning(msgspec.Struct, frozen=True):
    """A line that had the number at some time, and what became of it."""

    line: int | None
    """Where it is now; None if it made way for another."""
    gone: str = ""
    """Its tag, if it made way."""
    is_shown: bool = False
    """Whether it was shown under the number, with its tag."""


class Meanings(msgspec.Struct, frozen=True):
    """What a number may stand for, the newest first."""

    lines: tuple[Meaning, ...]
    is_complete: bool = True
    """Whether nothing is unknown before these."""


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

    def meant_by(self, number: int) -> Meanings:
        """The lines that had the number since all were shown; the last has it now."""
        lines, is_complete = [Meaning(number, is_shown=True)], True
        for step in self._steps:
            if step is None:
                lines, is_complete = [Meaning(number)], False
            elif not isinstance(step, range):
                lines = [*(_followed(line, step) for line in lines), Meaning(number)]
            elif number in step:
                lines[-1] = Meaning(number, is_shown=True)
        return Meanings(tuple(reversed(lines)), is_complete)


def tags_of(lines: Sequence[str]) -> str:
    """The tags of lines, one behind the other."""
    return "".join(map(tag_of, lines))


def _followed(meaning: Meaning, moves: Sequence[Move]) -> Meaning:
    """A line after a change."""
    line = meaning.line
    if line is None:
        return meaning
    for first, went, _, tags in moves:
        if first <= line < first + went:
            at = (line - first) * TAG_CHARS
            return Meaning(None, tags[at : at + TAG_CHARS], meaning.is_shown)
    shift = sum(came - went for first, went, came, _ in moves if first + went <= line)
    return Meaning(line + shift, is_shown=meaning.is_shown)
