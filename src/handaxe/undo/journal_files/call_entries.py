"""The calls of a journal, built from its records."""

import os
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from pathlib import Path

import msgspec

from handaxe.text.paths import is_within
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


class StateChange(msgspec.Struct, frozen=True, gc=False):
    """One change of one path; a call that continued in the background can have several."""

    order: int
    """The number of its record in the journal."""
    found: PathState
    left: PathState


class CallEntry(msgspec.Struct):
    """One call: the states it found, the states it left, the calls it undid."""

    call_id: str
    tool: str
    at: float
    part: Path
    """The part of the journal with its first record, at `offset`."""
    offset: int
    before: dict[str, PathState]
    after: dict[str, PathState] | None = None
    """Only changed paths; None while the call runs, or after a crash."""
    left_out: tuple[str, ...] = ()
    undoes: tuple[str, ...] = ()
    is_complete: bool = True
    """Whether an undo finished."""
    found_late: bool = False
    doubtful: tuple[str, ...] = ()
    paths_only: bool = False
    late_s: float = LATE_S
    tracked: TrackedRecord | None = None
    """How to determine its changes, if it could change anything."""
    more: list[tuple[Path, int]] = []
    """The places of further records with contents."""
    is_sealed: bool = False
    """Whether all its records have the user's seal."""
    size_bytes: int = 0
    """The size of its records in the journal."""
    clock: str = ""
    outside: tuple[str, ...] = ()
    """Paths outside the working directories that it may have changed, with everything below."""
    ambiguous: dict[str, AmbiguousPath] = {}
    """Changed paths that are not certainly the call's own."""
    is_traced: bool = False
    is_partial: bool = False
    """Whether an undo was limited to some paths."""
    order: int = 0
    """The number of its first record in the journal."""
    pieces: dict[str, list[StateChange]] = {}
    """The changes of each path, oldest first."""

    @property
    def has_own_changes(self) -> bool:
        """Whether the call certainly changed something, or was not watched."""
        return any(
            not self.is_traced or (found := self.ambiguous.get(place)) is None or found.is_contested
            for place in self.after or ()
        )

    @property
    def has_changes(self) -> bool:
        """Whether the call changed anything."""
        return bool(self.after)

    def is_outside(self, place: str) -> bool:
        """Whether a path of the call is outside the working directories."""
        return is_within(place, self.outside)

    def is_on_top_of(self, other: "CallEntry") -> bool:
        """Whether the call changed a path after another call's last change of it."""
        if not self.last_order > max(other.order, other.last_order):
            return False
        shared = self.pieces.keys() & other.pieces.keys() - self.ambiguous.keys()
        return any(self.pieces[p][-1].order > other.pieces[p][-1].order for p in shared)

    @property
    def last_order(self) -> int:
        """The number of the record with its last change."""
        return max((pieces[-1].order for pieces in self.pieces.values()), default=self.order)

    def found(self, place: str) -> PathState:
        """The state that the call found at a path; unlisted paths in a tree did not exist."""
        return self.before.get(place) or PathState(place, "absent")

    def finish(self, record: AfterRecord, order: int) -> None:
        """Add what the call left."""
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
        """Add changes of a call that could change anything."""
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
            # A path in its original state again does not count as changed.
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
        """A change of a path; one found after a crash counts as older than all later calls."""
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
        """Add what the call undid."""
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
