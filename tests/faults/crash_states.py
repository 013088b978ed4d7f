"""The states of a directory that a crash may leave, by the model of `disk_model`.

First what is systematic: after every step, every set of names that may be there (many names: none,
all, each alone, all but each, in order), with all bytes and with none. Then random choices, among
them torn, zeroed and reordered bytes, until there are as many different states as wanted.
"""

import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from disk_model import ROOT, Data, Inode, Mode, Names, Recording, Size, Step, Sync

_NEVER = 1 << 60
_FEW_NAMES = 5
_MANY = 500
_JOURNAL = "/journal.jsonl"
_TEMPORARY = ".handaxe-"
_FRUITLESS = 1_000
"""After so many choices in a row without a new state there are hardly any more."""


class Choice(NamedTuple):
    """One crash: after so many steps, and what of the unsynced ones had reached the device."""

    after: int
    kept: frozenset[int]
    """The steps that did."""
    torn: tuple[tuple[int, int], ...] = ()
    """Steps of which only so many first bytes did."""
    zeroed: frozenset[int] = frozenset()
    """Inodes with the size of the kept steps, but zeros for their bytes."""


class Found(NamedTuple):
    """What stands at one path."""

    inode: int
    kind: str
    content: bytes
    mode: int
    target: str
    is_first: bool
    """Untouched by any step that is kept."""


Tree = dict[str, Found]


