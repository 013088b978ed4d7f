"""The calls of a journal, put together from its records, and which of them still stand."""

import os
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from pathlib import Path

import msgspec

from handaxe.contract.faults.undo import NothingToUndo, UnknownCall
from handaxe.contract.ports.undo import UndoRequest
from handaxe.undo.journal_files.records import (
    COMMAND_S,
    LATE_S,
    AfterRecord,
    AmbiguousPath,
    BeforeRecord,
    MovedRecord,
    PathState,
    TrackedRecord,
    UndoRecord,
)
from handaxe.undo.snapshot.nodes import is_within

_SHOWN_CALLS = 5


class StateChange(msgspec.Struct, frozen=True, gc=False):
    """One change of one path; of a call that went on in the background there may be several."""

    order: int
    """Which record of the journal has it."""
    found: PathState
    left: PathState


class CallEntry(msgspec.Struct):
    """One call: what it found, what it left, what it took back."""

    call_id: str
    tool: str
    at: float
    part: Path
    """The part of the journal that has the record, with contents, at `offset`."""
    offset: int
    before: dict[str, PathState]
    after: dict[str, PathState] | None = None
    """Only what changed; None while the call runs, or after a crash."""
    left_out: tuple[str, ...] = ()
    undoes: tuple[str, ...] = ()
    is_complete: bool = True
    """Whether an undo came to its end."""
    found_late: bool = False
    doubtful: tuple[str, ...] = ()
    paths_only: bool = False
    late_s: float = LATE_S
    tracked: TrackedRecord | None = None
    """How to find out what it changed, if it could have been anything."""
    more: list[tuple[Path, int]] = []
    """Where further records with contents are."""
    is_sealed: bool = False
    """Whether every record of it carries the user's own seal."""
    size_bytes: int = 0
    """What its records take up in the journal."""
    clock: str = ""
    outside: tuple[str, ...] = ()
    """Paths outside the working directories that it may have changed, with what is below them."""
    ambiguous: dict[str, AmbiguousPath] = {}
    """Changed paths of which nothing shows that they are the call's alone."""
    is_traced: bool = False
    is_partial: bool = False
    """Whether an undo was asked for some paths only."""
    order: int = 0
    """Which record of the journal opened it."""
    pieces: dict[str, list[StateChange]] = {}
    """The changes of each changed path, oldest first."""

    @property
    def has_own_changes(self) -> bool:
        """Whether the call is known to have left something changed, or nobody watched it."""
        return any(
            not self.is_traced or (found := self.ambiguous.get(place)) is None or found.is_contested
            for place in self.after or ()
        )

    @property
    def has_changes(self) -> bool:
        """Whether the call left anything changed."""
        return bool(self.after)

    def is_outside(self, place: str) -> bool:
        """Whether a path of the call lies outside the working directories."""
        return is_within(place, self.outside)

    def is_on_top_of(self, other: "CallEntry") -> bool:
        """Whether the call changed a path after another call had changed it for the last time."""
        if not self.last_order > max(other.order, other.last_order):
            return False
        shared = self.pieces.keys() & other.pieces.keys() - self.ambiguous.keys()
        return any(self.pieces[p][-1].order > other.pieces[p][-1].order for p in shared)

    @property
    def last_order(self) -> int:
        """Which record of the journal has its last change."""
        return max((pieces[-1].order for pieces in self.pieces.values()), default=self.order)

    def found(self, place: str) -> PathState:
        """What the call found at a path it changed; below a tree that is nothing, if not listed."""
        return self.before.get(place) or PathState(place, "absent")

    def finish(self, record: AfterRecord, order: int) -> None:
        """Take in what the call left."""
        earlier, self.after = self.after or {}, {state.place: state for state in record.states}
        self.pieces = {
            place: self.pieces[place]
            if earlier.get(place) == left
            else [self._make_change(record, order, self.found(place), left)]
            for place, left in self.after.items()
        }
        self.found_late, self.doubtful = record.found_late, record.doubtful
        self.ambiguous = _group_by_place(record.ambiguous)

    def extend(self, record: MovedRecord, part: Path, offset: int, order: int) -> None:
        """Take in what a call changed that could have changed anything."""
        self.more.append((part, offset))
        self.after = self.after or {}
        for found, left in zip_longest(record.found, record.left):
            if left is None:
                continue
            if found is not None and found.place == left.place:
                self._add(self._make_change(record, order, found, left))
            elif self.after.get(left.place) != left:
                # It was kept before the call, and is compared with that every time.
                piece = self._make_change(record, order, self.found(left.place), left)
                self.after[left.place], self.pieces[left.place] = left, [piece]
        for place in {state.place for state in record.left}:
            # What is again as it was found is no change any more.
            if self._is_as_found(place):
                del self.after[place], self.pieces[place]
        self.found_late, self.doubtful = record.found_late, record.doubtful
        again = {state.place for state in record.left}
        earlier = {place: one for place, one in self.ambiguous.items() if place not in again}
        self.ambiguous = earlier | _group_by_place(record.ambiguous)
        self.is_traced = record.is_traced

    def _add(self, piece: StateChange) -> None:
        assert self.after is not None
        place, left = piece.left.place, piece.left
        self.before.setdefault(place, piece.found)
        if place in self.pieces:
            # It tells what differs from another content than the one found at first.
            left = msgspec.structs.replace(left, splice=None)
        self.pieces.setdefault(place, []).append(piece)
        self.after[place] = left

    def _make_change(
        self, record: AfterRecord | MovedRecord, order: int, found: PathState, left: PathState
    ) -> StateChange:
        """A change of a path; one that is found after a crash was made before all later ones."""
        order = self.order if record.found_late else order
        return StateChange(order, msgspec.structs.replace(found, content=None), left)

    def _is_as_found(self, place: str) -> bool:
        pieces = self.pieces[place]
        first, last = pieces[0].found, pieces[-1].left
        if self.is_outside(place):
            return msgspec.structs.replace(last, content=None) == first
        follow_each_other = all(one.left.is_same(two.found) for one, two in pairwise(pieces))
        is_back = last.is_same(first) and last.mode == first.mode
        return len(pieces) > 1 and follow_each_other and is_back

    def note_undo(self, record: UndoRecord) -> None:
        """Take in what the call took back."""
        self.undoes, self.is_complete = record.calls, record.is_complete
        self.is_partial = record.is_partial


