"""The change history of one session as a port: list, plan and undo changes."""

import contextlib
from collections.abc import Callable, Generator, Sequence

import msgspec

from handaxe.contract.faults.undo import (
    AmbiguousChange,
    AmbiguousChanges,
    DamagedRecord,
    NothingToUndo,
    NotRecorded,
    PrunedCall,
    UndoConflict,
    UndoFailed,
    UnknownCall,
)
from handaxe.contract.ports.undo import (
    ChangedCall,
    ChangeHistory,
    RestoredPath,
    TouchedPath,
    UndoRequest,
    UndoResult,
)
from handaxe.disk import atomic
from handaxe.disk.errors import describe_os_error
from handaxe.disk.threads import run_in_thread
from handaxe.text.escape import format_count
from handaxe.text.paths import quote_path
from handaxe.undo.bulk_restore import PendingStep, apply_steps
from handaxe.undo.call_contents import (
    CallContents,
    explain_change,
    format_difference,
    to_changed_call,
)
from handaxe.undo.content_store import ContentNotSaved, ContentStore
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.call_entries import CallEntry
from handaxe.undo.journal_files.ended_calls import read_pruned_calls
from handaxe.undo.journal_files.entry_selection import find_undone, is_broken_off, select_entries
from handaxe.undo.journal_files.records import UndoRecord
from handaxe.undo.loss_check import resolve_parents
from handaxe.undo.path_state import is_shared_otherwise, read_state
from handaxe.undo.plan import (
    UndoStep,
    drop_foreign_names,
    find_ambiguous,
    find_foreign_entry,
    find_touched,
    mask_reused_inode,
    plan_steps,
)

UndoGate = Callable[[Sequence[TouchedPath]], None]


@contextlib.contextmanager
def _convert_read_errors() -> Generator[None]:
    """Turn disk errors before any change into faults."""
    try:
        yield
    except OSError as error:
        raise UndoFailed("The change", describe_os_error(error), ()) from error
    except atomic.DiskFault as fault:
        raise UndoFailed("The change", str(fault), ()) from fault


