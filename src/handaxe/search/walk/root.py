"""The place of a search: an open directory, and a file in it if the query names one."""

import ctypes
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from typing import Self

from handaxe.contract.faults.file import NotFound
from handaxe.contract.faults.file import Stale as ChangedMeanwhile
from handaxe.disk.errors import DiskFault
from handaxe.disk.safe_open import open_directory
from handaxe.search.walk.ignore_files import Ignores, read_ignores_above


class SearchPlace:
    """A directory that is open, so that no other directory can take its place."""

    def __init__(self, root: str, *, is_file: bool, respect_ignore: bool) -> None:
        path, name = os.path.split(root) if is_file else (root, "")
        self.path = path
        self.target = f"./{name}"
        self.prefix = path.rstrip("/") + "/"
        above = read_ignores_above(path) if respect_ignore and not is_file else None
        self.is_ignored = above is not None and above.is_root_ignored(path)
        """Whether ignore files above hide this directory, which is searched all the same."""
        self.ignores = Ignores() if self.is_ignored else above
        """The ignore files above that count; None if no ignore file does."""
        try:
            self.fd = open_directory(path)
        except DiskFault:
            raise ChangedMeanwhile(f"{path} became a link while it was searched.") from None
        except OSError as error:
            raise NotFound(path) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    @cached_property
    def directory(self) -> str:
        """A path by which a child process can enter the directory."""
        held = f"/proc/self/fd/{self.fd}"
        return held if os.path.isdir(held) else self.path


FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENAT2 = 437
_NO_LINKS_BENEATH = 0x04 | 0x08
"""RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH."""
_UNAVAILABLE = {errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG}
_PASSING = {errno.EINTR, errno.EAGAIN}
_MOST_TRIES = 16


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def open_beneath(directory: int, path: str | bytes, flags: int = FILE) -> int:
    """A descriptor for a relative path; raises OSError if a link is in the way."""
    if not path:
        return os.open(".", flags, dir_fd=directory)
    number = _open_at_once(directory, os.fsencode(path), flags)
    return number if number >= 0 else _open_by_steps(directory, path, flags)


def stat_all(directory: int, paths: Iterable[bytes]) -> Iterator[tuple[bytes, os.stat_result]]:
    """The status of relative paths, links not followed; missing paths are left out."""
    for path in paths:
        try:
            info = os.stat(path, dir_fd=directory, follow_symlinks=False)
        except OSError:
            continue
        yield path, info


def is_beneath(directory: int, path: bytes) -> bool:
    """Whether a relative path exists and no link is in the way."""
    above, _, name = path.rpartition(b"/")
    try:
        fd = open_beneath(directory, above, _STEP)
    except OSError:
        return False
    try:
        return any(stat_all(fd, [name]))
    finally:
        os.close(fd)


def _open_at_once(directory: int, path: bytes, flags: int) -> int:
    """The descriptor; -1 if the system has no `openat2`."""
    libc = load_libc()
    if libc is None:
        return -1
    how = _How(flags, 0, _NO_LINKS_BENEATH)
    size = ctypes.sizeof(_How)
    for _ in range(_MOST_TRIES):
        number: int = libc.syscall(_OPENAT2, directory, path, ctypes.byref(how), size)
        if number >= 0:
            return number
        error = ctypes.get_errno()
        if error in _UNAVAILABLE:
            return -1
        if error not in _PASSING:
            raise OSError(error, os.strerror(error), os.fsdecode(path))
    return -1


def _open_by_steps(directory: int, path: str | bytes, flags: int) -> int:
    *above, name = os.fsdecode(path).strip("/").split("/")
    if ".." in above or name == "..":
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), os.fsdecode(path))
    here = os.dup(directory)
    try:
        for part in above:
            below = os.open(part, _STEP, dir_fd=here)
            os.close(here)
            here = below
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=here)
    finally:
        os.close(here)


@cache
def load_libc() -> ctypes.CDLL | None:
    """The C library; None on other systems."""
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