class CrashStates:
    """All states of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._steps = recording.steps
        self._durable_at = _durable_at(self._steps)
        self._needs = _sources(self._steps)
        self._of_inode: defaultdict[int, list[int]] = defaultdict(list)
        for number, step in enumerate(self._steps):
            if isinstance(step, Data | Size | Mode):
                self._of_inode[step.inode].append(number)

    def different(self, wanted: int, seed: int) -> Iterator[tuple[Choice, Tree]]:
        """Different states, at most so many; only random ones where few are wanted."""
        seen: set[int] = set()
        fruitless = 0
        first = self._systematic() if wanted >= _MANY else ()
        for choice in itertools.chain(first, self._random(random.Random(seed))):
            if len(seen) >= wanted or fruitless >= _FRUITLESS:
                return
            tree = self.build(choice)
            mark = self._mark(choice, tree)
            fruitless = fruitless + 1 if mark in seen else 0
            if mark not in seen:
                seen.add(mark)
                yield choice, tree

    def build(self, choice: Choice) -> Tree:
        """The tree after a crash."""
        names = {
            number: dict(inode.names)
            for number, inode in self._recording.inodes.items()
            if inode.kind == "directory"
        }
        kept = self._with_sources(choice)
        for number in range(choice.after):
            step = self._steps[number]
            if isinstance(step, Names) and self._is_there(number, choice.after, kept):
                for directory, name, inode in step.changes:
                    if inode is None:
                        names[directory].pop(name, None)
                    else:
                        names[directory][name] = inode
        return dict(self._walk(names, ROOT, "", choice))

    def find_unrecorded(self, choice: Choice, tree: Tree) -> frozenset[str]:
        """Temporary files made while the record of their call was still on its way.

        A loss of power at that moment may keep the file and not the record: nobody can know of it.
        """
        journals = {f.inode: f.content for path, f in tree.items() if path.endswith(_JOURNAL)}
        unrecorded: set[str] = set()
        is_recorded = True
        for step in self._steps[: choice.after]:
            match step:
                case Data(inode, offset, data) if b'"record":"before"' in data:
                    there = journals.get(inode, b"")
                    # After bytes that are missing a record does not begin a line.
                    is_line = not offset or there[:offset].endswith(b"\n")
                    is_recorded = is_line and there[offset : offset + len(data)] == data
                case Names(((_, name, int()),)) if name.startswith(_TEMPORARY) and not is_recorded:
                    unrecorded.add(name)
                case _:
                    pass
        return frozenset(unrecorded)

    def pending(self, after: int) -> list[int]:
        """The steps that a crash may take back."""
        return [
            number
            for number in range(after)
            if self._durable_at[number] >= after
            and not isinstance(self._steps[number], Sync)
            and (isinstance(self._steps[number], Names | Data | Size | Mode))
        ]

    def _is_there(self, number: int, after: int, kept: Iterable[int]) -> bool:
        return self._durable_at[number] < after or number in kept

    def _with_sources(self, choice: Choice) -> set[int]:
        """A rename that happened moved what was there: its source had been made."""
        kept = set(choice.kept)
        for number in sorted(choice.kept, reverse=True):
            at = self._needs.get(number)
            while at is not None:
                kept.add(at)
                at = self._needs.get(at)
        for number, at in self._needs.items():
            if self._durable_at[number] < choice.after:
                kept.add(at)
        return kept

    def _walk(
        self, names: dict[int, dict[str, int]], at: int, path: str, choice: Choice
    ) -> Iterator[tuple[str, Found]]:
        for name, number in sorted(names[at].items()):
            below = f"{path}/{name}" if path else name
            yield below, self._found(number, choice)
            if number in names:
                yield from self._walk(names, number, below, choice)

    def _found(self, number: int, choice: Choice) -> Found:
        inode = self._recording.inodes[number]
        steps = self._of_inode[number]
        there = [n for n in steps if n < choice.after]
        there = [n for n in there if self._is_there(n, choice.after, choice.kept)]
        torn = {n: size for n, size in choice.torn if n in there}
        is_zeroed = number in choice.zeroed
        content, mode = self._replay(inode, there, torn, choice if is_zeroed else None)
        is_first = not [n for n in there if not isinstance(self._steps[n], Mode)]
        return Found(number, inode.kind, content, mode, inode.target, is_first)

    def _replay(
        self, inode: Inode, there: list[int], torn: dict[int, int], zeroed: Choice | None
    ) -> tuple[bytes, int]:
        if not there:
            return inode.content, inode.mode
        content, mode = bytearray(inode.content), inode.mode
        for number in there:
            match self._steps[number]:
                case Data(_, offset, data):
                    written = data[: torn.get(number, len(data))]
                    if zeroed is not None and self._durable_at[number] >= zeroed.after:
                        written = b"\0" * len(written)
                    content.extend(b"\0" * (offset - len(content)))
                    content[offset : offset + len(written)] = written
                case Size(_, size):
                    del content[size:]
                    content.extend(b"\0" * (size - len(content)))
                case Mode(_, bits):
                    mode = bits
                case _:
                    pass
        return bytes(content), mode

    def _systematic(self) -> Iterator[Choice]:
        for after in range(len(self._steps), -1, -1):
            pending = self.pending(after)
            names = [n for n in pending if isinstance(self._steps[n], Names)]
            data = [n for n in pending if n not in names]
            for chosen in _subsets(names):
                yield Choice(after, frozenset([*chosen, *data]))
                if data:
                    yield Choice(after, frozenset(chosen))

    def _random(self, rng: random.Random) -> Iterator[Choice]:
        # What was never synced shows longest at the end, what was synced late after a rename.
        end = len(self._steps)
        renames = [number + 1 for number in self._needs] or [end]
        while True:
            after = rng.choice((end, rng.choice(renames), rng.randint(1, end)))
            pending = self.pending(after)
            if not pending:
                yield Choice(after, frozenset())
                continue
            names = [n for n in pending if isinstance(self._steps[n], Names)]
            odds = rng.choice((0.0, 0.2, 0.5, 0.8, 1.0))
            kept = {n for n in names if rng.random() < odds}
            data: defaultdict[int, list[int]] = defaultdict(list)
            for number in pending:
                step = self._steps[number]
                if isinstance(step, Data | Size | Mode):
                    data[step.inode].append(number)
            torn: list[tuple[int, int]] = []
            zeroed: set[int] = set()
            for inode, steps in data.items():
                kept |= self._some(rng, inode, steps, torn, zeroed)
            yield Choice(after, frozenset(kept), tuple(torn), frozenset(zeroed))

    def _some(
        self,
        rng: random.Random,
        inode: int,
        steps: list[int],
        torn: list[tuple[int, int]],
        zeroed: set[int],
    ) -> set[int]:
        """What of the unsynced steps of one inode there is."""
        how = rng.choice(("all", "none", "first", "torn", "torn", "zero", "any"))
        count = rng.randint(1, len(steps))
        match how:
            case "all":
                return set(steps)
            case "none":
                return set()
            case "first":
                return set(steps[:count])
            case "torn":
                last = self._steps[steps[count - 1]]
                if isinstance(last, Data):
                    torn.append((steps[count - 1], rng.randrange(len(last.data))))
                return set(steps[:count])
            case "zero":
                zeroed.add(inode)
                return set(steps[:count])
            case _:
                return {n for n in steps if rng.random() < 0.5}

    def _mark(self, choice: Choice, tree: Tree) -> int:
        said = len(self._recording.acknowledged(choice.after))
        return hash((said, *((path, f.inode, f.content, f.mode) for path, f in tree.items())))


def _durable_at(steps: list[Step]) -> list[int]:
    """For every step the sync that made it durable."""
    durable = [_NEVER] * len(steps)
    touched: defaultdict[int, list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        match step:
            case Names(changes):
                for directory in {change[0] for change in changes}:
                    touched[directory].append(number)
            case Data(inode) | Size(inode) | Mode(inode):
                touched[inode].append(number)
            case Sync(inode, covers):
                for key in [inode] if inode is not None else list(touched):
                    for earlier in touched[key]:
                        if earlier < covers and durable[earlier] == _NEVER:
                            durable[earlier] = number
                    touched[key] = [n for n in touched[key] if durable[n] == _NEVER]
            case _:
                pass
    return durable


def _sources(steps: list[Step]) -> dict[int, int]:
    """For every rename the step that had put its source there."""
    latest: dict[tuple[int, str], int] = {}
    needs: dict[int, int] = {}
    for number, step in enumerate(steps):
        if isinstance(step, Names):
            if len(step.changes) > 1 and (at := latest.get(step.changes[0][:2])) is not None:
                needs[number] = at
            latest |= {change[:2]: number for change in step.changes}
    return needs


def _subsets(names: list[int]) -> Iterator[list[int]]:
    if len(names) <= _FEW_NAMES:
        for size in range(len(names), -1, -1):
            yield from map(list, itertools.combinations(names, size))
        return
    yield names
    yield []
    for at in range(len(names)):
        yield [names[at]]
        yield names[:at] + names[at + 1 :]
        yield names[: at + 1]