class JournalHistory(ChangeHistory):
    """The changes in a session's journal, and undo."""

    def __init__(
        self,
        journal: UndoJournal,
        store: ContentStore,
        *,
        in_place: atomic.Journal | None = None,
    ) -> None:
        self._journal = journal
        self._store = store
        self._in_place = in_place
        self._contents = CallContents(journal, store)

    def touched(self, wanted: UndoRequest) -> tuple[str, ...]:
        """The real paths that the undo would change; a fault if it is not possible."""
        with _convert_read_errors():
            return tuple(step.place for step in self._plan(wanted)[1])

    def preview_undo(self, wanted: UndoRequest, most: int) -> tuple[RestoredPath, ...]:
        """The effect of the undo on the first `most` paths, without changes."""
        with contextlib.ExitStack() as opened, _convert_read_errors():
            steps = self._plan(wanted)[1][:most]
            pending = [self._prepare(step, opened) for step in steps]
            return tuple(item.restored(None) for item in pending if not item.step.is_done(item.now))

    def last_change_at(self, wanted: UndoRequest) -> float:
        """The time of the newest change that would be undone."""
        try:
            with _convert_read_errors():
                return self._plan(wanted)[0][-1].at
        except DamagedRecord:
            # A change that cannot be read may be the last one.
            return max(damage.until for damage in self._journal.find_hiding(0))
        except AmbiguousChanges:
            # It is the last one all the same; undo says what is unclear.
            return self._choose(self._journal.entries(), wanted)[-1].at

    async def put_back(
        self, call_id: str, wanted: UndoRequest, gate: UndoGate | None = None
    ) -> UndoResult:
        """Undo, as a change made by `call_id`, which already has its own record.

        `gate` gets the paths before the change and can stop it with a fault; only the session's
        owner has one.
        """
        with _convert_read_errors():
            targets, steps = self._plan(wanted)
        if gate is not None:
            gate([touched for step in steps for touched in find_touched(step, targets)])
        undid = UndoRecord(
            call_id,
            tuple(entry.call_id for entry in targets),
            is_complete=False,
            is_partial=bool(wanted.paths),
            by_owner=gate is not None,
        )
        # However little it is, the device may need any time to make it durable.
        return await run_in_thread(lambda: self._put_back(undid, targets, steps, wanted))

    def _put_back(
        self,
        undid: UndoRecord,
        targets: list[CallEntry],
        steps: list[UndoStep],
        wanted: UndoRequest,
    ) -> UndoResult:
        with contextlib.ExitStack() as opened:
            with _convert_read_errors():
                pending = [self._prepare(step, opened) for step in steps]
                # A file is as before under the names it has kept when it gets its others again.
                pending.sort(key=lambda item: item.is_rejoining)
                if not wanted.force:
                    self._refuse_conflicts(pending)
            # Recovery after a crash must know the intended states.
            self._note(undid, durable=True)
            restored, lost, is_whole = apply_steps(
                pending, journal=self._in_place, own_links=self._store.own_links
            )
            with contextlib.suppress(NotRecorded):
                # It is done; who comes later finds everything as before.
                self._note(msgspec.structs.replace(undid, is_complete=is_whole), durable=False)
        calls = tuple(
            to_changed_call(entry, self._contents, gone=frozenset()) for entry in reversed(targets)
        )
        alone = self._describe_left_alone(targets, wanted)
        return UndoResult(calls, tuple(restored), (*lost, *self._notes(targets)), alone)

    def _note(self, record: UndoRecord, *, durable: bool) -> None:
        try:
            self._journal.append(record, durable=durable)
        except (OSError, atomic.DiskFault) as fault:
            raise NotRecorded(reason=str(fault)) from fault

    def calls(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call that changed something, oldest first."""
        entries = self._journal.entries()
        gone = find_undone(entries)
        listed = [
            to_changed_call(entry, self._contents, gone=gone, diffs=diffs)
            for entry in entries
            if entry.has_changes
        ]
        known = {(call.call_id, call.at) for call in listed}
        # A crash may have come between the note that a call goes and its going.
        pruned = read_pruned_calls(self._journal.directory)
        return [*(call for call in pruned if (call.call_id, call.at) not in known), *listed]

    def _plan(self, wanted: UndoRequest) -> tuple[list[CallEntry], list[UndoStep]]:
        """The calls to undo, oldest first, and the steps for each path.

        Raises:
            AmbiguousChanges: all remaining changes may come from others.
        """
        if wanted.paths:
            paths = tuple(map(resolve_parents, wanted.paths))
            wanted = msgspec.structs.replace(wanted, paths=paths)
        entries = self._journal.entries()
        targets = self._choose(entries, wanted)
        steps = drop_foreign_names(plan_steps(targets, wanted))
        if not steps and wanted.paths:
            raise NothingToUndo(redo=wanted.redo, of_paths=True)
        if not steps and (alone := self._describe_left_alone(targets, wanted)):
            raise AmbiguousChanges(alone)
        if is_broken_off(entries, targets):
            for step in steps:
                step.is_continued = True
        return targets, steps

    def _describe_left_alone(
        self, targets: Sequence[CallEntry], wanted: UndoRequest
    ) -> tuple[AmbiguousChange, ...]:
        return tuple(
            AmbiguousChange(
                left.shown,
                entry.call_id,
                explain_change(entry, place),
                entry.ambiguous[place].session_id,
                self._contents.diff_change(entry, place, entry.found(place), left),
            )
            for entry, place in find_ambiguous(targets, wanted)
            if (left := (entry.after or {}).get(place)) is not None
        )

    def _choose(self, entries: Sequence[CallEntry], wanted: UndoRequest) -> list[CallEntry]:
        damaged = [damage.sentence for damage in self._journal.damages]
        try:
            targets = select_entries(entries, wanted, self._list_pruned_undos(wanted))
        except UnknownCall as unknown:
            for call in read_pruned_calls(self._journal.directory):
                if call.call_id == wanted.call_id:
                    raise PrunedCall(call_id=call.call_id, why="old records were pruned") from None
            raise UnknownCall(unknown.call_id, unknown.known, damage=damaged) from None
        except NothingToUndo:
            if self._journal.find_hiding(0):
                raise DamagedRecord(damaged) from None
            if pruned := read_pruned_calls(self._journal.directory):
                older = (
                    f"{format_count(len(pruned), 'older call')} can no longer be undone: pruned."
                )
                raise NothingToUndo(redo=wanted.redo, hint=older) from None
            raise
        last = next(at for at, entry in enumerate(entries) if entry is targets[-1])
        if wanted.call_id is None and self._journal.find_hiding(last + 1):
            raise DamagedRecord(damaged, targets[-1].call_id, targets[-1].tool)
        return targets

    def _list_pruned_undos(self, wanted: UndoRequest) -> set[str]:
        """The ids of undos that were pruned; only a redo needs them."""
        calls = read_pruned_calls(self._journal.directory) if wanted.redo else ()
        return {call.call_id for call in calls if call.tool == "Undo"}

    def _prepare(self, step: UndoStep, opened: contextlib.ExitStack) -> PendingStep:
        """Read the path and open the content, before anything changes."""
        now, found = read_state(step.place)
        step.target = target = mask_reused_inode(step, now, self._store.own_links)
        content: bytes | memoryview = b""
        is_same = now.is_same(target) and not is_shared_otherwise(target, now)
        if target.kind == "file" and not is_same:
            try:
                content = self._contents.open_content(
                    step.target_entry, step.kept or target, opened
                )
            except ContentNotSaved as fault:
                raise PrunedCall(call_id=step.target_entry.call_id, why=str(fault)) from fault
        return PendingStep(step, now, found, content)

    def _refuse_conflicts(self, pending: Sequence[PendingStep]) -> None:
        conflicts: list[tuple[str, str, str]] = []
        going = {item.step.place for item in pending if item.step.target.kind == "absent"}
        for item in pending:
            step = item.step
            if step.is_done(item.now) or step.is_halfway(item.now):
                continue
            if reason := step.find_objection(item.now):
                conflicts.append((step.target.shown, reason, self._diff_foreign_change(item)))
            elif step.is_replacing_directory(item.now) and (
                other := find_foreign_entry(step.place, going)
            ):
                reason = f"{quote_path(other)} is in it now and must be moved away first"
                conflicts.append((step.target.shown, reason, ""))
        if conflicts:
            raise UndoConflict(conflicts)

    def _diff_foreign_change(self, item: PendingStep) -> str:
        """The diff of a change by others."""
        step = item.step
        if step.broken is None:
            left = self._contents.read_left_content(step.last_entry, step.place)
            found = b"" if item.now.kind == "absent" else item.found
            return format_difference(left, found, step.target.shown)
        entry, _, state = step.broken
        before = [other for other in self._journal.entries() if step.place in (other.after or {})]
        at = next(i for i, other in enumerate(before) if other.call_id == entry.call_id)
        contents = self._contents
        left = contents.read_left_content(before[at - 1], step.place) if at else None
        return format_difference(left, contents.read_small_content(entry, state), step.target.shown)

    def _notes(self, targets: Sequence[CallEntry]) -> tuple[str, ...]:
        left_out = [place for entry in targets for place in entry.left_out]
        notes = [
            f"{place} was not saved completely; changes there were not undone."
            for place in left_out
        ]
        return (
            *notes,
            *(f"The undo journal is damaged: {found}" for found in self._journal.damage),
        )
