"""Calls whose changes are found by comparing the tree: attribute changes and record them."""

import os
import time
from collections.abc import Callable, Sequence

import msgspec

from handaxe.text.paths import is_within
from handaxe.undo.content_store import ContentStore
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.records import AmbiguousPath, MovedRecord, PathState
from handaxe.undo.path_backup import OutsideStates
from handaxe.undo.path_state import (
    StateRecorder,
    find_changes,
    ignore_closed_directories,
    read_clock,
)
from handaxe.undo.snapshot.nodes import Node, NodeChange
from handaxe.undo.snapshot.snapshot import TreeSnapshot
from handaxe.undo.tree_states import TreeStates
from handaxe.undo.write_evidence import Evidence, find_changes_of_others, find_states_of_others

NOTHING_OUTSIDE = OutsideStates()


class TrackedCall(msgspec.Struct):
    """A call that started here."""

    scopes: tuple[str, ...]
    at: float
    clock: str
    evidence: Evidence
    is_running: bool = True
    is_written: bool = True
    """Whether all its known changes are in the journal, once it has ended."""
    was_written: bool = False
    changes: dict[str, list[NodeChange]] = {}
    """Its unrecorded changes by path, oldest first."""
    contested: set[str] = set()
    """Paths that another call of the session wrote between the same two checks."""
    foreign_at_end: int = 0
    told: bool = False
    outside: OutsideStates = NOTHING_OUTSIDE
    left_outside: set[str] = set()
    """Paths outside the roots that it changed."""
    ambiguous: tuple[AmbiguousPath, ...] = ()
    """Changes at the last check that may not be its own."""

    @property
    def may_go_on(self) -> bool:
        """Whether it may have changed something since the last check.

        A call without a trace may have.
        """
        return self.is_running or self.evidence.is_open or not self.evidence.is_traced


class ChangeAttribution:
    """Attributes changes to compared calls and to calls with their own records."""

    def __init__(self, snapshot: TreeSnapshot) -> None:
        self.calls: dict[str, TrackedCall] = {}
        """The compared calls, by id."""
        self.claimed: set[str] = set()
        """Paths that calls with their own records changed since the last check."""
        self.claiming: dict[str, Sequence[str]] = {}
        """The paths that running calls with their own records may change, by call id."""
        self._snapshot = snapshot

    def assign(self, changes: Sequence[NodeChange]) -> None:
        """Attribute each change to at most one call."""
        traced = self.find_traced()
        for call in traced:
            # A path is traced before it is written, so what was seen is in there by now.
            call.evidence.load()
        taken = self.claimed.union(*self.claiming.values())
        for change in changes:
            if change.path in taken:
                continue
            owner = self._find_owner(change.path, traced)
            if owner is None:
                self._snapshot.foreign.append(change)
            else:
                self._add(owner, change)
        for call in traced:
            call.evidence.settle(change.path for change in changes)

    def find_traced(self) -> list[TrackedCall]:
        """The traced calls; one may continue in the background after its end."""
        return [call for call in self.calls.values() if call.evidence.is_open]

    def take_foreign(self, call: TrackedCall) -> None:
        """Attribute unassigned changes since the call's end to its background work."""
        foreign, found = self._snapshot.foreign, call.changes
        since = foreign[call.foreign_at_end :]
        foreign[call.foreign_at_end :] = [c for c in since if not is_within(c.path, call.scopes)]
        for other in self.calls.values():
            other.foreign_at_end = min(other.foreign_at_end, len(foreign))
        # It is older than what was proved to be the call's a moment ago.
        call.changes = {}
        proved = [change for pieces in found.values() for change in pieces]
        for change in (*(c for c in since if is_within(c.path, call.scopes)), *proved):
            self._add(call, change)

    def _find_owner(self, path: str, traced: Sequence[TrackedCall]) -> TrackedCall | None:
        running = [call for call in self.calls.values() if call.is_running]
        others = [call for call in traced if not call.is_running]
        proved = [call for call in (*running, *others) if call.evidence.proves(path)]
        fresh = [call for call in proved if call.evidence.is_proved_now(path)]
        if len(fresh) > 1:
            fresh[0].contested.add(path)
        possible = [call for call in running if is_within(path, call.scopes)]
        return next(iter(fresh or proved or possible), None)

    def _add(self, call: TrackedCall, change: NodeChange) -> None:
        """Add a change to a call; it is merged with the previous one if there is no gap."""
        path, old, new = change
        pieces = call.changes.pop(path, [])
        if pieces and self._snapshot.contents.is_same(pieces[-1].new, old):
            old = pieces.pop().old
        if not self._snapshot.contents.is_same(old, new):
            pieces.append(NodeChange(path, old, new))
        if pieces:
            call.changes[path] = pieces


