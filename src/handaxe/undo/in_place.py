"""Write files in place next to stored contents, and repair them after crashes."""

import contextlib
import hashlib
import os
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from handaxe.disk import locks
from handaxe.disk.atomic import ABSENT, delete, read_regular, replace
from handaxe.disk.content_writer import Content
from handaxe.disk.durability import close, sync_names
from handaxe.disk.errors import DiskFault, DiskWriteFailed, wrap_os_errors
from handaxe.disk.overwrite import Intent, write_content
from handaxe.disk.private import find_shared_access, make_private
from handaxe.disk.safe_open import open_regular_at
from handaxe.disk.temp_files import remove_leftovers
from handaxe.disk.versions import read_open_file
from handaxe.undo.content_store import ContentStore
from handaxe.undo.journal_files.record_key import Sealer
from handaxe.undo.journal_files.records import get_in_place_directory

_LEFTOVERS = (".pre-image", ".tmp")
_TOLD = {
    "restored": "was half-written when handaxe was killed and has its old content again",
    "other": "was being written when handaxe was killed and is another file now",
    "failed": "was being written when handaxe was killed and could not be repaired",
}


class SharedContentGuard:
    """The journal for in-place writes; replaces pins of the file by copies first."""

    def __init__(self, home: Path, store: ContentStore) -> None:
        self._journal = InPlaceJournal(get_in_place_directory(home), _make_sealer(home))
        self._store = store

    def __call__(self, intent: Intent) -> AbstractContextManager[object]:
        """Hold the old content durably while the file is written."""
        dev = os.stat(intent.path, follow_symlinks=False).st_dev
        self._store.unshare(dev, intent.ino)
        return self._journal(intent)


def _make_sealer(home: Path) -> Sealer:
    return Sealer(home, "writing in place")


def repair_in_place(home: Path) -> tuple[str, ...]:
    """Repair files that a crash left half-written; return one note per file."""
    directory = get_in_place_directory(home)
    try:
        names = os.listdir(directory)
    except OSError:
        return ()
    if not any(name.endswith(_LEFTOVERS) for name in names):
        return ()
    if problem := find_shared_access(directory):
        return (f"Half-written files of a killed process were not repaired: {problem}.",)
    try:
        recovered = () if _is_busy(directory) else recover(directory, _make_sealer(home))
    except (OSError, DiskFault) as error:
        return (f"Half-written files of a killed process could not be repaired: {error}",)
    return tuple(
        f"{found.path} {_TOLD[found.outcome]} ({found.detail})"
        for found in recovered
        if found.outcome in _TOLD
    )


def _is_busy(directory: Path) -> bool:
    """Whether a writer is active, so that its journal entry is not a leftover."""
    fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        locks.hold(fd, wait_s=0)
    except locks.LockTimeout:
        return True
    finally:
        close(fd)
    return False


_SUFFIX = ".pre-image"


class _Header(msgspec.Struct):
    """The first line of an entry; the old content follows."""

    path: bytes
    old_digest: str
    new_digest: str
    ino: int


class RecoveredWrite(msgspec.Struct, frozen=True):
    """The result of `recover` for one interrupted write."""

    path: str
    outcome: Literal["old", "new", "restored", "gone", "other", "failed"]
    """`restored`: it was half-written and has its old content again; `other`: it is another file
    now and was not changed; `failed`: it could not be read or written and stays in the journal.
    """
    detail: str = ""
    """Where the half-written content is saved, or why it failed."""


class Seal(Protocol):
    """Authenticates entries."""

    def seal(self, payload: bytes) -> bytes:
        """A JSON object with a seal as one more field."""
        ...

    def is_sealed(self, payload: bytes) -> bool:
        """Whether a JSON object has a valid seal."""
        ...


