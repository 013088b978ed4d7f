"""A temporary directory: removed after use, or by a later process after a kill.

Its user holds a lock, which ends with the process. An unlocked directory is unused.
"""

import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from handaxe.disk import locks
from handaxe.disk.errors import LockTimeout

_KINDS = ("overlay", "preview", "probe", "sandbox")
_NEW_S = 3600.0
"""A directory younger than this may not be locked yet."""
_swept: set[str] = set()


class TempDirectory:
    """A new directory, locked until it is removed."""

    def __init__(self, kind: str, above: str | None = None) -> None:
        """Create it in `above`, or in the directory for temporary files."""
        above = above or tempfile.gettempdir()
        if above not in _swept:
            _swept.add(above)
            remove_stale_directories(above)
        self.path = tempfile.mkdtemp(prefix=f"handaxe-{kind}-", dir=above)
        self._held = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        locks.hold(self._held)

    def __enter__(self) -> Self:
        """Use it for a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove it."""
        self.remove()

    def remove(self) -> None:
        """Remove it with its contents."""
        _remove_tree(self.path)
        os.close(self._held)


def remove_stale_directories(above: str) -> int:
    """Remove directories of killed processes of this user; returns the number."""
    removed = 0
    for kind in _KINDS:
        for place in Path(above).glob(f"handaxe-{kind}-*"):
            with suppress(OSError, LockTimeout):
                removed += _remove_if_left(str(place))
    return removed


def _remove_if_left(place: str) -> bool:
    held = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        info = os.fstat(held)
        is_old = max(info.st_mtime, info.st_ctime) < time.time() - _NEW_S
        if info.st_uid != os.geteuid() or not is_old or not locks.hold(held, wait_s=0):
            return False
        _remove_tree(place)
        return True
    finally:
        os.close(held)


def _remove_tree(place: str) -> None:
    """Remove a tree; the kernel's overlay directory has no permissions even for its owner."""
    for directory, names, _ in os.walk(place):
        for name in names:
            path = Path(directory, name)
            with suppress(OSError):
                if stat.S_ISDIR(path.lstat().st_mode):
                    path.chmod(0o700)
    shutil.rmtree(place, ignore_errors=True)
