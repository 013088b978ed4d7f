"""The undo journal of one session: written before every change, read for undo.

It is separate from the event log because it holds contents and is pruned. Several processes may use
it at once. Every running call holds a shared lock, so a crashed call can be recognized.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import msgspec

from handaxe.contract.faults.undo import UntrustedRecord
from handaxe.disk import locks
from handaxe.disk.append_log import LineLog, parse_line, scan
from handaxe.disk.append_log_records import read_line_at
from handaxe.disk.durability import close
from handaxe.disk.errors import DiskFault
from handaxe.disk.private import find_shared_access
from handaxe.disk.temp_files import remove_leftovers
from handaxe.storage.event_log import PooledFile
from handaxe.storage.home import make_durable_directory, sync_directory_names
from handaxe.text.paths import is_within
from handaxe.undo.content_store import ContentStore
from handaxe.undo.journal_files.call_entries import CallEntry, make_entry
from handaxe.undo.journal_files.ended_calls import EndedCall
from handaxe.undo.journal_files.journal_scan import JournalDamage, JournalScan
from handaxe.undo.journal_files.liveness import LivenessFile, find_oldest_living
from handaxe.undo.journal_files.record_key import Sealer
from handaxe.undo.journal_files.records import (
    ENDED_NAME,
    JOURNAL_NAME,
    LOCK_NAME,
    AfterRecord,
    BeforeRecord,
    JournalStart,
    MovedRecord,
    PathState,
    Record,
    TrackedRecord,
    UndoRecord,
    decode,
    encode,
    encode_path,
    find_states,
    has_changes,
    list_journal_files,
)
from handaxe.undo.plan import find_left_states, find_undo_progress

PART_BYTES = 16 << 20
"""A part of this size is closed, so that old parts can be pruned."""

_FORK_S = 0.2
"""How long a child of a killed process may hold its lock before it executes a program."""


class UndoJournal(PooledFile):
    """Appends records and reads the calls they form."""

    def __init__(
        self, directory: Path, store: ContentStore, *, session_id: str = "", root: str = ""
    ) -> None:
        self.directory = directory
        self._store = store
        self.damage: list[str] = []
        """The parts that the last read skipped, and calls that are not recorded."""
        self.damages: list[JournalDamage] = []
        self._sealer = Sealer(store.home, f"journal of {directory.name}")
        self._start = JournalStart(session_id, *encode_path(root))
        self._path = directory / JOURNAL_NAME
        self._log = LineLog(self._path)
        self._ended = EndedCalls(directory)
        self._inode = 0
        self._lock_fd = -1
        self._liveness = LivenessFile(store.home, directory.name)
        self._running = 0
        # Calls whose record takes long begin in threads of their own.
        self._coming_and_going = threading.RLock()
        self._promised = self._kept = 0
        self._has_lasting_name = False

    @property
    def is_begun(self) -> bool:
        """Whether the journal's files exist durably."""
        return self._has_lasting_name and self._lock_fd >= 0

    @property
    def exists(self) -> bool:
        """Whether the session has changed anything."""
        return bool(list_journal_files(self.directory))

    def enter(self) -> None:
        """Start a call; until `leave` it counts as running."""
        with self._coming_and_going:
            if not self._running:
                self._sealer.prepare()
                if self._lock_fd < 0:
                    self._lock_fd = self._open_lock()
                    self._liveness.hold()
                try:
                    locks.hold(self._lock_fd, shared=True)
                    self._follow_parts()
                    self._has_lasting_name = True
                except BaseException:
                    self._let_go()
                    raise
            self._running += 1

    def leave(self) -> None:
        """End a call that entered."""
        with self._coming_and_going:
            self._running -= 1
            if not self._running:
                locks.release(self._lock_fd)

    def append(self, record: Record, *, durable: bool) -> None:
        """Write one record; with `durable` it is synced on return."""
        payload = self._sealer.seal(encode(record))
        offset = self._log.append(payload)
        self._store.recorded_bytes += len(payload)
        self._ended.expect(record)
        if durable:
            self._sync()
        else:
            # Otherwise the next sync, for which a caller waits, would write all of this too.
            self._log.begin_sync(offset)

    def promise(self, record: Record) -> None:
        """Write one record that `keep_promises` syncs before the change."""
        self.append(record, durable=False)
        self._promised += 1

    def keep_promises(self) -> None:
        """Return when every promised record is synced; immediate if all are."""
        # Another thread may promise more meanwhile, which this sync may miss.
        promised = self._promised
        if self._kept < promised:
            self._sync()
            self._kept = max(self._kept, promised)

    def close(self) -> None:
        """Sync everything and close the file."""
        with self._coming_and_going:
            if self._inode:
                with contextlib.suppress(DiskFault):
                    self._sync()
            self._log.close()
            self._ended.close()
            if not self._running:
                self._let_go()

    def release_files(self) -> bool:
        """Close the file while idle; the next call reopens it."""
        with self._coming_and_going:
            if self._running:
                return False
            # Awaited records are durable; the rest is being written, and no caller waits for it.
            self._log.close()
            self._ended.close()
            self._let_go()
            return True

    def entries(self) -> list[CallEntry]:
        """Every call in order; calls left open by a crash are completed first."""
        entries = self._read()
        if all(entry.after is not None for entry in entries):
            return entries
        problem: str | None = None
        try:
            with self.alone() as is_alone:
                if not is_alone:
                    return entries
                problem = self.complete_all(find_oldest_living(self._store.home))
        except (OSError, DiskFault) as error:
            problem = str(error)
        entries = self._read()
        if problem is not None:
            self._find_out(entries, problem)
        return entries

    def complete_all(
        self, older_than: float, is_wanted: Callable[[CallEntry], bool] = bool
    ) -> str | None:
        """Complete calls left open by a crash; temporary files older than the limit are unused."""
        self._follow_rename()
        # Another process may have completed them while we waited for the lock.
        entries = self._read()
        crashed = [entry for entry in entries if entry.after is None and is_wanted(entry)]
        problem: str | None = None
        for entry in crashed:
            try:
                _complete_call(self, self._store, entry, entries, older_than)
            except (OSError, DiskFault) as error:
                problem = str(error)
        for entry in crashed if problem is None else ():
            if entry.tracked is not None and _is_kept_here(entry.tracked, self._store.home):
                Path(os.fsdecode(entry.tracked.manifest)).unlink(missing_ok=True)
        return problem

    def _find_out(self, entries: Sequence[CallEntry], problem: str) -> None:
        """Determine the changes in memory if nothing can be written."""
        for entry in entries:
            if entry.after is None and entry.tracked is None:
                with contextlib.suppress(OSError, DiskFault):
                    entry.finish(find_left_states(entry), entry.order)
        self.damage.append(f"the changes of interrupted calls are not recorded: {problem}")

    @property
    def warnings(self) -> tuple[str, ...]:
        """The damage, for the user."""
        return tuple(f"The undo record of this session is damaged: {one}." for one in self.damage)

    def find_hiding(self, calls: int) -> list[JournalDamage]:
        """Damage that may hide a call after the first ones."""
        return [one for one in self.damages if one.may_hide_call and one.calls_before >= calls]

    def read_contents(self, entry: CallEntry) -> dict[str, PathState]:
        """The states that the call found, with small contents."""
        found: dict[str, PathState] = {}
        for part, offset in ((entry.part, entry.offset), *entry.more):
            payload = _read_payload(part, offset)
            record = decode(payload)
            if entry.is_sealed and not self._sealer.is_sealed(payload):
                raise DiskFault("the undo journal was changed a moment ago")
            for state in find_states(record):
                found.setdefault(state.place, state)
        return found

    def find_changed_after(self, call_id: str) -> set[str]:
        """The paths that calls after this one changed."""
        entries = self.entries()
        at = max((n for n, entry in enumerate(entries) if entry.call_id == call_id), default=-1)
        return {place for entry in entries[at + 1 :] for place in entry.after or ()}

    @contextlib.contextmanager
    def alone(self) -> Generator[bool]:
        """Whether no other process runs a call of this session, and none starts inside."""
        fd = self._open_lock()
        try:
            try:
                locks.hold(fd, wait_s=0 if self._running else _FORK_S)
            except locks.LockTimeout:
                yield False
            else:
                yield True
        finally:
            close(fd)

    def _sync(self) -> None:
        ended = self._ended.take()
        self._log.sync()
        self._ended.note(ended)

    def _let_go(self) -> None:
        if self._lock_fd >= 0:
            self._liveness.drop()
            close(self._lock_fd)
            self._lock_fd = -1

    def _open_lock(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(self.directory / LOCK_NAME, flags, 0o600)
        except FileNotFoundError:
            make_durable_directory(self.directory)
            return os.open(self.directory / LOCK_NAME, flags, 0o600)

    def _follow_parts(self) -> None:
        """Start a new part if this one is full or another process started one."""
        try:
            info = os.stat(self._path)
        except FileNotFoundError:
            self._begin()
            return
        if info.st_size > PART_BYTES and self._close_part():
            self._begin()
            return
        self._follow_rename()

    def _follow_rename(self) -> None:
        """Reopen the file if pruning replaced it."""
        with contextlib.suppress(FileNotFoundError):
            inode = os.stat(self._path).st_ino
            if inode != self._inode:
                self._log.close()
            self._inode = inode

    def _begin(self) -> None:
        # The way to the record has to last as the record does; the event log may have made it.
        if not self._has_lasting_name:
            sync_directory_names(self.directory)
        self._log.close()
        # No sync of the new part makes the end of the old one durable.
        self._ended.take()
        self._log = LineLog(self._path)
        self.append(self._start, durable=False)
        self._inode = os.stat(self._path).st_ino

    def _close_part(self) -> bool:
        try:
            # This process holds a shared lock; only with an exclusive one may the file be replaced.
            locks.hold(self._lock_fd, wait_s=0)
        except locks.LockTimeout:
            return False
        try:
            number = len(list_journal_files(self.directory))
            while (part := self.directory / f"journal-{number:06}.jsonl").exists():
                number += 1
            self._path.rename(part)
        finally:
            locks.hold(self._lock_fd, shared=True)
        return True

    def _read(self) -> list[CallEntry]:
        entries: list[CallEntry] = []
        latest: dict[str, CallEntry] = {}
        for part in list_journal_files(self.directory):
            refuse_shared(part)
        journal = JournalScan(self.directory)
        for order, read in enumerate(journal):
            record = read.record
            is_sealed = self._sealer.is_sealed(read.payload)
            if isinstance(record, BeforeRecord | TrackedRecord):
                latest[record.call_id] = make_entry(record, read.part, read.offset, order)
                latest[record.call_id].is_sealed = is_sealed
                latest[record.call_id].size_bytes = read.size_bytes
                entries.append(latest[record.call_id])
            elif not isinstance(record, JournalStart) and record.call_id in latest:
                latest[record.call_id].is_sealed &= is_sealed
                latest[record.call_id].size_bytes += read.size_bytes
                _take(latest[record.call_id], record, read.part, read.offset, order)
        self.damages = journal.damages
        self.damage = [damage.sentence for damage in journal.damages]
        return entries


def read_journal_root(journal: Path, home: Path) -> tuple[str | None, bool]:
    """The project whose changes a journal records, and whether that is sealed.

    None if the start of the journal cannot be read.
    """
    for line in scan(journal):
        try:
            record = decode(line.payload)
        except msgspec.MsgspecError:
            return None, False
        if not isinstance(record, JournalStart):
            return None, False
        sealer = Sealer(home, f"journal of {journal.parent.name}")
        return record.place, sealer.is_sealed(line.payload)
    return None, False


def refuse_shared(path: Path) -> None:
    """Raise if other users could have written the journal."""
    for place in (path.parent.parent, path.parent, path):
        if problem := find_shared_access(place):
            raise UntrustedRecord(problem=problem)


def _take(
    entry: CallEntry,
    record: AfterRecord | MovedRecord | UndoRecord,
    part: Path,
    offset: int,
    order: int,
) -> None:
    if isinstance(record, AfterRecord):
        entry.finish(record, order)
    elif isinstance(record, MovedRecord):
        entry.extend(record, part, offset, order)
    else:
        entry.note_undo(record)


def _complete_call(
    journal: UndoJournal,
    store: ContentStore,
    entry: CallEntry,
    entries: Sequence[CallEntry],
    older_than: float,
) -> None:
    """Record what a crashed call left, and remove its unfinished files."""
    if entry.tracked is not None and _is_kept_here(entry.tracked, store.home):
        from handaxe.undo.tree_states import recover_tracked_changes

        record = recover_tracked_changes(entry.tracked, store.home, store, journal.directory)
        outside = find_left_states(entry)
        journal.append(
            msgspec.structs.replace(
                record,
                left=(*record.left, *outside.states),
                doubtful=(*record.doubtful, *outside.doubtful),
            ),
            durable=True,
        )
        return
    for parent in {os.path.split(place)[0] for place in entry.before if entry.is_sealed}:
        with contextlib.suppress(OSError, DiskFault):
            remove_leftovers(parent, older_than=older_than)
    ended: UndoRecord | None = None
    if entry.undoes and not entry.is_complete:
        record, ended = find_undo_progress(entry, entries)
    else:
        record = find_left_states(entry)
    journal.append(record, durable=True)
    if ended is not None:
        journal.append(ended, durable=True)
    left = {state.place: state for state in record.states}
    for place, state in entry.before.items():
        store.settle(state, left.get(place))


def _is_kept_here(tracked: TrackedRecord, data: Path) -> bool:
    """Whether the baseline of a call is a file of this data directory."""
    manifest, home = os.path.realpath(tracked.manifest), os.path.realpath(data)
    return is_within(os.fsdecode(manifest), (home,))


def _read_payload(part: Path, offset: int) -> bytes:
    with part.open("rb") as file:
        record = parse_line(read_line_at(file.fileno(), offset), offset)
    if isinstance(record, str):
        raise DiskFault(f"the undo journal is damaged: {record}")
    return record.payload


class EndedCalls:
    """Collects calls until their records are durable, then lists them."""

    def __init__(self, directory: Path) -> None:
        self._log = LineLog(directory / ENDED_NAME)
        self._waiting: list[EndedCall] = []

    def expect(self, record: Record) -> None:
        """Add a record that is not durable yet."""
        if has_changes(record):
            self._waiting.append(EndedCall(record.call_id, record.at))

    def take(self) -> list[EndedCall]:
        """The calls whose records the next sync makes durable."""
        taken, self._waiting = self._waiting, []
        return taken

    def note(self, calls: list[EndedCall]) -> None:
        """List calls whose records are durable."""
        # The journal has the call; without this note only a later loss of it goes unnoticed.
        with contextlib.suppress(DiskFault, OSError):
            self._log.extend([msgspec.json.encode(call) for call in calls])

    def close(self) -> None:
        """Close the file."""
        self._log.close()
