"""Commands that could change anything: what they find is kept, what they did is found out."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from handaxe.contract.faults.undo import UntrustedRecord
from handaxe.disk.errors import DiskFault
from handaxe.undo.content_store import ContentStore
from handaxe.undo.directory_trees import (
    describe_ambiguous,
    describe_left_out,
    find_changes,
    ignore_closed_directories,
    show_path,
)
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.records import AmbiguousPath, MovedRecord, PathState, TrackedRecord
from handaxe.undo.path_backup import OutsideStates
from handaxe.undo.path_state import StateRecorder, read_clock
from handaxe.undo.snapshot.nodes import Node, NodeChange, is_within
from handaxe.undo.snapshot.snapshot import Baseline, SnapshotLimits, TreeSnapshot
from handaxe.undo.tree_states import TreeStates
from handaxe.undo.write_evidence import (
    TRACES,
    Evidence,
    find_changes_of_others,
    find_states_of_others,
)
from handaxe.undo.write_extent import WriteTargets

_NOTHING = OutsideStates()


class _Call(msgspec.Struct):
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
    outside: OutsideStates = _NOTHING
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


class TreeTracker:
    """The tree of one session's roots, compared around its commands."""

    def __init__(
        self,
        home: Path,
        session_id: str,
        roots: Callable[[], Sequence[str]],
        limits: SnapshotLimits,
        journal: UndoJournal,
        store: ContentStore,
        *,
        is_passing: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`is_passing` tells what is there only as long as a running command needs it."""
        self._roots = roots
        self._is_passing = is_passing
        self._passing: dict[str, Node] = {}
        self._journal = journal
        self._store = store
        self._keeper = StateRecorder(store)
        self.limits = limits
        self._snapshot = TreeSnapshot(home, session_id, roots()[0], limits)
        self._calls: dict[str, _Call] = {}
        self._claimed: set[str] = set()
        self._claiming: dict[str, Sequence[str]] = {}
        self._mutex = threading.Lock()

    @property
    def roots(self) -> Sequence[str]:
        """Where everything is compared."""
        return self._roots()

    @property
    def has_begun(self) -> bool:
        """Whether a call was compared already, so that the next one costs little."""
        return bool(self._calls)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._calls

    def prepare(self) -> None:
        """Have the roots kept in the background, ahead of the first call.

        Raises:
            OSError, DiskFault: that is not possible.
        """
        with self._mutex:
            self._snapshot.prepare(self._roots())

    def before(
        self,
        call_id: str,
        tool: str,
        scopes: Sequence[str],
        outside: OutsideStates = _NOTHING,
        evidence: Evidence | None = None,
    ) -> None:
        """Keep what is below the scopes, durably, and that the call is about to begin.

        Raises:
            OSError, DiskFault: that is not possible.
        """
        with self._mutex:
            self._begin(call_id, tool, scopes, outside, evidence or Evidence({}))

    def gather_evidence(self, scopes: Sequence[str], written: WriteTargets | None) -> Evidence:
        """What will show that a call wrote a path: directories it named, its words, or a trace."""
        if written is None:
            return Evidence(dict.fromkeys(scopes))
        if written.is_too_much:
            return Evidence(written.inside)
        trace = f"{self._journal.directory}/{TRACES}/{os.urandom(8).hex()}"
        return Evidence(written.inside, trace)

    def open_trace(self, call_id: str) -> int | None:
        """Where the processes of a running call are to be traced to; None: nowhere."""
        call = self._calls.get(call_id)
        if call is None:
            # The calls of an agent are recorded under names that end with their own.
            named = (call for known, call in self._calls.items() if known.endswith(f".{call_id}"))
            call = next((call for call in named if call.is_running), None)
        return call.evidence.open_trace() if call is not None and call.is_running else None

    def find_left_out(self, paths: Sequence[str]) -> dict[str, str]:
        """What at, below or above these paths is not kept for a call, with the reasons.

        The roots are looked at and kept, as for a call, which then has less to wait for.

        Raises:
            OSError, DiskFault: that is not possible.
        """
        with self._mutex:
            self._keep_roots()
            return {
                path: reason
                for path, reason in self._snapshot.left_out.items()
                if is_within(path, paths) or any(is_within(wanted, (path,)) for wanted in paths)
            }

    def after(self, call_id: str) -> tuple[str, ...]:
        """Record what the call changed, or has changed since it was last asked; what to tell."""
        with self._mutex:
            return self._end(call_id, self._calls[call_id])

    def forget(self, call_id: str) -> None:
        """The call was cancelled before it began: record that it changed nothing."""
        with self._mutex:
            call = self._calls.pop(call_id)
            try:
                # What others did meanwhile was given to it, as nobody knew better.
                self._give([change for pieces in call.changes.values() for change in pieces])
                now = time.time()
                self._journal.append(
                    MovedRecord(call_id, now, (), (), clock=read_clock()), durable=False
                )
            finally:
                self._journal.leave()

    def _keep_roots(self) -> Baseline:
        if any(call.is_running or call.evidence.is_open for call in self._calls.values()):
            self._look()
        foreign = self._snapshot.foreign
        seen = len(foreign)
        baseline = self._snapshot.begin(self._roots())
        since = foreign[seen:]
        del foreign[seen:]
        self._give(since)
        self._claimed.clear()
        return baseline

    def _begin(
        self,
        call_id: str,
        tool: str,
        scopes: Sequence[str],
        outside: OutsideStates,
        evidence: Evidence,
    ) -> None:
        with contextlib.suppress(OSError, DiskFault, UntrustedRecord):
            self._write_again()
        self._journal.enter()
        at, clock = time.time(), read_clock()
        try:
            baseline = self._keep_roots()
            left_out = [*self._left_out(scopes), *outside.lost]
            self._journal.append(
                TrackedRecord(
                    call_id,
                    tool,
                    at,
                    tuple(os.fsencode(scope) for scope in scopes),
                    os.fsencode(baseline.manifest),
                    baseline.length,
                    tuple(sorted(map(show_path, left_out))),
                    outside.states,
                    tuple((os.fsencode(path), names) for path, names in evidence.places.items()),
                    os.fsencode(evidence.trace),
                    clock,
                ),
                durable=True,
            )
        except BaseException:
            self._journal.leave()
            raise
        self._calls[call_id] = _Call(tuple(scopes), at, clock, evidence, outside=outside)

    def _end(self, call_id: str, call: _Call) -> tuple[str, ...]:
        was_running = call.is_running
        if not was_running:
            self._journal.enter()
        try:
            has_ended = self._look(ending=call)
            if not was_running:
                self._take_foreign(call)
            self._write(call_id, call)
            if has_ended:
                call.evidence.discard()
        except BaseException:
            call.is_written = False
            raise
        finally:
            call.is_running = False
            call.foreign_at_end = len(self._snapshot.foreign)
            self._journal.leave()
        notes = () if call.told else self._notes(call)
        call.told = True
        return notes

    @property
    def is_going_on(self) -> bool:
        """Whether a call may change something still, or somebody looks at this moment."""
        calls = tuple(self._calls.values())
        is_busy = bool(calls) and self._mutex.locked()
        return is_busy or any(call.may_go_on for call in calls)

    def prepare_claim(self, call_id: str, paths: Sequence[str]) -> None:
        """A call that has a record of its own is about to change these paths.

        Raises:
            OSError, DiskFault: what others changed there before cannot be recorded.
        """
        if self.is_going_on:
            with self._mutex:
                self._look(paths)
        self._claiming[call_id] = paths

    def claim(self, call_id: str, paths: Sequence[str]) -> None:
        """These paths were changed by a call that has a record of its own.

        As they are now is what a call changes that goes on, so they are looked at and kept.
        """
        if not self.is_going_on:
            self._claimed.update(paths)
            return
        with self._mutex:
            parents = {parent for path in paths for parent in self._list_changed_parents(path)}
            self.let_go(call_id)
            self._claimed.update(paths, parents)
            self._look((*paths, *parents))

    def let_go(self, call_id: str) -> None:
        """A call that has a record of its own has ended."""
        self._claiming.pop(call_id, None)

    def _list_changed_parents(self, path: str) -> Iterator[str]:
        """The directories that came or went with a path."""
        parent = path.rpartition("/")[0]
        while is_within(parent, self._roots()):
            is_known = self._snapshot.find_node(parent) is not None
            is_there = os.path.lexists(parent)
            if is_known and is_there:
                return
            if is_known or is_there:
                yield parent
            parent = parent.rpartition("/")[0]

    def close(self) -> None:
        """Hand the tree to the next session; with a call open it stays for whoever completes it."""
        self.write_again()
        calls = self._calls.values()
        unfinished = [call for call in calls if call.is_running or not call.is_written]
        self._snapshot.close(keep=not unfinished)
        for call in calls:
            if call not in unfinished:
                call.evidence.discard()

    def write_again(self) -> None:
        """Record what calls left, where that was not possible when they ended."""
        if all(call.is_written for call in tuple(self._calls.values())):
            # Nearly always, and whoever asks must not wait for a command that begins.
            return
        with self._mutex, contextlib.suppress(OSError, DiskFault, UntrustedRecord):
            self._write_again()

    def _write_again(self) -> None:
        unwritten = {name: call for name, call in self._calls.items() if not call.is_written}
        if not unwritten:
            return
        self._journal.enter()
        try:
            still_open = {e.call_id for e in self._journal.entries() if e.after is None}
            for call_id, call in unwritten.items():
                # Another process may have found out meanwhile, and undone it.
                if call.was_written or call_id in still_open:
                    self._write(call_id, call)
                call.is_written = True
        finally:
            self._journal.leave()

    def _look(self, paths: Sequence[str] | None = None, ending: _Call | None = None) -> bool:
        """Give what changed, anywhere or at these paths, to the calls it can be of.

        Gives whether the trace of `ending` had ended before, so that this look found all of it.
        """
        fresh = [(call.evidence, call.evidence.find_fresh()) for call in self._find_traced()]
        ended = [evidence for evidence, _ in fresh if evidence.has_ended]
        self._give(self._snapshot.end(paths), ending)
        if paths is not None:
            self._claimed.difference_update(paths)
            return False
        self._claimed.clear()
        for evidence, seen in fresh:
            evidence.settle(seen)
        for evidence in ended:
            # All it wrote was found by this look; the trace of `ending` goes with its record.
            if ending is None or evidence is not ending.evidence:
                evidence.discard()
        return ending is not None and ending.evidence in ended

    def _find_traced(self) -> list[_Call]:
        """The calls of which traces are read; one may go on in the background after its end."""
        return [call for call in self._calls.values() if call.evidence.is_open]

    def _give(self, changes: Sequence[NodeChange], ending: _Call | None = None) -> None:
        """Give each change to one call, or to nobody; what ended calls went on to do is recorded.

        That of `ending` is recorded by whoever ends it.
        """
        traced = self._find_traced()
        for call in traced:
            # A path is traced before it is written, so what was seen is in there by now.
            call.evidence.load()
        taken = self._claimed.union(*self._claiming.values())
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
        for call_id, call in self._calls.items():
            is_ended = not call.is_running and call.is_written and call is not ending
            if call.changes and is_ended:
                self._journal.enter()
                try:
                    self._write(call_id, call)
                finally:
                    self._journal.leave()

    def _find_owner(self, path: str, traced: Sequence[_Call]) -> _Call | None:
        running = [call for call in self._calls.values() if call.is_running]
        others = [call for call in traced if not call.is_running]
        proved = [call for call in (*running, *others) if call.evidence.proves(path)]
        fresh = [call for call in proved if call.evidence.is_proved_now(path)]
        if len(fresh) > 1:
            fresh[0].contested.add(path)
        possible = [call for call in running if is_within(path, call.scopes)]
        return next(iter(fresh or proved or possible), None)

    def _add(self, call: _Call, change: NodeChange) -> None:
        """Note a change of a call; what follows its last one without a gap is one with it."""
        path, old, new = change
        pieces = call.changes.pop(path, [])
        if pieces and self._snapshot.is_same(pieces[-1].new, old):
            old = pieces.pop().old
        if not self._snapshot.is_same(old, new):
            pieces.append(NodeChange(path, old, new))
        if pieces:
            call.changes[path] = pieces

    def _take_foreign(self, call: _Call) -> None:
        """What changed since the call had ended is what it went on to do in the background."""
        foreign, found = self._snapshot.foreign, call.changes
        since = foreign[call.foreign_at_end :]
        foreign[call.foreign_at_end :] = [c for c in since if not is_within(c.path, call.scopes)]
        for other in self._calls.values():
            other.foreign_at_end = min(other.foreign_at_end, len(foreign))
        # It is older than what was proved to be the call's a moment ago.
        call.changes = {}
        proved = [change for pieces in found.values() for change in pieces]
        for change in (*(c for c in since if is_within(c.path, call.scopes)), *proved):
            self._add(call, change)

    def _write(self, call_id: str, call: _Call) -> None:
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
        self, call: _Call, changes: Sequence[NodeChange], outside: Sequence[PathState]
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

    def _find_left_outside(self, call_id: str, call: _Call) -> list[PathState]:
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
        was_passing = passing is not None and self._snapshot.is_same(passing, old)
        if new is not None and (old is None or was_passing) and self._is_passing(path):
            self._passing[path] = new
            return None
        if was_passing and new is None:
            return None
        return NodeChange(path, None if was_passing else old, new)

    def _left_out(self, scopes: Sequence[str]) -> list[str]:
        return [path for path in self._snapshot.left_out if is_within(path, scopes)]

    def _notes(self, call: _Call) -> tuple[str, ...]:
        left_out = self._snapshot.left_out
        inside = {path: left_out[path] for path in self._left_out(call.scopes)}
        return (
            *describe_left_out(inside | call.outside.lost),
            *describe_ambiguous(call.ambiguous, is_traced=call.evidence.is_traced),
        )