class InPlaceJournal:
    """Saves the old content of a file while it is written in place; an argument of `replace`."""

    def __init__(self, directory: str | os.PathLike[str], seal: Seal | None = None) -> None:
        self._directory = os.path.realpath(directory)
        self._seal = seal

    @contextlib.contextmanager
    def __call__(self, intent: Intent) -> Generator[None]:
        """Save the content durably; drop it unless the file was left damaged."""
        entry = Path(self._directory, f"{os.urandom(8).hex()}{_SUFFIX}")
        path = os.fsencode(os.path.realpath(intent.path))
        header = _Header(path, intent.old_digest, intent.new_digest, intent.ino)
        with _lock_journal(self._directory, shared=True):
            _keep(entry, header, intent.old, self._seal)
            try:
                yield
            except BaseException as error:
                if not (isinstance(error, DiskWriteFailed) and error.damaged):
                    # What went wrong before matters more, and recovery will find the file whole.
                    with contextlib.suppress(DiskFault):
                        delete(entry, expect=None)
                raise
            try:
                delete(entry, expect=None)
            except DiskFault as fault:
                reason = f"the file was written, but its journal entry remains: {fault}"
                raise DiskWriteFailed(reason, None, applied=True) from fault


def recover(directory: str | os.PathLike[str], seal: Seal | None = None) -> list[RecoveredWrite]:
    """Repair every file whose in-place write was interrupted; for the start of a program.

    With `seal`, entries without a valid seal stay and are reported as `failed`.

    Raises:
        Locked: writers were active all the time.
    """
    real = os.path.realpath(directory)
    if not Path(real).is_dir():
        return []
    with _lock_journal(real, shared=False):
        remove_leftovers(real)
        return [_recover(entry, seal) for entry in sorted(Path(real).glob(f"*{_SUFFIX}"))]


@contextlib.contextmanager
def _lock_journal(directory: str, *, shared: bool) -> Generator[None]:
    """Lock the journal: shared for writers, exclusive for recovery."""
    with wrap_os_errors("open the journal"):
        _make(Path(directory))
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(Path(directory, "lock"), flags, 0o600)
    try:
        with wrap_os_errors("lock the journal"):
            locks.hold(fd, shared=shared)
        yield
    finally:
        close(fd)


def _make(directory: Path) -> None:
    """Create the journal's directory durably."""
    if not directory.is_dir():
        make_private(directory)
        sync_names(directory.parent)


def _keep(entry: Path, header: _Header, old: bytes, seal: Seal | None) -> None:
    try:
        head = msgspec.json.encode(header)
        head = seal.seal(head) if seal is not None else head
        replace(entry, [head + b"\n", old], expect=ABSENT, mode=0o600)
    except DiskFault as fault:
        # Durable or not: the file itself was not touched, so nothing is to be taken back.
        with contextlib.suppress(DiskFault):
            delete(entry, expect=None)
        reason = f"could not save the old content in the journal: {fault}"
        raise DiskWriteFailed(reason, getattr(fault, "errno", None)) from fault


def _recover(entry: Path, seal: Seal | None) -> RecoveredWrite:
    path = str(entry)
    try:
        data, _ = read_regular(entry)
        head, _, old = data.partition(b"\n")
        header = msgspec.json.decode(head, type=_Header)
        path = os.fsdecode(header.path)
        if seal is not None:
            _refuse_foreign(head, header, old, seal)
        return _make_whole(path, header, old, entry)
    except (OSError, DiskFault, msgspec.MsgspecError) as error:
        return RecoveredWrite(path, "failed", str(error))


def _refuse_foreign(head: bytes, header: _Header, old: bytes, seal: Seal) -> None:
    if not seal.is_sealed(head):
        raise DiskFault("its journal entry is older than its key, or another program wrote it")
    if hashlib.sha256(old).hexdigest() != header.old_digest:
        raise DiskFault("the old content in its journal entry was changed")


def _make_whole(path: str, header: _Header, old: bytes, entry: Path) -> RecoveredWrite:
    try:
        fd, info = open_regular_at(path, access=os.O_RDWR)
    except FileNotFoundError:
        delete(entry, expect=None)
        return RecoveredWrite(path, "gone")
    try:
        locks.hold(fd)
        found = read_open_file(fd, info.st_size)
        digest = hashlib.sha256(found).hexdigest()
        result = RecoveredWrite(path, "old" if digest == header.old_digest else "new")
        if digest not in {header.old_digest, header.new_digest}:
            if info.st_ino != header.ino:
                kept = entry.replace(entry.with_suffix(".kept"))
                return RecoveredWrite(path, "other", f"the old content is saved in {kept}")
            kept = entry.with_suffix(".found")
            replace(kept, [found], expect=None, mode=0o600)
            write_content(fd, Content([old]))
            result = RecoveredWrite(
                path, "restored", f"the half-written content is saved in {kept}"
            )
    finally:
        close(fd)
    delete(entry, expect=None)
    return result
