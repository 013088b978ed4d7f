"""Getting bytes and names onto the device, and knowing that they are there.

A failed sync is final: the kernel may have dropped the pages, so it is not repeated.
"""

import errno
import fcntl
import os
from collections.abc import Iterable

# macOS: fsync alone leaves the bytes in the drive's cache.
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_NO_DIRECTORY_SYNC = {errno.EINVAL, errno.EOPNOTSUPP}


def sync_file(fd: int) -> None:
    """Make content and metadata of an open file durable."""
    if _FULL_SYNC is None:
        os.fsync(fd)
    else:
        fcntl.fcntl(fd, _FULL_SYNC)


def sync_content(fd: int) -> None:
    """Make the content of an open file durable, leaving out its times where that is possible."""
    if _FULL_SYNC is None and hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        sync_file(fd)


def begin_sync(fd: int, start: int = 0) -> None:
    """Let the device begin with what was written from `start` on, so that a sync waits less."""
    if hasattr(os, "posix_fadvise"):
        # Of the calls that start writing it is the one every Linux file system knows.
        try:
            os.posix_fadvise(fd, start, 0, os.POSIX_FADV_DONTNEED)
        except OSError:
            # Then the sync has all the work left.
            return


def close(fd: int) -> None:
    """Give a descriptor back that was only read, or whose content is synced already.

    Whatever goes wrong now says nothing about the content, and the descriptor is gone anyhow.
    """
    try:
        os.close(fd)
    except OSError:
        return


def sync_directory(fd: int) -> None:
    """Make the names in an open directory durable."""
    try:
        os.fsync(fd)
    except OSError as error:
        # Some file systems write names through and refuse the call.
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


def sync_names(directory: str | os.PathLike[str]) -> None:
    """Make the names in a directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_directory(fd)
    finally:
        close(fd)


def sync_file_systems(directories: Iterable[str]) -> None:
    """Make everything durable that was written to the file systems of some directories."""
    import ctypes

    sync = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if sync is None:
        os.sync()
        return
    seen: set[int] = set()
    for directory in directories:
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            # Gone by now, or not to be read; its file system is synced by its neighbours.
            continue
        try:
            dev = os.fstat(fd).st_dev
            if dev not in seen and sync(fd) < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
            seen.add(dev)
        finally:
            close(fd)
