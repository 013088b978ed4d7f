"""Writing in place beside kept contents: pins get copies first, crashes are repaired later."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

from handaxe.disk import locks
from handaxe.disk.durability import close
from handaxe.disk.errors import DiskFault
from handaxe.disk.overwrite import Intent
from handaxe.disk.private import find_shared_access
from handaxe.undo.content_store import ContentStore
from handaxe.undo.in_place__in_place import InPlaceJournal, recover
from handaxe.undo.journal_files.record_key import Sealer
from handaxe.undo.journal_files.records__layout import get_in_place_directory

_LEFTOVERS = (".pre-image", ".tmp")
_TOLD = {
    "restored": "was half-written when handaxe was killed and has its old content again",
    "other": "was being written when handaxe was killed and is another file now",
    "failed": "was being written when handaxe was killed and could not be repaired",
}


class SharedContentGuard:
    """A journal for writing in place that lets no pinned content change with the file."""

    def __init__(self, home: Path, store: ContentStore) -> None:
        self._journal = InPlaceJournal(get_in_place_directory(home), _make_sealer(home))
        self._store = store

    def __call__(self, intent: Intent) -> AbstractContextManager[object]:
        """Hold the intent durably while the file is written."""
        dev = os.stat(intent.path, follow_symlinks=False).st_dev
        self._store.unshare(dev, intent.ino)
        return self._journal(intent)


def _make_sealer(home: Path) -> Sealer:
    return Sealer(home, "writing in place")


def repair_in_place(home: Path) -> tuple[str, ...]:
    """Make files whole that a crash left half-written; what there is to tell, one sentence each."""
    directory = get_in_place_directory(home)
    try:
        names = os.listdir(directory)
    except OSError:
        return ()
    if not any(name.endswith(_LEFTOVERS) for name in names):
        return ()
    if problem := find_shared_access(directory):
        return (f"Files that handaxe was killed over were not looked after: {problem}.",)
    try:
        recovered = () if _is_busy(directory) else recover(directory, _make_sealer(home))
    except (OSError, DiskFault) as error:
        return (f"Files that handaxe was killed over could not be looked after: {error}",)
    return tuple(
        f"{found.path} {_TOLD[found.outcome]} ({found.detail})"
        for found in recovered
        if found.outcome in _TOLD
    )


def _is_busy(directory: Path) -> bool:
    """Whether somebody is writing right now: then what stands in the journal is no leftover."""
    fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        locks.hold(fd, wait_s=0)
    except locks.LockTimeout:
        return True
    finally:
        close(fd)
    return False