def make_entry(
    record: BeforeRecord | TrackedRecord, part: Path, offset: int, order: int
) -> CallEntry:
    """The entry that a record opens; contents stay in the file."""
    found = record.states if isinstance(record, BeforeRecord) else record.outside
    states = (msgspec.structs.replace(state, content=None) for state in found)
    return CallEntry(
        call_id=record.call_id,
        tool=record.tool,
        at=record.at,
        clock=record.clock,
        part=part,
        offset=offset,
        before={state.place: state for state in states},
        left_out=record.left_out,
        paths_only=isinstance(record, BeforeRecord) and record.paths_only,
        late_s=record.late_s if isinstance(record, BeforeRecord) else COMMAND_S,
        tracked=record if isinstance(record, TrackedRecord) else None,
        outside=_list_outside(record),
        order=order,
    )


def _group_by_place(paths: Sequence[AmbiguousPath]) -> dict[str, AmbiguousPath]:
    return {os.fsdecode(one.path): one for one in paths}


def _list_outside(record: BeforeRecord | TrackedRecord) -> tuple[str, ...]:
    if isinstance(record, BeforeRecord):
        return tuple(os.fsdecode(path) for path in record.outside)
    return tuple(state.place for state in record.outside)


def find_undone(entries: Sequence[CallEntry], *, counts_broken_off: bool = False) -> set[str]:
    """The ids of calls whose change does not stand any more; a redo makes it stand again.

    `counts_broken_off`: also where an undo did not come to its end.
    """
    gone: set[str] = set()
    # Whoever undoes comes later, so backwards its own fate is known already.
    for entry in reversed(entries):
        is_ended = (entry.is_complete or counts_broken_off) and not entry.is_partial
        if entry.undoes and is_ended and entry.call_id not in gone:
            gone.update(entry.undoes)
    return gone


