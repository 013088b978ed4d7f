"""The changes of one session as a port: listed, planned back, put back."""

import contextlib
import os
from collections.abc import Callable, Collection, Generator, Sequence

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
from handaxe.contract.ports.files import FileVersion
from handaxe.contract.ports.undo import (
    ChangedCall,
    ChangeHistory,
    ChangeKind,
    PathChange,
    PutBack,
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
from handaxe.undo.bulk_restore import BulkRestorer
from handaxe.undo.content_bundle import BUNDLE, INLINE_BYTES
from handaxe.undo.content_store import ContentNotSaved, ContentStore
from handaxe.undo.directory_trees import explain_ambiguous, is_shared_otherwise
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.call_entries import (
    CallEntry,
    find_undone,
    is_broken_off,
    select_entries,
)
from handaxe.undo.journal_files.ended_calls import read_pruned_calls
from handaxe.undo.journal_files.records import PathState, UndoRecord
from handaxe.undo.loss_check import resolve_parents
from handaxe.undo.path_state import apply_splice, read_state
from handaxe.undo.plan import (
    UndoStep,
    find_ambiguous,
    find_foreign_entry,
    find_touched,
    mask_reused_inode,
    plan_steps,
)
from handaxe.undo.restore import CannotMake, InUse, Restorer

UndoGate = Callable[[Sequence[TouchedPath]], None]
_MANY = 50


@contextlib.contextmanager
def _convert_read_errors() -> Generator[None]:
    """Turn what the disk refuses into a fault, while nothing has been changed yet."""
    try:
        yield
    except OSError as error:
        raise UndoFailed("The change", describe_os_error(error), ()) from error
    except atomic.DiskFault as fault:
        raise UndoFailed("The change", str(fault), ()) from fault


class JournalHistory(ChangeHistory):
    """What the journal of a session knows, and the way back."""

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
        self._read: tuple[tuple[str, float, int], dict[str, PathState]] | None = None

    def touched(self, wanted: UndoRequest) -> tuple[str, ...]:
        """The real paths that putting this back would change; a fault if it cannot be done."""
        with _convert_read_errors():
            return tuple(step.place for step in self._plan(wanted)[1])

    def preview_undo(self, wanted: UndoRequest, most: int) -> tuple[RestoredPath, ...]:
        """What putting this back would do to the first `most` paths; nothing is done."""
        with contextlib.ExitStack() as opened, _convert_read_errors():
            steps = self._plan(wanted)[1][:most]
            pending = [self._prepare(step, opened) for step in steps]
            return tuple(item.restored(None) for item in pending if not item.step.is_done(item.now))

    def last_change_at(self, wanted: UndoRequest) -> float:
        """When the last of the changes was made that would be put back."""
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
        """Put it back, as a change made by `call_id`, which has its own record already.

        `gate` is told what is about to be changed, and stops it by a fault; only the owner of the
        session has one.
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
            # Whoever continues after a crash has to know what the paths were to become.
            self._note(undid, durable=True)
            restored, lost, is_whole = self._apply(pending)
            with contextlib.suppress(NotRecorded):
                # It is done; who comes later finds everything as before.
                self._note(msgspec.structs.replace(undid, is_complete=is_whole), durable=False)
        calls = tuple(self._to_changed_call(entry, gone=frozenset()) for entry in reversed(targets))
        alone = self._describe_left_alone(targets, wanted)
        return UndoResult(calls, tuple(restored), (*lost, *self._notes(targets)), alone)

    def _note(self, record: UndoRecord, *, durable: bool) -> None:
        try:
            self._journal.append(record, durable=durable)
        except (OSError, atomic.DiskFault) as fault:
            raise NotRecorded(str(fault)) from fault

    def calls(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call that changed something, oldest first."""
        entries = self._journal.entries()
        gone = find_undone(entries)
        listed = [
            self._to_changed_call(entry, gone=gone, diffs=diffs)
            for entry in entries
            if entry.has_changes
        ]
        known = {(call.call_id, call.at) for call in listed}
        # A crash may have come between the note that a call goes and its going.
        pruned = read_pruned_calls(self._journal.directory)
        return [*(call for call in pruned if (call.call_id, call.at) not in known), *listed]

    def _plan(self, wanted: UndoRequest) -> tuple[list[CallEntry], list[UndoStep]]:
        """The calls to put back, oldest first, and what that means for each path.

        Raises:
            AmbiguousChanges: nothing is left to do, as all of it may be somebody else's.
        """
        if wanted.paths:
            paths = tuple(map(resolve_parents, wanted.paths))
            wanted = msgspec.structs.replace(wanted, paths=paths)
        entries = self._journal.entries()
        targets = self._choose(entries, wanted)
        steps = plan_steps(targets, wanted)
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
                _explain(entry, place),
                entry.ambiguous[place].session_id,
                self._shown(entry, place, entry.found(place), left),
            )
            for entry, place in find_ambiguous(targets, wanted)
            if (left := (entry.after or {}).get(place)) is not None
        )

    def _choose(self, entries: Sequence[CallEntry], wanted: UndoRequest) -> list[CallEntry]:
        damaged = [damage.sentence for damage in self._journal.damages]
        try:
            targets = select_entries(entries, wanted)
        except UnknownCall as unknown:
            for call in read_pruned_calls(self._journal.directory):
                if call.call_id == wanted.call_id:
                    raise PrunedCall(call.call_id, "old records were pruned") from None
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

    def _prepare(self, step: UndoStep, opened: contextlib.ExitStack) -> "_Pending":
        """Look at the path and have the content ready, before anything is changed."""
        now, found = read_state(step.place)
        step.target = target = mask_reused_inode(step, now)
        content: bytes | memoryview = b""
        is_same = now.is_same(target) and not is_shared_otherwise(target, now)
        if target.kind == "file" and not is_same:
            try:
                content = self._content(step.target_entry, target, opened)
            except ContentNotSaved as fault:
                raise PrunedCall(step.target_entry.call_id, str(fault)) from fault
        return _Pending(step, now, found, content)

    def _content(
        self, entry: CallEntry, state: PathState, opened: contextlib.ExitStack
    ) -> bytes | memoryview:
        if state.kept:
            return opened.enter_context(self._store.view(state))
        kept = self._read_small_content(entry, state)
        if kept is None:
            raise ContentNotSaved(
                f"the content of {state.shown} could not be read when it was replaced"
            )
        return kept

    def _read_small_content(self, entry: CallEntry, state: PathState) -> bytes | None:
        """The content a call found, if it was small enough to stand in the journal."""
        try:
            if state.kept.startswith(BUNDLE) and state.size_bytes <= INLINE_BYTES:
                with self._store.view(state) as kept:
                    return bytes(kept)
            return self._read_contents(entry)[state.place].content
        except (KeyError, OSError, atomic.DiskFault, msgspec.MsgspecError):
            return None

    def _read_contents(self, entry: CallEntry) -> dict[str, PathState]:
        """The small contents of an entry, read once for all of its paths."""
        key = entry.call_id, entry.at, len(entry.more)
        if self._read is None or self._read[0] != key:
            self._read = key, self._journal.read_contents(entry)
        return self._read[1]

    def _read_left_content(self, entry: CallEntry, place: str) -> bytes | None:
        """The content a call left, if it was small."""
        left = (entry.after or {})[place]
        found = entry.found(place)
        old = b"" if found.kind != "file" else self._read_small_content(entry, found)
        if old is None or left.splice is None:
            return old if left.is_same(found) else None
        return apply_splice(old, left.splice)

    def _refuse_conflicts(self, pending: Sequence["_Pending"]) -> None:
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
                reason = f"{quote_path(other)} is in it by now, and has to be moved away first"
                conflicts.append((step.target.shown, reason, ""))
        if conflicts:
            raise UndoConflict(conflicts)

    def _diff_foreign_change(self, item: "_Pending") -> str:
        """What somebody else changed, as a diff."""
        step = item.step
        if step.broken is None:
            left = self._read_left_content(step.last_entry, step.place)
            found = b"" if item.now.kind == "absent" else item.found
            return format_difference(left, found, step.target.shown)
        entry, _, state = step.broken
        before = [other for other in self._journal.entries() if step.place in (other.after or {})]
        at = next(i for i, other in enumerate(before) if other.call_id == entry.call_id)
        left = self._read_left_content(before[at - 1], step.place) if at else None
        return format_difference(left, self._read_small_content(entry, state), step.target.shown)

    def _apply(self, pending: Sequence["_Pending"]) -> tuple[list[RestoredPath], list[str], bool]:
        """Make every step; what was done, what has to be told besides, and whether that is all."""
        kind = BulkRestorer if len(pending) > _MANY else Restorer
        restorer = kind(journal=self._in_place, own_links=self._store.own_links)
        restored: list[RestoredPath] = []
        notes: list[str] = []
        is_whole = True
        for item in pending:
            if item.now.kind == "directory":
                restorer.open_up(item.step.place, item.now.mode)
        try:
            for item in pending:
                step = item.step
                if item.is_shared:
                    # Another name of the same file may have been put back a moment ago.
                    item.now, _ = read_state(step.place)
                is_done = step.is_done(item.now) and not item.is_apart
                try:
                    if is_done:
                        if step.is_continued and not step.is_finished(item.now):
                            restorer.finish_path(step.target)
                        restored.append(RestoredPath(step.place, "already as before"))
                        continue
                    version = restorer.put(step.target, item.now, item.content, step.mode)
                except (CannotMake, InUse) as fault:
                    is_open = isinstance(fault, InUse) and step.target.kind != "absent"
                    is_whole = is_whole and not is_open
                    later = " Undo again once that is moved away." if is_open else ""
                    notes.append(f"{step.target.shown} was left as it is: {fault}.{later}")
                    continue
                except (atomic.DiskFault, OSError) as fault:
                    raise _give_up(step, fault, restored) from fault
                restored.append(item.restored(version))
            self._complete(restorer, restored)
        finally:
            restorer.finish()
        return restored, notes, is_whole

    def _complete(self, restorer: Restorer, restored: Sequence[RestoredPath]) -> None:
        try:
            restorer.complete()
        except (atomic.DiskFault, OSError) as fault:
            done = [quote_path(one.path) for one in restored if os.path.lexists(one.path)]
            raise UndoFailed("The rest of it", str(fault), done) from fault

    def _to_changed_call(
        self, entry: CallEntry, *, gone: Collection[str], diffs: bool = False
    ) -> ChangedCall:
        changes: list[PathChange] = []
        for place, left in (entry.after or {}).items():
            found = entry.found(place)
            shown = self._shown(entry, place, found, left) if diffs else ""
            kind, reason = classify_change(found, left), _explain(entry, place)
            changes.append(PathChange(left.shown, kind, shown, reason))
        return ChangedCall(
            call_id=entry.call_id,
            tool=entry.tool,
            at=entry.at,
            changes=tuple(changes),
            undone=entry.call_id in gone,
            undoes=entry.undoes,
            broken_off=not entry.is_complete,
            cut_off=entry.found_late,
            left_out=entry.left_out,
        )

    def _shown(self, entry: CallEntry, place: str, found: PathState, left: PathState) -> str:
        old = b"" if found.kind != "file" else self._read_small_content(entry, found)
        new = b"" if left.kind != "file" else self._read_left_content(entry, place)
        return format_difference(old, new, left.shown)

    def _notes(self, targets: Sequence[CallEntry]) -> tuple[str, ...]:
        left_out = [place for entry in targets for place in entry.left_out]
        notes = [
            f"{place} was not kept whole; changes there were not undone." for place in left_out
        ]
        return (
            *notes,
            *(f"The undo journal is damaged: {found}" for found in self._journal.damage),
        )


