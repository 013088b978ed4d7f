"""Where the state before a command is kept: outside its reach, and beyond the end of this process.

Each process has a directory of its own in the ledger, which it holds a lock on. In it are copies
of protected files, and a record for each command that runs: its first byte says whether it still
does. A process that finds an unlocked directory of that kind restores what its records say.
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
"""Of every such directory's name."""
_RUNS, _ENDED = b"1", b"0"

_lock = threading.Lock()
_stores: dict[str, tuple["SavedStateStore", int]] = {}
"""Each with the descriptor that holds the lock."""


class RestoreRecord(msgspec.Struct, frozen=True):
    """What has to be so again after a command; plain data."""

    roots: tuple[str, ...]
    aside: str
    before: dict[str, SavedState] = {}
    directories: dict[str, tuple[int, int]] = {}
    """Directories that have to stay the same ones, with device and inode."""
    found: tuple[str, ...] = ()
    """Protected names that were there."""
    repositories: tuple[str, ...] = ()
    """Directories that git took for repositories."""
    protected_names: tuple[str, ...] = ()
    protected_endings: tuple[str, ...] = ()
    protected_pairs: tuple[tuple[str, str], ...] = ()


class SavedStateStore:
    """The states that this process has saved."""

    def __init__(self, directory: str) -> None:
        self.copies = ContentCopies(directory)
        self.states: dict[str, SavedState] = {}
        """What was saved last of each place."""
        self._records: dict[str, RestoreRecord | None] = {}
        self._idle: list[str] = []
        self.users = 0
        """How many commands run."""

    def begin(self, record: RestoreRecord) -> str:
        """Write down what has to be so after a command; the record's name, for `end`."""
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
        """A command has ended; everything is restored or reported."""
        with _lock:
            with suppress(OSError):
                _mark(f"{self.copies.directory}/{name}", _ENDED)
            self._idle.append(name)


def open_store(ledger: str) -> SavedStateStore:
    """The store of this process in a ledger, for one command; to be left after it."""
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
    """A command has ended."""
    with _lock:
        store.users -= 1


def close_store(ledger: str) -> None:
    """Remove what this process saved, if no command needs it."""
    with _lock:
        if ledger in _stores and not _stores[ledger][0].users:
            store, descriptor = _stores.pop(ledger)
            shutil.rmtree(store.copies.directory, ignore_errors=True)
            os.close(descriptor)


def read_stale_records(ledger: str) -> Iterator[tuple[RestoreRecord, SavedStateStore]]:
    """What commands of killed processes had to leave as it was; each is removed afterwards."""
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
    """Lock a directory; False if another process holds it."""
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
    """A copy of this process has no commands, and its end ends nothing."""
    for _, descriptor in _stores.values():
        os.close(descriptor)
    _stores.clear()


os.register_at_fork(after_in_child=_forget)
