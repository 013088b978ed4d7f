"""Which sessions have their undo journal open, so that leftovers of killed processes are found.

Each process holds a locked, empty file per open journal and removes it on close. An unlocked file
belongs to a killed process.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from handaxe.disk import locks
from handaxe.disk.durability import close
from handaxe.disk.errors import DiskFault
from handaxe.storage.home import make_private_directory, sync_directory_names

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


def get_liveness_directory(home: Path) -> Path:
    """The directory with the files of all sessions."""
    return home / "open-journals"


class LivenessFile:
    """The file of one process and one session's journal."""

    def __init__(self, home: Path, session_id: str) -> None:
        self._directory = get_liveness_directory(home)
        self._prefix = session_id
        self._path = self._directory
        self._fd = -1

    def hold(self) -> None:
        """Hold the file until `drop`; on failure the session continues without it."""
        while self._fd < 0:
            self._path = self._directory / f"{self._prefix}.{os.urandom(4).hex()}"
            try:
                make_private_directory(self._directory)
                self._fd = os.open(self._path, _CREATE, 0o600)
                locks.hold(self._fd)
                # Or a loss of power might take it and leave what it was made to find.
                sync_directory_names(self._path)
            except (OSError, DiskFault):
                return
            if not os.fstat(self._fd).st_nlink:
                # Another process took it for a dead one's file before it was locked.
                close(self._fd)
                self._fd = -1

    def drop(self) -> None:
        """Remove the file, because the journal is closed."""
        if self._fd >= 0:
            with suppress(OSError):
                self._path.unlink()
            close(self._fd)
            self._fd = -1


class DeadJournal:
    """The file of a killed process, locked during recovery."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.session_id = path.name.rpartition(".")[0]

    def forget(self) -> None:
        """Remove it after recovery."""
        self._path.unlink(missing_ok=True)


def find_dead_journals(home: Path) -> Iterator[DeadJournal]:
    """The journals of killed processes, each locked while the caller handles it."""
    for path in _list(home):
        try:
            fd = os.open(path, _OPEN)
        except OSError:
            continue
        try:
            # Without locks, dead and living processes cannot be distinguished.
            is_dead = locks.hold(fd, wait_s=0) and os.fstat(fd).st_nlink > 0
            if is_dead:
                yield DeadJournal(path)
        except (OSError, DiskFault):
            continue
        finally:
            close(fd)


def find_oldest_living(home: Path) -> float:
    """The start of the oldest process with an open journal, or now.

    A temporary file older than that has no writer.
    """
    oldest = time.time()
    for path in _list(home):
        with suppress(OSError):
            fd = os.open(path, _OPEN)
            try:
                if not locks.hold(fd, wait_s=0):
                    oldest = min(oldest, os.fstat(fd).st_mtime)
            except locks.LockTimeout:
                oldest = min(oldest, os.fstat(fd).st_mtime)
            finally:
                close(fd)
    return oldest


def _list(home: Path) -> list[Path]:
    directory = get_liveness_directory(home)
    try:
        return [directory / name for name in sorted(os.listdir(directory))]
    except OSError:
        return []
