"""Record files before they change: the hot path of undo.

One durable record comes before each change, one more after it, for which no call waits. Tools that
announce their change wait for the first record just before it. Small files are handled in the
calling thread; copies are made in a worker thread.
"""

import asyncio
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from handaxe.contract.effects import Effects, Extent
from handaxe.contract.faults.undo import UntrustedRecord
from handaxe.contract.ports.undo import Checkpoints
from handaxe.disk.errors import DiskFault
from handaxe.disk.threads import SlowRecords, ThreadWork, run_in_thread
from handaxe.text.paths import is_within
from handaxe.undo.content_bundle import INLINE_BYTES
from handaxe.undo.content_store import ContentStore
from handaxe.undo.directory_trees import TooBig, describe_ambiguous, describe_left_out, show_path
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.call_entries import CallEntry
from handaxe.undo.journal_files.records import (
    COMMAND_S,
    LATE_S,
    AfterRecord,
    AmbiguousPath,
    BeforeRecord,
    PathState,
)
from handaxe.undo.path_backup import PathRecorder, add_shared_names, convert_disk_errors
from handaxe.undo.path_state import Known, StateRecorder, find_changes, find_no_file, read_clock
from handaxe.undo.write_extent import ExtentLimits, Places, WriteTargets, resolve_extent

if TYPE_CHECKING:
    from handaxe.undo.command_changes import TreeTracker

IDLE_S = 5.0
_LARGE_BYTES = 1 << 20
_MANY = 50
_ROOM = ExtentLimits(files=1_000, size_bytes=8 << 20)
"""Limit of bytes copied for a command whose writes are known ..."""
_ROOM_BESIDE_TREE = ExtentLimits(_MANY, _LARGE_BYTES)
"""... and the lower limit where the whole tree is compared for others, which is then cheaper."""
_OFF = "Undo of commands is turned off (undo.shell_max_files: 0)."

_log = logging.getLogger("handaxe.storage")


class LazyTreeTracker:
    """Compares a session's roots around its commands; creates its tracker on first use."""

    def __init__(
        self,
        make: "Callable[[], TreeTracker] | None",
        roots: Callable[[], Sequence[str]],
        store: ContentStore,
        places: PathRecorder,
    ) -> None:
        """`make` is None if whole roots are not compared."""
        self.is_on = make is not None
        self.tracker: TreeTracker | None = None
        self._make = make
        self._making = threading.Lock()
        self._is_prepared = False
        self.roots = roots
        self._store = store
        self._places = places

    def get(self) -> "TreeTracker":
        """The tracker."""
        with self._making:
            if self.tracker is None:
                assert self._make is not None
                self.tracker = self._make()
            return self.tracker

    async def prepare(self) -> None:
        """Save the roots in the background, before the first command."""
        self._is_prepared = True
        with contextlib.suppress(OSError, DiskFault):
            await run_in_thread(lambda: self.get().prepare())

    @property
    def is_comparing(self) -> bool:
        """Whether paths must be compared for commands that still run, which takes a while."""
        return self.tracker is not None and self.tracker.is_going_on

    def covers(self, paths: Collection[str]) -> bool:
        """Whether all of these are in the roots, and trees of any size are compared."""
        return self.is_on and all(is_within(path, self.roots()) for path in paths)

    def is_inside(self, path: str) -> bool:
        """Whether a path or its target is in the roots."""
        roots = self.roots()
        return is_within(path, roots) or is_within(path, map(os.path.realpath, roots))

    def resolve(self, extent: Extent | None) -> WriteTargets:
        """The paths that a command can write, inside and outside the roots."""
        # The tables of programs and their options describe Linux.
        if extent is None or sys.platform != "linux":
            return WriteTargets(doubt="its writes are unknown")
        is_tracked = self.tracker is not None and self.tracker.has_begun
        room = _ROOM_BESIDE_TREE if is_tracked else _ROOM
        return resolve_extent(extent, self.roots(), str(self._store.home), room)

    def find_loss(self, effects: Effects, paths: Sequence[str]) -> str:
        """Why undo could not restore these paths and everything below; empty if it could."""
        from handaxe.undo.loss_check import LossFinder, find_existing

        there = find_existing(paths)
        if effects.is_read_only or not there:
            return ""
        tree = self.get if self.is_on else None
        finder = LossFinder(
            self.roots(), str(self._store.home), tree, is_prepared=self._is_prepared
        )
        if not effects.writes_everything:
            return finder.find_in_places(there)
        if not self.is_on:
            return _OFF
        return finder.find_in_command(there, self.resolve(effects.extent))

    def track(
        self, call_id: str, tool: str, scopes: Sequence[str], written: WriteTargets | None = None
    ) -> None:
        """Compare the whole tree around a call; a tree that is too big is left out."""
        tracked = self.get()
        bundle = self._store.create_bundle()
        try:
            outside = self._places.keep_outside(written or WriteTargets(), bundle)
            bundle.seal()
            evidence = tracked.gather_evidence(scopes, written)
            tracked.before(call_id, tool, scopes or tracked.roots, outside, evidence)
        except BaseException:
            bundle.discard()
            raise


