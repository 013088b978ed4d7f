"""Commands that can change anything: save the tree before, find the changes after."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from handaxe.contract.faults.undo import UntrustedRecord
from handaxe.disk.errors import DiskFault
from handaxe.text.paths import is_within
from handaxe.undo.content_store import ContentStore
from handaxe.undo.directory_trees import describe_ambiguous, describe_left_out, show_path
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.records import MovedRecord, TrackedRecord
from handaxe.undo.path_backup import OutsideStates
from handaxe.undo.path_state import read_clock
from handaxe.undo.snapshot.nodes import NodeChange
from handaxe.undo.snapshot.snapshot import Baseline, SnapshotLimits, TreeSnapshot
from handaxe.undo.tracked_calls import (
    NOTHING_OUTSIDE,
    ChangeAttribution,
    ChangeRecorder,
    TrackedCall,
)
from handaxe.undo.write_evidence import Evidence
from handaxe.undo.write_extent import WriteTargets


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
        """`is_passing` tells which paths exist only while a running command needs them."""
        self._roots = roots
        self._journal = journal
        self.limits = limits
        self._snapshot = TreeSnapshot(home, session_id, roots()[0], limits)
        self._attribution = ChangeAttribution(self._snapshot)
        self._calls = self._attribution.calls
        self._recorder = ChangeRecorder(self._snapshot, journal, store, is_passing)
        self._mutex = threading.Lock()

    @property
    def roots(self) -> Sequence[str]:
        """The compared roots."""
        return self._roots()

    @property
    def has_begun(self) -> bool:
        """Whether a call was compared before, so that the next one is cheap."""
        return bool(self._calls)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._calls

    def prepare(self) -> None:
        """Save the roots in the background, before the first call.

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
        outside: OutsideStates = NOTHING_OUTSIDE,
        evidence: Evidence | None = None,
    ) -> None:
        """Save everything in the scopes durably, and record that the call starts.

        Raises:
            OSError, DiskFault: that is not possible.
        """
        with self._mutex:
            self._begin(call_id, tool, scopes, outside, evidence or Evidence({}))

    def gather_evidence(self, scopes: Sequence[str], written: WriteTargets | None) -> Evidence:
        """The evidence that a call wrote a path: named directories, its words, or a trace."""
        return Evidence.from_targets(self._journal.directory, scopes, written)

    def open_trace(self, call_id: str) -> int | None:
        """The trace file for the processes of a running call; None for no trace."""
        call = self._calls.get(call_id)
        if call is None:
            # The calls of an agent are recorded under names that end with their own.
            named = (call for known, call in self._calls.items() if known.endswith(f".{call_id}"))
            call = next((call for call in named if call.is_running), None)
        return call.evidence.open_trace() if call is not None and call.is_running else None

    def find_left_out(self, paths: Sequence[str]) -> dict[str, str]:
        """The paths at, below or above these that are not saved for a call, with reasons.

        The roots are saved as for a call, which then has less to do.

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
        """Record what the call changed since the last check; return notes."""
        with self._mutex:
            return self._end(call_id, self._calls[call_id])

    def forget(self, call_id: str) -> None:
        """Record that a call was cancelled before it started and changed nothing."""
        with self._mutex:
            call = self._calls.pop(call_id)
            try:
                # Changes of others meanwhile were attributed to it, for lack of better evidence.
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
        self._attribution.claimed.clear()
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
        self._calls[call_id] = TrackedCall(tuple(scopes), at, clock, evidence, outside=outside)

    def _end(self, call_id: str, call: TrackedCall) -> tuple[str, ...]:
        was_running = call.is_running
        if not was_running:
            self._journal.enter()
        try:
            has_ended = self._look(ending=call)
            if not was_running:
                self._attribution.take_foreign(call)
            self._recorder.write(call_id, call)
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
        """Whether a call may still change something, or a check is running."""
        calls = tuple(self._calls.values())
        is_busy = bool(calls) and self._mutex.locked()
        return is_busy or any(call.may_go_on for call in calls)

    def prepare_claim(self, call_id: str, paths: Sequence[str]) -> None:
        """Prepare for a call with its own record that is about to change these paths.

        Raises:
            OSError, DiskFault: earlier changes there cannot be recorded.
        """
        if self.is_going_on:
            with self._mutex:
                self._look(paths)
        self._attribution.claiming[call_id] = paths

    def claim(self, call_id: str, paths: Sequence[str]) -> None:
        """Record that a call with its own record changed these paths.

        Their current state counts as unchanged for commands that still run, so it is saved.
        """
        if not self.is_going_on:
            self._attribution.claimed.update(paths)
            return
        with self._mutex:
            roots, snapshot = self._roots(), self._snapshot
            parents = {
                parent for path in paths for parent in _list_changed_parents(path, roots, snapshot)
            }
            self.let_go(call_id)
            self._attribution.claimed.update(paths, parents)
            self._look((*paths, *parents))

    def let_go(self, call_id: str) -> None:
        """A call with its own record has ended."""
        self._attribution.claiming.pop(call_id, None)

    def close(self) -> None:
        """Pass the tree to the next session; with open calls it stays for recovery."""
        self.write_again()
        calls = self._calls.values()
        unfinished = [call for call in calls if call.is_running or not call.is_written]
        self._snapshot.close(keep=not unfinished)
        for call in calls:
            if call not in unfinished:
                call.evidence.discard()

    def write_again(self) -> None:
        """Record the results of calls for which that failed earlier."""
        if all(call.is_written for call in tuple(self._calls.values())):
            # Usually true, and callers must not wait for a starting command.
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
                    self._recorder.write(call_id, call)
                call.is_written = True
        finally:
            self._journal.leave()

    def _look(self, paths: Sequence[str] | None = None, ending: TrackedCall | None = None) -> bool:
        """Attribute the changes, in all or some paths, to calls.

        Returns whether the trace of `ending` was complete before, so that this check is final.
        """
        traced = self._attribution.find_traced()
        fresh = [(call.evidence, call.evidence.find_fresh()) for call in traced]
        ended = [evidence for evidence, _ in fresh if evidence.has_ended]
        self._give(self._snapshot.end(paths), ending)
        if paths is not None:
            self._attribution.claimed.difference_update(paths)
            return False
        self._attribution.claimed.clear()
        for evidence, seen in fresh:
            evidence.settle(seen)
        for evidence in ended:
            # All it wrote was found by this look; the trace of `ending` goes with its record.
            if ending is None or evidence is not ending.evidence:
                evidence.discard()
        return ending is not None and ending.evidence in ended

    def _give(self, changes: Sequence[NodeChange], ending: TrackedCall | None = None) -> None:
        """Attribute each change to at most one call; record later changes of ended calls.

        The caller records those of `ending`.
        """
        self._attribution.assign(changes)
        for call_id, call in self._calls.items():
            is_ended = not call.is_running and call.is_written and call is not ending
            if call.changes and is_ended:
                self._journal.enter()
                try:
                    self._recorder.write(call_id, call)
                finally:
                    self._journal.leave()

    def _left_out(self, scopes: Sequence[str]) -> list[str]:
        return [path for path in self._snapshot.left_out if is_within(path, scopes)]

    def _notes(self, call: TrackedCall) -> tuple[str, ...]:
        left_out = self._snapshot.left_out
        inside = {path: left_out[path] for path in self._left_out(call.scopes)}
        return (
            *describe_left_out(inside | call.outside.lost),
            *describe_ambiguous(call.ambiguous, is_traced=call.evidence.is_traced),
        )


def _list_changed_parents(path: str, roots: Sequence[str], snapshot: TreeSnapshot) -> Iterator[str]:
    """The directories that appeared or disappeared with a path."""
    parent = path.rpartition("/")[0]
    while is_within(parent, roots):
        is_known = snapshot.find_node(parent) is not None
        is_there = os.path.lexists(parent)
        if is_known and is_there:
            return
        if is_known or is_there:
            yield parent
        parent = parent.rpartition("/")[0]
