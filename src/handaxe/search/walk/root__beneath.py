"""Opening what a relative path names below an open directory, with no link on the way.

A search resolves a path, and the tree may change before it opens it. Linux refuses links in every
part of a path in one call; elsewhere the path is walked part by part.
"""

import ctypes
import errno
import os
import sys
from functools import cache

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
    """A descriptor of what a relative path names; raises OSError where a link is in the way."""
    if not path:
        return os.open(".", flags, dir_fd=directory)
    number = _open_at_once(directory, os.fsencode(path), flags)
    return number if number >= 0 else _open_by_steps(directory, path, flags)


def _open_at_once(directory: int, path: bytes, flags: int) -> int:
    """The descriptor; -1 where the system has no such call."""
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