def _give_up(step: UndoStep, fault: Exception, restored: Sequence[RestoredPath]) -> UndoFailed:
    """The fault of an undo that the system stopped at a step."""
    done = [quote_path(one.path) for one in restored if one.action != "already as before"]
    applied = getattr(fault, "applied", False)
    return UndoFailed(step.target.shown, str(fault), done, applied=applied)


def _explain(entry: CallEntry, place: str) -> str:
    """Why a changed path does not count as the call's own; empty if it does."""
    if place not in entry.ambiguous:
        return ""
    return explain_ambiguous(entry.ambiguous[place], is_traced=entry.is_traced)


class _Pending(msgspec.Struct):
    """A step with what it will be compared with and replaced by."""

    step: UndoStep
    now: PathState
    found: bytes | None
    content: bytes | memoryview

    @property
    def is_shared(self) -> bool:
        """Whether the file has other names, now or as it is to be."""
        return bool(self.step.target.shared_with or self.step.expected.shared_with)

    @property
    def is_rejoining(self) -> bool:
        """Whether the path has to become a name of a file that has others, and is none now."""
        target, now = self.step.target, self.now
        return bool(target.shared_with) and (now.dev, now.ino) != (target.dev, target.ino)

    @property
    def is_apart(self) -> bool:
        """Whether it has the right content, but not the right other names."""
        return is_shared_otherwise(self.step.target, self.now)

    def restored(self, version: atomic.Version | None) -> RestoredPath:
        """The step after it was made."""
        place = self.step.place
        small = self.content if isinstance(self.content, bytes) else None
        return RestoredPath(
            path=place,
            action=_name_action(self.step.target, self.now),
            before=self.found,
            after=small if self.step.target.kind == "file" else None,
            replaced_digest=self.now.digest,
            version=version
            and FileVersion(place, version.digest, version.size_bytes, version.mtime_ns),
        )


def _name_action(target: PathState, now: PathState) -> PutBack:
    if target.kind == "absent":
        return "removed"
    if now.kind == "absent":
        return "recreated"
    return "mode restored" if now.is_same(target) else "restored"


SHOWN_BYTES = 1 << 20


def format_difference(before: bytes | None, after: bytes | None, path: str) -> str:
    """A unified diff; empty where one of the two is large or not text."""
    from handaxe.text.diff import format_unified_diff
    from handaxe.text.encoding import NotText, decode

    if before is None or after is None or max(len(before), len(after)) > SHOWN_BYTES:
        return ""
    try:
        return format_unified_diff(
            decode(before).text, decode(after).text, old_name=path, new_name=path
        )
    except NotText:
        return ""


def classify_change(found: PathState, left: PathState) -> ChangeKind:
    """What happened to a path, in one word."""
    if found.kind == "absent":
        return "created"
    if left.kind == "absent":
        return "deleted"
    return "mode" if found.is_same(left) else "modified"