class IdleRelease:
    """Closes a file after a while without use, so that idle sessions hold no descriptor."""

    def __init__(self, journal: UndoJournal) -> None:
        self._journal = journal
        self._timer: asyncio.TimerHandle | None = None
        self._used = False

    def schedule(self) -> None:
        """Check after a while whether the journal was used again."""
        self._used = True
        self._journal.mark_used()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE_S, self._release_if_idle)

    def cancel(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _release_if_idle(self) -> None:
        self._timer = None
        if self._used:
            self.schedule()
            self._used = False
        else:
            self._journal.release_files()


class DiskCheckpoints(Checkpoints):
    """The journal of one session, updated call by call."""

    def __init__(
        self,
        journal: UndoJournal,
        store: ContentStore,
        *,
        known: Known = find_no_file,
        replacing: Collection[str] = (),
        waiting: Collection[str] = (),
        roots: Callable[[], Sequence[str]] = tuple,
        tree: "Callable[[], TreeTracker] | None" = None,
        unfinished: "list[ThreadWork[Any]] | None" = None,
    ) -> None:
        """`replacing` names the tools that change files only by renaming.

        `waiting` names the tools that call `keep_promises` before they change anything. `tree`
        creates the tracker for calls that can change anything in the roots. `unfinished` has writes
        that continue after their calls were cancelled.
        """
        self._journal = journal
        self._store = store
        self._keeper = StateRecorder(store, known)
        self._places = PathRecorder(self._keeper)
        self._replacing = frozenset(replacing)
        # Undo puts back attributes as well, which only a look at the file itself tells.
        self._comparing = self._replacing - {"Undo"}
        self._waiting = frozenset(waiting)
        self._tree = LazyTreeTracker(tree, roots, store, self._places)
        self._open: dict[str, BeforeRecord] = {}
        self._bounded: set[str] = set()
        self._lost: dict[str, dict[str, str]] = {}
        self.slow = SlowRecords([] if unfinished is None else unfinished)
        self._idle = IdleRelease(journal)

    async def prepare(self) -> None:
        """Save the roots in the background; if that fails, the first command reports it."""
        if self._tree.is_on:
            await self._tree.prepare()

    async def before(self, call_id: str, tool: str, effects: Effects) -> None:
        """Record durably what the call may change; a fault stops the call."""
        paths = [place.name for place in effects.writes if place.kind == "path"]
        if not paths and not (effects.writes_everything and self._tree.is_on):
            return

        def record() -> None:
            if effects.writes_everything and self._tree.is_on:
                self._begin_command(call_id, tool, effects.extent)
                return
            try:
                self._open[call_id] = self._record(call_id, tool, dict.fromkeys(paths))
            except TooBig:
                self._tree.track(call_id, tool, paths)

        with convert_disk_errors():
            # Small contents are in the record, and the waiting caller syncs it in a thread.
            is_short = tool in self._waiting and self._journal.is_begun and len(paths) <= _MANY
            if is_short and not self._tree.is_comparing and not any(map(_is_large, paths)):
                record()
            else:
                await self.slow.record(call_id, record)

    async def find_loss(self, effects: Effects, paths: Sequence[str]) -> str:
        """Why undo could not restore these paths and everything below; empty if it could."""
        return await run_in_thread(lambda: self._tree.find_loss(effects, paths))

    def keep_promises(self) -> None:
        """Return when the records of running calls are durable; raises to stop the change."""
        with convert_disk_errors():
            self._store.keep_pins()
            self._journal.keep_promises()

    def write_again(self) -> None:
        """Record the results of calls for which that failed earlier."""
        if self._tree.tracker is not None:
            self._tree.tracker.write_again()

    def open_trace(self, call_id: str) -> int | None:
        """The trace file for the processes of a running call; None for no trace."""
        return None if self._tree.tracker is None else self._tree.tracker.open_trace(call_id)

    async def after(self, call_id: str) -> tuple[str, ...]:
        """Record what an ended call left, on success or failure; return notes."""
        finish = self._forget if self.slow.take_unstarted(call_id) else self._after
        if self.slow.put_off(call_id, finish):
            return ()
        return await finish(call_id)

    async def _after(self, call_id: str) -> tuple[str, ...]:
        if self._tree.tracker is not None and call_id in self._tree.tracker:
            return await self._finish_tracked(call_id, self._tree.tracker)
        before = self._open.pop(call_id, None)
        lost = self._lost.pop(call_id, None)
        notes = describe_left_out(lost) if lost else ()
        if before is None:
            await self._finish_again(call_id)
            return notes
        is_known = before.tool in self._comparing
        try:
            states = before.states
            is_long = len(states) > _MANY or self._tree.is_comparing
            if is_long or any(_is_slow(s, is_known=is_known) for s in states):
                notes += await run_in_thread(lambda: self._finish(before))
            else:
                notes += self._finish(before)
        except (OSError, DiskFault) as error:
            # The change is made and undoable: readers of the journal check again.
            _log.warning("the result of %s could not be recorded: %s", call_id, error)
        finally:
            self._let_go(call_id)
            self._journal.leave()
            self._idle.schedule()
        return notes

    async def _forget(self, call_id: str) -> tuple[str, ...]:
        """Record that a call that never started changed nothing."""
        tracked, before = self._tree.tracker, self._open.pop(call_id, None)
        self._bounded.discard(call_id)
        self._lost.pop(call_id, None)
        try:
            if before is not None:
                await run_in_thread(lambda: self._finish_unstarted(before))
            elif tracked is not None and call_id in tracked:
                await run_in_thread(lambda: tracked.forget(call_id))
        except (OSError, DiskFault) as error:
            _log.warning("the unchanged result of %s could not be recorded: %s", call_id, error)
        finally:
            self._idle.schedule()
        return ()

    def _finish_unstarted(self, before: BeforeRecord) -> None:
        try:
            self._left(before, ())
            for state in before.states:
                self._store.settle(state, None)
        finally:
            self._journal.leave()

    async def _finish_tracked(self, call_id: str, tracked: "TreeTracker") -> tuple[str, ...]:
        try:
            return await run_in_thread(lambda: tracked.after(call_id))
        except (OSError, DiskFault) as error:
            _log.warning("the result of %s could not be recorded: %s", call_id, error)
            return ("Its changes could not be recorded; undo will determine them later.",)
        finally:
            self._idle.schedule()

    async def _finish_again(self, call_id: str) -> None:
        """Record what a command with known writes did in the background."""
        if call_id in self._bounded:
            try:
                await run_in_thread(lambda: self._extend(call_id))
            except (OSError, DiskFault, UntrustedRecord) as error:
                _log.warning("the result of %s could not be recorded: %s", call_id, error)
            finally:
                self._idle.schedule()

    def _begin_command(self, call_id: str, tool: str, extent: Extent | None) -> None:
        """Save what a call can write, or else everything in the roots."""
        written = self._tree.resolve(extent)
        if not self._keep_written(call_id, tool, written):
            self._tree.track(call_id, tool, (), written)

    def _keep_written(self, call_id: str, tool: str, written: WriteTargets) -> bool:
        """Save the paths that a call can write; False if it may write more."""
        if written.doubt:
            return False
        places = {**written.inside, **written.outside}
        try:
            if places:
                self._open[call_id] = self._record(
                    call_id, tool, places, late_s=COMMAND_S, lost=written.lost
                )
        except (TooBig, OSError, DiskFault):
            return False
        self._bounded.add(call_id)
        self._lost[call_id] = written.lost
        return True

    def close(self) -> None:
        """Make the journal durable and close it."""
        self._idle.cancel()
        if self._tree.tracker is not None:
            self._tree.tracker.close()
            self._tree.tracker = None
        self._journal.close()

    def _record(
        self,
        call_id: str,
        tool: str,
        places: Places,
        *,
        late_s: float = LATE_S,
        lost: Collection[str] = (),
    ) -> BeforeRecord:
        self._journal.enter()
        states: list[PathState] = []
        bundle = self._store.create_bundle()
        try:
            if self._tree.tracker is not None:
                self._tree.tracker.prepare_claim(call_id, tuple(places))
            left_out = self._places.keep(
                places,
                states,
                bundle,
                may_pin=tool in self._replacing,
                trusting=tool in self._comparing,
                leaves_out=not self._tree.covers(places),
            )
            record = BeforeRecord(
                call_id,
                tool,
                time.time(),
                tuple(add_shared_names(states, self._journal, tool, self._store, self._tree.roots)),
                (*left_out, *map(show_path, lost)),
                tool in self._replacing,
                late_s,
                tuple(os.fsencode(path) for path in places if not self._tree.is_inside(path)),
                read_clock(),
            )
            bundle.seal()
            if tool in self._waiting:
                self._journal.promise(record)
            else:
                self._store.keep_pins()
                self._journal.append(record, durable=True)
        except BaseException:
            bundle.discard()
            for state in states:
                self._store.release(state.kept)
            self._let_go(call_id)
            self._journal.leave()
            raise
        return record

    def _let_go(self, call_id: str) -> None:
        if self._tree.tracker is not None:
            self._tree.tracker.let_go(call_id)

    def _finish(self, before: BeforeRecord) -> tuple[str, ...]:
        found = {state.place: state for state in before.states}
        trusting = before.tool in self._comparing

        def look_at(place: str, state: PathState | None) -> PathState:
            return self._keeper.read_left_state(place, state, trusting=trusting)

        changed = find_changes(found, before.left_out, look_at, paths_only=before.paths_only)
        try:
            return self._left(before, changed)
        finally:
            left = {state.place: state for state in changed}
            for place, state in found.items():
                if state.kept:
                    self._store.settle(state, left.get(place))

    def _extend(self, call_id: str) -> None:
        """Check again what an ended call changed; changes of others stay theirs."""
        self._journal.enter()
        try:
            entries = [e for e in self._journal.entries() if e.call_id == call_id]
            if not entries:
                return
            mine, others = entries[-1], self._journal.find_changed_after(call_id)
            changed = find_changes(
                self._journal.read_contents(mine),
                mine.left_out,
                lambda place, state: self._keeper.read_left_state(place, state, trusting=False),
            )
            first = (mine.after or {}).values()
            kept = [state for state in first if state.place in others]
            self._left(mine, [s for s in changed if s.place not in others], kept)
        finally:
            self._journal.leave()

    def _left(
        self,
        call: BeforeRecord | CallEntry,
        changed: Sequence[PathState],
        earlier: Sequence[PathState] = (),
    ) -> tuple[str, ...]:
        """Record what a call left, now and `earlier`; return notes."""
        call_id = call.call_id
        of_others: tuple[AmbiguousPath, ...] = ()
        if changed and call_id in self._bounded:
            from handaxe.undo.write_evidence import find_changes_of_others, find_states_of_others

            others = find_changes_of_others(self._journal.directory, call)
            of_others = find_states_of_others(changed, others)
        record = AfterRecord(
            call_id, time.time(), (*earlier, *changed), ambiguous=of_others, clock=read_clock()
        )
        self._journal.append(record, durable=False)
        if self._tree.tracker is not None:
            self._tree.tracker.claim(call_id, [state.place for state in changed])
        return describe_ambiguous(of_others, is_traced=False) if of_others else ()


def _is_large(path: str) -> bool:
    """Whether the content is stored outside the record, which may wait for the device."""
    return os.path.lexists(path) and os.lstat(path).st_size > INLINE_BYTES


def _is_slow(state: PathState, *, is_known: bool) -> bool:
    """Whether reading what a call left takes long."""
    try:
        info = os.lstat(state.place)
    except OSError:
        return False
    if state.kept and info.st_ino == state.ino:
        # It was written in place: the content that was kept by a second name gets a copy.
        return True
    return info.st_size > _LARGE_BYTES and not (is_known and info.st_nlink == 1)
