"""Edits of whole lines that are named by their numbers in the file as it is.

Where a change goes is certain here; how its lines are dressed, that a file keeps what it ends
with, and the one plan in the end are those of every edit of lines.
"""

from bisect import bisect_right
from itertools import pairwise

import msgspec

from handaxe.text.encoding import Format
from handaxe.text.replace.adapt import ReplacementAdapter
from handaxe.text.replace.find import MatchSpan
from handaxe.text.replace.line_edits import LineEdits
from handaxe.text.replace.plan import ByteSplice

_WALKED_LINES = 16


class NumberedChange(msgspec.Struct, frozen=True):
    """Lines `first` to `last`, counted from 1, make way for `new`, which have no endings.

    Where `last` is the line before `first` nothing goes, and `new` are put in front of `first`.
    """

    first: int
    last: int
    new: tuple[str, ...]

    @property
    def reach(self) -> tuple[int, int]:
        """The range that it changes. The numbering includes the gaps between lines."""
        if self.last < self.first:
            return 2 * self.first - 1, 2 * self.first - 1
        return 2 * self.first, 2 * self.last


class SharedLine(Exception):
    """Two changes are about the same line, or the same place between two lines.

    Attributes:
        one, other: Which of the changes, counted from 0 as they were given.
        line: The line, counted from 1.
    """

    def __init__(self, one: int, other: int, line: int) -> None:
        super().__init__(f"line {line}")
        self.one, self.other = sorted((one, other))
        self.line = line


class NumberedEdits(LineEdits):
    """Lines by number, and the plan that changes some of them."""

    def __init__(self, content: bytes, *, stored: Format | None = None) -> None:
        """Raise `NotText` where the content is binary."""
        super().__init__(content, stored=stored)
        # Where lines begin that were asked for, and their numbers in order.
        self._starts = {1: self._haystack.first}
        self._numbers = [1]

    def has(self, number: int) -> bool:
        """Whether there is a line of that number."""
        return number > 0 and self._start(number) < self._haystack.size

    def line(self, number: int) -> str:
        """The text of a line that is there, without its ending."""
        end = self._start(number + 1)
        text = self._haystack.text(self._start(number), end)
        if self._added_end and end == self._haystack.size:
            # A CR that the file really ends with belongs to its last line.
            return text.removesuffix(self._added_end.decode(self._haystack.stored.encoding))
        bare = text.removesuffix(self._break)
        return bare if self._haystack.breaks_at_cr else bare.removesuffix("\r")

    def count_up_to(self, number: int) -> int:
        """How many lines there are, or `number` where there are more."""
        if not number or self.has(number):
            return number
        return self._haystack.count(self._break, self._haystack.first, self._haystack.size)

    def lines_of(self, text: str) -> tuple[str, ...]:
        """The lines of a text to insert. A final line break begins no further line."""
        lines, _ = self._haystack.split(text)
        if lines and not lines[-1]:
            lines.pop()
        # Half of a line ending at the end of the text is one, too.
        return tuple(line.removesuffix("\r") for line in lines)

    def put(self, changes: list[NumberedChange]) -> None:
        """Make changes of lines that are there; their order does not matter.

        Raises:
            SharedLine: Two of them are about the same line.
            CannotEncode: The file's encoding cannot hold their lines.
        """
        order = sorted(range(len(changes)), key=lambda at: changes[at].reach)
        for one, other in pairwise(order):
            if changes[other].reach[0] <= changes[one].reach[1]:
                raise SharedLine(one, other, changes[other].first)
        for at in order:
            self._put(changes[at])

    def _put(self, change: NumberedChange) -> None:
        if change.last < change.first:
            self._insert(change)
            return
        old = tuple(map(self.line, range(change.first, change.last + 1)))
        if old == change.new:
            return
        begin, end = self._start(change.first), self._start(change.last + 1)
        if change.new:
            # What the last of the lines ends with stays.
            end = self._start(change.last) + self._haystack.length(old[-1])
        self._take(self._adapt(old, change.new, MatchSpan(begin, end)), "exact")

    def _insert(self, change: NumberedChange) -> None:
        if not change.new:
            return
        at = self._start(change.first)
        if not change.last:
            data = self._adapt((), (*change.new, ""), MatchSpan(at, at)).data
            offset = self._haystack.get_byte_offset(at)
        else:
            # New lines end like the one before them: that is how they would be made of it.
            before = self.line(change.last)
            begin = self._start(change.last)
            made = self._adapt((before, ""), (before, *change.new, ""), MatchSpan(begin, at))
            offset, data = made.end, made.data[made.end - made.start :]
        self._take(ByteSplice(offset, offset, data), "exact")

    def _adapt(self, old: tuple[str, ...], new: tuple[str, ...], place: MatchSpan) -> ByteSplice:
        dresser = ReplacementAdapter(self._haystack, "\n".join(old), "\n".join(new), "exact")
        (splice,) = dresser.splices((place,))
        return splice

    @property
    def _break(self) -> str:
        return "\r" if self._haystack.breaks_at_cr else "\n"

    def _start(self, number: int) -> int:
        """Where a line begins; the end of the file for all lines behind it."""
        at = bisect_right(self._numbers, number)
        known = self._numbers[at - 1]
        position = self._starts[known]
        if known < number:
            position = self._find_offset(position, number - known)
            self._numbers.insert(at, number)
            self._starts[number] = position
        return position

    def _find_offset(self, position: int, count: int) -> int:
        """Where `count` lines have ended; many are counted, not walked over."""
        if count <= _WALKED_LINES:
            return self._haystack.find_line_end(position, count)
        low, high = position, self._haystack.size
        while high - low > 1:
            middle = (low + high) // 2
            found = self._haystack.count(self._break, low, middle)
            if found >= count:
                high = middle
            else:
                count -= found
                low = middle
        return high