def is_broken_off(entries: Sequence[CallEntry], targets: Sequence[CallEntry]) -> bool:
    """Whether the last undo or redo of any of these calls did not come to its end."""
    undoing = _find_undoing(entries, [entry.call_id for entry in targets])
    return bool(undoing) and not undoing[-1].is_complete


def select_entries(entries: Sequence[CallEntry], wanted: UndoRequest) -> list[CallEntry]:
    """The calls to put back, oldest first.

    Raises:
        NothingToUndo: no change is left.
        UnknownCall: no call of that id changed anything.
    """
    changes = [entry for entry in entries if entry.has_changes]
    if wanted.call_id is not None:
        at = _find_position(changes, wanted.call_id)
        is_single = wanted.only or wanted.redo
        return [*_find_first_attempts(changes, at), *changes[at : at + 1 if is_single else None]]
    # What an undo broke off left undone in part can be undone, and redone.
    gone = find_undone(entries) & find_undone(entries, counts_broken_off=True)
    undoes = {entry.call_id: entry.undoes for entry in entries}
    for at, entry in reversed(list(enumerate(changes))):
        is_undo = bool(entry.undoes)
        is_redo = is_undo and all(undoes.get(call_id) for call_id in entry.undoes)
        fits = is_undo and not is_redo if wanted.redo else not is_undo
        left_alone = _find_left_alone(entry, entries) if entry.call_id in gone else None
        if fits and _is_meant(entry, wanted, left_alone):
            top = at if is_undo else _find_on_top(changes, at, gone)
            return [*_find_first_attempts(changes, top), changes[top]]
    raise NothingToUndo(redo=wanted.redo, of_paths=bool(wanted.paths))


def _is_meant(entry: CallEntry, wanted: UndoRequest, left_alone: set[str] | None) -> bool:
    """Whether a call is the one to put back that nobody named.

    `left_alone` is what still stands of a call that was undone; None if it was not.
    """
    if wanted.paths:
        standing = entry.after or () if left_alone is None else left_alone
        return any(is_within(place, wanted.paths) for place in standing)
    if left_alone is None:
        return entry.has_own_changes or wanted.force
    return wanted.force and bool(left_alone)


def _find_on_top(changes: Sequence[CallEntry], at: int, gone: set[str]) -> int:
    """The position of the call that began before this one and last changed one of its paths."""
    top = changes[at]
    for below in range(at):
        other = changes[below]
        if other.call_id not in gone and not other.undoes and other.is_on_top_of(top):
            at, top = below, other
    return at


def _find_left_alone(entry: CallEntry, entries: Sequence[CallEntry]) -> set[str]:
    """What may be somebody else's and no undo of the call has put back."""
    gone = find_undone(entries)
    undos = [e for e in entries if entry.call_id in e.undoes and e.call_id not in gone]
    return set(entry.ambiguous).difference(*(undo.before for undo in undos))


def _find_first_attempts(changes: Sequence[CallEntry], at: int) -> list[CallEntry]:
    """The undos and redos that broke off and that the undo here continued, oldest first.

    With what a redo began to take back. Before a redo that came to its end all was as it had been.
    """
    found = [changes[at]]
    for entry in reversed(_find_undoing(changes[:at], changes[at].undoes)):
        is_taken_back = not found[0].is_complete and entry.call_id in found[0].undoes
        if entry.is_complete and not is_taken_back:
            break
        found.insert(0, entry)
    return found[:-1]


def _find_undoing(entries: Sequence[CallEntry], calls: Sequence[str]) -> list[CallEntry]:
    """The undos of these calls, the redos of those, and so on."""
    related = set(calls)
    found: list[CallEntry] = []
    for entry in entries:
        if not related.isdisjoint(entry.undoes):
            related.add(entry.call_id)
            found.append(entry)
    return found


def _find_position(changes: Sequence[CallEntry], call_id: str) -> int:
    ids = [entry.call_id for entry in changes]
    matching = [at for at, found in enumerate(ids) if found == call_id]
    if not matching:
        raise UnknownCall(call_id, ids[-_SHOWN_CALLS:])
    return matching[-1]
