"""The undo journal of one session: written ahead of every change, read to go back.

Separate from the event log, since it holds contents and is pruned. Several processes may use it
at once. A lock that every running call shares tells a call that runs from one that crashed.
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
"""A part of this size is closed, so that pruning can take the old ones away."""

_FORK_S = 0.2
"""So long what a killed process was about to start may hold its lock, until it runs a program."""


class UndoJournal(PooledFile):
    """Appends records, and gives the calls they make up."""

    def __init__(
        self, directory: Path, store: ContentStore, *, session_id: str = "", root: str = ""
    ) -> None:
        self.directory = directory
        self._store = store
        self.damage: list[str] = []
        """What the last reading had to skip, and what is not recorded."""
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
        """Whether a call finds everything made that has to last."""
        return self._has_lasting_name and self._lock_fd >= 0

    @property
    def exists(self) -> bool:
        """Whether the session has changed anything yet."""
        return bool(list_journal_files(self.directory))

    def enter(self) -> None:
        """A call begins; nobody takes it for dead until it leaves."""
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
        """A call that entered has ended."""
        with self._coming_and_going:
            self._running -= 1
            if not self._running:
                locks.release(self._lock_fd)

    def append(self, record: Record, *, durable: bool) -> None:
        """Write one record; with `durable` it is on the device when this returns."""
        payload = self._sealer.seal(encode(record))
        offset = self._log.append(payload)
        self._store.recorded_bytes += len(payload)
        self._ended.expect(record)
        if durable:
            self._sync()
        else:
            # Or the next sync, which somebody waits for, would have all of this to write as well.
            self._log.begin_sync(offset)

    def promise(self, record: Record) -> None:
        """Write one record that `keep_promises` makes durable before the change is made."""
        self.append(record, durable=False)
        self._promised += 1

    def keep_promises(self) -> None:
        """Return when every promised record is on the device; at once if all are."""
        # Another thread may promise more meanwhile, which this sync may miss.
        promised = self._promised
        if self._kept < promised:
            self._sync()
            self._kept = max(self._kept, promised)

    def close(self) -> None:
        """Make everything durable and let go of the file."""
        with self._coming_and_going:
            if self._inode:
                with contextlib.suppress(DiskFault):
                    self._sync()
            self._log.close()
            self._ended.close()
            if not self._running:
                self._let_go()

    def release_files(self) -> bool:
        """Let go of the file while nothing happens; the next call opens it again."""
        with self._coming_and_going:
            if self._running:
                return False
            # What somebody waits for is durable; the rest is on its way, and nobody waits here.
            self._log.close()
            self._ended.close()
            self._let_go()
            return True

    def entries(self) -> list[CallEntry]:
        """Every call in order; what a crash left open is completed first."""
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
        """Complete what a crash left open; nobody writes temporary files so old any more."""
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
        """Where nothing can be written down any more, it can be known all the same."""
        for entry in entries:
            if entry.after is None and entry.tracked is None:
                with contextlib.suppress(OSError, DiskFault):
                    entry.finish(find_left_states(entry), entry.order)
        self.damage.append(f"what calls left that broke off is not recorded: {problem}")

    @property
    def warnings(self) -> tuple[str, ...]:
        """The damage, for a person."""
        return tuple(f"The undo record of this session is damaged: {one}." for one in self.damage)

    def find_hiding(self, calls: int) -> list[JournalDamage]:
        """Damage that may hide a call which began after the first so many."""
        return [one for one in self.damages if one.may_hide_call and one.calls_before >= calls]

    def read_contents(self, entry: CallEntry) -> dict[str, PathState]:
        """What the call found, with the small contents."""
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
        """The paths that calls changed which began after the call of this id."""
        entries = self.entries()
        at = max((n for n, entry in enumerate(entries) if entry.call_id == call_id), default=-1)
        return {place for entry in entries[at + 1 :] for place in entry.after or ()}

    @contextlib.contextmanager
    def alone(self) -> Generator[bool]:
        """Whether no call of this session runs in any process, and none begins inside."""
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
        """Begin a new part when this one is full, or when another process began one."""
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
        """Write to the file that has the name now: a pruning may have written the part anew."""
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
            # Our own lock is shared; alone we may change which file is written to.
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

    None if the beginning of the journal cannot be read.
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
    """Raise where others could have written what a journal says."""
    for place in (path.parent.parent, path.parent, path):
        if problem := find_shared_access(place):
            raise UntrustedRecord(problem)


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
    """Record what a call left that a crash ended, and sweep up its unfinished files."""
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
    """Whether the baseline of a call is a file of a data directory, and no other one."""
    manifest, home = os.path.realpath(tracked.manifest), os.path.realpath(data)
    return is_within(os.fsdecode(manifest), (home,))


def _read_payload(part: Path, offset: int) -> bytes:
    with part.open("rb") as file:
        record = parse_line(read_line_at(file.fileno(), offset), offset)
    if isinstance(record, str):
        raise DiskFault(f"the undo journal is damaged: {record}")
    return record.payload


class EndedCalls:
    """Collects calls until their records are durable, then writes them down."""

    def __init__(self, directory: Path) -> None:
        self._log = LineLog(directory / ENDED_NAME)
        self._waiting: list[EndedCall] = []

    def expect(self, record: Record) -> None:
        """A record was written that is not durable yet."""
        if has_changes(record):
            self._waiting.append(EndedCall(record.call_id, record.at))

    def take(self) -> list[EndedCall]:
        """The calls whose records a sync from here on makes durable."""
        taken, self._waiting = self._waiting, []
        return taken

    def note(self, calls: list[EndedCall]) -> None:
        """Write down calls whose records are durable."""
        # The journal has the call; without this note only a later loss of it goes unnoticed.
        with contextlib.suppress(DiskFault, OSError):
            self._log.extend([msgspec.json.encode(call) for call in calls])

    def close(self) -> None:
        """Let go of the file."""
        self._log.close()
