"""Calls whose changes a comparison of the tree finds: which call made a change, and its record."""

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
    """A call that began here."""

    scopes: tuple[str, ...]
    at: float
    clock: str
    evidence: Evidence
    is_running: bool = True
    is_written: bool = True
    """Whether all that is known of it is in the journal, once it has ended."""
    was_written: bool = False
    changes: dict[str, list[NodeChange]] = {}
    """What it changed and is not recorded yet, by path, oldest first."""
    contested: set[str] = set()
    """Paths that another call of the session wrote between the same two looks."""
    foreign_at_end: int = 0
    told: bool = False
    outside: OutsideStates = NOTHING_OUTSIDE
    left_outside: set[str] = set()
    """Paths outside the roots that it was found to have changed."""
    ambiguous: tuple[AmbiguousPath, ...] = ()
    """What it may not have changed itself, at the last look."""

    @property
    def may_go_on(self) -> bool:
        """Whether it may have changed something since the last look.

        One that is not traced may, as far as anybody knows.
        """
        return self.is_running or self.evidence.is_open or not self.evidence.is_traced


class ChangeAttribution:
    """Finds the call that made a change, among those that are compared and those that are not."""

    def __init__(self, snapshot: TreeSnapshot) -> None:
        self.calls: dict[str, TrackedCall] = {}
        """The calls that are compared, by id."""
        self.claimed: set[str] = set()
        """Paths that calls with records of their own changed since the last look."""
        self.claiming: dict[str, Sequence[str]] = {}
        """The paths that running calls with records of their own may change, by call id."""
        self._snapshot = snapshot

    def assign(self, changes: Sequence[NodeChange]) -> None:
        """Give each change to one call, or to nobody."""
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
        """The calls of which traces are read; one may go on in the background after its end."""
        return [call for call in self.calls.values() if call.evidence.is_open]

    def take_foreign(self, call: TrackedCall) -> None:
        """What changed since the call had ended is what it went on to do in the background."""
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
        """Note a change of a call; what follows its last one without a gap is one with it."""
        path, old, new = change
        pieces = call.changes.pop(path, [])
        if pieces and self._snapshot.contents.is_same(pieces[-1].new, old):
            old = pieces.pop().old
        if not self._snapshot.contents.is_same(old, new):
            pieces.append(NodeChange(path, old, new))
        if pieces:
            call.changes[path] = pieces


class ChangeRecorder:
    """Writes what compared calls changed into the journal."""

    def __init__(
        self,
        snapshot: TreeSnapshot,
        journal: UndoJournal,
        store: ContentStore,
        is_passing: Callable[[str], bool],
    ) -> None:
        """`is_passing` tells what is there only as long as a running command needs it."""
        self._snapshot = snapshot
        self._journal = journal
        self._store = store
        self._keeper = StateRecorder(store)
        self._is_passing = is_passing
        self._passing: dict[str, Node] = {}

    def write(self, call_id: str, call: TrackedCall) -> None:
        """Record the changes of a call that are not recorded yet."""
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
        """What the call left outside the roots, except where a later call changed it again."""
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
        """A change to be recorded; None for the coming and going of what nobody made."""
        passing = self._passing.pop(path, None)
        was_passing = passing is not None and self._snapshot.contents.is_same(passing, old)
        if new is not None and (old is None or was_passing) and self._is_passing(path):
            self._passing[path] = new
            return None
        if was_passing and new is None:
            return None
        return NodeChange(path, None if was_passing else old, new)
