"""Something to mount on where nothing exists: made before a command, removed after the last one.

A mount needs a place. Commands that run side by side share one; whoever goes last removes it.
What is no longer as it was made belongs to somebody else and stays.
"""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress

_lock = threading.Lock()
_held: dict[str, tuple[int, int]] = {}
"""Path to the inode that was made there and how many commands need it."""


def hold(directories: Sequence[str], files: Sequence[str]) -> list[str]:
    """Make what is missing; the places that can be mounted on, each to be let go."""
    made: list[str] = []
    with _lock:
        for path in (*directories, *files):
            inode, holders = _held.get(path, (0, 0))
            if holders == 0:
                inode = _make(path, is_directory=path in directories)
                if inode is None:
                    continue
            _held[path] = (inode, holders + 1)
            made.append(path)
    return made


def held(paths: Sequence[str]) -> list[str]:
    """Those of the paths that are there only because a command needs them."""
    with _lock:
        return [path for path in paths if path in _held]


def let_go(paths: Sequence[str]) -> None:
    """A command has ended; what nobody needs any more is removed."""
    with _lock:
        for path in reversed(paths):
            inode, holders = _held[path]
            if holders > 1:
                _held[path] = (inode, holders - 1)
                continue
            del _held[path]
            _remove(path, inode)


def _make(path: str, *, is_directory: bool) -> int | None:
    try:
        if is_directory:
            os.mkdir(path, 0o755)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        return os.lstat(path).st_ino
    except OSError:
        return None


def _remove(path: str, inode: int) -> None:
    with suppress(OSError):
        found = os.lstat(path)
        if found.st_ino != inode:
            return
        if os.path.isdir(path):
            os.rmdir(path)
        elif found.st_size == 0:
            os.unlink(path)
