"""Unfinished files beside their target: made, thrown away, and swept up after a crash.

The name does not depend on the target's, so every target name is possible. A writer holds the lock
of the directory; a file without a holder is a leftover. Only files with a late name are moved after
the lock was released.
"""

import contextlib
import errno
import functools
import math
import os
import re
import stat
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from handaxe.disk import locks
from handaxe.disk.durability import close
from handaxe.disk.safe_open import open_directory

_LATE = ".late.tmp"
_NAME = re.compile(r"\.handaxe-[0-9a-f]{16}(\.late)?\.tmp")
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SURELY_STALE_S = 3600.0


class Temporary:
    """A new file in an open directory, private until finished, removed unless it was moved."""

    def __init__(self, directory_fd: int, *, private: bool) -> None:
        self.name = f".handaxe-{os.urandom(8).hex()}.tmp"
        self.is_moved = False
        self._directory_fd = directory_fd
        # Only the kernel knows umask, default ACL and the directory's group all together.
        self.fd = os.open(self.name, _CREATE, 0o600 if private else 0o666, dir_fd=directory_fd)
        try:
            self.mode = stat.S_IMODE(os.fstat(self.fd).st_mode)
            if not private:
                os.fchmod(self.fd, 0o600)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        close(self.fd)
        if not self.is_moved:
            # What made the write fail matters more than a leftover that can be swept.
            with contextlib.suppress(OSError):
                os.unlink(self.name, dir_fd=self._directory_fd)


def is_temporary(path: str) -> bool:
    """Whether a path has the name of such a file."""
    return _NAME.fullmatch(path, path.rfind("/") + 1) is not None


def make_late_name() -> str:
    """A name for a file that waits for its place while the directory is not locked."""
    return f".handaxe-{os.urandom(8).hex()}{_LATE}"


def remove_leftovers(
    directory: str | os.PathLike[str], *, older_than: float = math.inf
) -> list[str]:
    """Remove temporary files that a crash left in a directory; gives their names.

    A directory with an active writer is skipped, and so are files that wait for their place and
    were written at the time `older_than` or later.
    """
    fd = open_directory(os.fsdecode(directory))
    try:
        try:
            alone = locks.hold(fd, wait_s=0)
        except locks.LockTimeout:
            return []
        # Where there are no locks only age tells a leftover from work in progress.
        newest = older_than if alone else min(older_than, time.time() - _SURELY_STALE_S)
        return [
            name
            for name in sorted(_list_temporary_names(fd))
            if _is_leftover(fd, name, newest, alone=alone) and _remove(fd, name)
        ]
    finally:
        close(fd)


def remove_hard_links(directory_fd: int, inode: int) -> bool:
    """Remove leftovers that are second names of a file; the lock of the directory is held."""
    twins = [
        name
        for name in _list_temporary_names(directory_fd)
        if _get_inode(directory_fd, name) == inode
    ]
    return bool([name for name in twins if _remove(directory_fd, name)])


def _is_leftover(directory_fd: int, name: str, newest: float, *, alone: bool) -> bool:
    has_no_writer = alone and not name.endswith(_LATE)
    return has_no_writer or _get_change_time(directory_fd, name) < newest


def _list_temporary_names(directory_fd: int) -> list[str]:
    with os.scandir(directory_fd) as entries:
        return [entry.name for entry in entries if _NAME.fullmatch(entry.name)]


def _get_change_time(directory_fd: int, name: str) -> float:
    try:
        return os.stat(name, dir_fd=directory_fd, follow_symlinks=False).st_ctime
    except FileNotFoundError:
        return math.inf


def _get_inode(directory_fd: int, name: str) -> int:
    return os.stat(name, dir_fd=directory_fd, follow_symlinks=False).st_ino


def _remove(directory_fd: int, name: str) -> bool:
    try:
        info = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
        # Links are made under such a name, too, before they take the place of something.
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
            return False
        os.unlink(name, dir_fd=directory_fd)
    except OSError:
        return False
    return True


_NOT_SUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_LINUX_NO_REPLACE = 1
_MACOS_EXCLUSIVE = 4


def rename_over(directory_fd: int, source: str, target: str) -> None:
    """Give `source` the name `target`, whatever had it before."""
    os.rename(source, target, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)


def rename_new(directory_fd: int, source: str, target: str) -> None:
    """Give `source` the name `target`, unless something has it: then FileExistsError."""
    rename = _load_exclusive_rename()
    code = rename(directory_fd, source, target) if rename else errno.ENOSYS
    if not code:
        return
    if code not in _NOT_SUPPORTED:
        raise OSError(code, os.strerror(code), target)
    # A link refuses an existing name as well; a crash between the two calls leaves a second name
    # that the next writer recognises.
    os.link(source, target, src_dir_fd=directory_fd, dst_dir_fd=directory_fd, follow_symlinks=False)
    with contextlib.suppress(OSError):
        os.unlink(source, dir_fd=directory_fd)


@functools.cache
def _load_exclusive_rename() -> Callable[[int, str, str], int] | None:
    import ctypes

    symbol, flag = ("renameatx_np", _MACOS_EXCLUSIVE)
    if sys.platform != "darwin":
        symbol, flag = ("renameat2", _LINUX_NO_REPLACE)
    call = getattr(ctypes.CDLL(None, use_errno=True), symbol, None)
    if call is None:
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

    def rename(directory_fd: int, source: str, target: str) -> int:
        failed = call(directory_fd, os.fsencode(source), directory_fd, os.fsencode(target), flag)
        return ctypes.get_errno() if failed else 0

    return rename