class ChangeRecorder:
    """Writes the changes of compared calls into the journal."""

    def __init__(
        self,
        snapshot: TreeSnapshot,
        journal: UndoJournal,
        store: ContentStore,
        is_passing: Callable[[str], bool],
    ) -> None:
        """`is_passing` tells which paths exist only while a running command needs them."""
        self._snapshot = snapshot
        self._journal = journal
        self._store = store
        self._keeper = StateRecorder(store)
        self._is_passing = is_passing
        self._passing: dict[str, Node] = {}

    def write(self, call_id: str, call: TrackedCall) -> None:
        """Record the unrecorded changes of a call."""
        changes = [
            change
            for pieces in call.changes.values()
            for piece in pieces
            if (change := self._change(*piece)) is not None
        ]
        bundle = self._store.create_bundle()
        try:
            found, left = TreeStates(self._snapshot, bundle).of(changes)
            bundle.seal()
        except BaseException:
            bundle.discard()
            raise
        finally:
            self._snapshot.release_files()
        outside = self._find_left_outside(call_id, call)
        call.ambiguous = self._find_ambiguous(call, changes, outside)
        self._journal.append(
            MovedRecord(
                call_id,
                time.time(),
                tuple(found),
                (*left, *outside),
                ambiguous=call.ambiguous,
                is_traced=call.evidence.is_traced,
                clock=read_clock(),
            ),
            durable=False,
        )
        call.is_written = call.was_written = True
        call.changes.clear()

    def _find_ambiguous(
        self, call: TrackedCall, changes: Sequence[NodeChange], outside: Sequence[PathState]
    ) -> tuple[AmbiguousPath, ...]:
        if not changes and not outside:
            return ()
        call.evidence.load()
        others = find_changes_of_others(self._journal.directory, call)
        ambiguous = call.evidence.find_ambiguous(changes, others)
        known = {os.fsdecode(one.path) for one in ambiguous}
        contested = call.contested.intersection(change.path for change in changes) - known
        return (
            *ambiguous,
            *(AmbiguousPath(os.fsencode(path), is_contested=True) for path in sorted(contested)),
            *find_states_of_others(outside, others),
        )

    def _find_left_outside(self, call_id: str, call: TrackedCall) -> list[PathState]:
        """The call's changes outside the roots, except those that a later call changed again."""
        found = {state.place: state for state in call.outside.states}
        if not found:
            return []

        def look_at(place: str, state: PathState | None) -> PathState:
            return self._keeper.read_left_state(place, state, trusting=False)

        changed = find_changes(found, call.outside.lost, ignore_closed_directories(look_at))
        others = set[str]()
        if not call.is_running:
            others = self._journal.find_changed_after(call_id)
        listed = {state.place for state in changed}
        # What it had changed and is as before again has to be on record as that.
        again = [found[place] for place in call.left_outside - listed if place in found]
        call.left_outside |= listed
        return [state for state in (*changed, *again) if state.place not in others]

    def _change(self, path: str, old: Node | None, new: Node | None) -> NodeChange | None:
        """A change to record; None for temporary paths of the runtime."""
        passing = self._passing.pop(path, None)
        was_passing = passing is not None and self._snapshot.contents.is_same(passing, old)
        if new is not None and (old is None or was_passing) and self._is_passing(path):
            self._passing[path] = new
            return None
        if was_passing and new is None:
            return None
        return NodeChange(path, None if was_passing else old, new)
