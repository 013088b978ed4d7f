"""The store for the state before a command: not accessible to commands, and durable.

Each process has a locked directory in the ledger. It contains copies of protected files, and a
record per running command, whose first byte tells whether the command still runs. A process that
finds an unlocked directory restores its records.
"""

import fcntl
import os
import shutil
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from handaxe.shell.sandbox.saved_states import ContentCopies, SavedState

PREFIX = "before-"
"""The prefix of every such directory."""
_RUNS, _ENDED = b"1", b"0"

_lock = threading.Lock()
_stores: dict[str, tuple["SavedStateStore", int]] = {}
"""Each store, and the file descriptor that holds its lock."""


class RestoreRecord(msgspec.Struct, frozen=True):
    """The state to restore after a command, as plain data."""

    roots: tuple[str, ...]
    aside: str
    before: dict[str, SavedState] = {}
    directories: dict[str, tuple[int, int]] = {}
    """Directories that must stay the same, with device and inode."""
    found: tuple[str, ...] = ()
    """Existing protected names."""
    repositories: tuple[str, ...] = ()
    """Directories that git treated as repositories."""
    protected_names: tuple[str, ...] = ()
    protected_endings: tuple[str, ...] = ()
    protected_pairs: tuple[tuple[str, str], ...] = ()


class SavedStateStore:
    """The states saved by this process."""

    def __init__(self, directory: str) -> None:
        self.copies = ContentCopies(directory)
        self.states: dict[str, SavedState] = {}
        """The last saved state of each path."""
        self._records: dict[str, RestoreRecord | None] = {}
        self._idle: list[str] = []
        self.users = 0
        """The number of running commands."""

    def begin(self, record: RestoreRecord) -> str:
        """Record what must be restored after a command; returns the record's name for `end`."""
        with _lock:
            same = [name for name in self._idle if self._records[name] == record]
            name = next(iter((*same, *self._idle)), f"record-{len(self._records)}")
            path = f"{self.copies.directory}/{name}"
            if not same:
                os.makedirs(self.copies.directory, 0o700, exist_ok=True)  # noqa: PTH103
                making = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                with os.fdopen(os.open(path, making, 0o600), "wb") as file:
                    file.write(_ENDED + _encode(record))
                self._records[name] = record
            if name in self._idle:
                self._idle.remove(name)
            _mark(path, _RUNS)
        return name

    def end(self, name: str) -> None:
        """A command ended, and everything was restored or reported."""
        with _lock:
            with suppress(OSError):
                _mark(f"{self.copies.directory}/{name}", _ENDED)
            self._idle.append(name)


def open_store(ledger: str) -> SavedStateStore:
    """The store of this process in a ledger, for one command; release it afterwards."""
    with _lock:
        if ledger not in _stores:
            directory = f"{ledger}/{PREFIX}{os.getpid()}-{os.urandom(16).hex()}"
            os.makedirs(directory, 0o700, exist_ok=True)  # noqa: PTH103 - the string is at hand
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            _stores[ledger] = (SavedStateStore(directory), descriptor)
        store = _stores[ledger][0]
        store.users += 1
        return store


def release_store(store: SavedStateStore) -> None:
    """Release the store after a command."""
    with _lock:
        store.users -= 1


def close_store(ledger: str) -> None:
    """Remove what this process saved, unless a command needs it."""
    with _lock:
        if ledger in _stores and not _stores[ledger][0].users:
            store, descriptor = _stores.pop(ledger)
            shutil.rmtree(store.copies.directory, ignore_errors=True)
            os.close(descriptor)


def read_stale_records(ledger: str) -> Iterator[tuple[RestoreRecord, SavedStateStore]]:
    """The records of commands of killed processes; each is removed afterwards."""
    for entry in sorted(Path(ledger).glob(f"{PREFIX}*")):
        with _try_lock(str(entry)) as is_ours:
            if not is_ours:
                continue
            store = SavedStateStore(str(entry))
            for path in sorted(entry.glob("record-*")):
                content = path.read_bytes()
                if content.startswith(_RUNS):
                    yield _decode(content[1:]), store
            shutil.rmtree(entry, ignore_errors=True)


@contextmanager
def _try_lock(directory: str) -> Generator[bool]:
    """Whether a directory is not locked; locks it for this block."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    is_free = True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        is_free = False
    try:
        yield is_free
    finally:
        os.close(descriptor)


def _mark(path: str, sign: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, sign, 0)
    finally:
        os.close(descriptor)


def _encode(record: RestoreRecord) -> bytes:
    import json

    # Names may hold bytes that no text has, which only this writes and reads back.
    return json.dumps(msgspec.to_builtins(record)).encode("ascii")


def _decode(data: bytes) -> RestoreRecord:
    import json

    return msgspec.convert(json.loads(data), RestoreRecord)


def _forget() -> None:
    """In a forked child: it has no commands, and its exit must not affect the store."""
    for _, descriptor in _stores.values():
        os.close(descriptor)
    _stores.clear()


os.register_at_fork(after_in_child=_forget)
