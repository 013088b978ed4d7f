"""Errors of file operations, as types that a caller can tell apart."""

import errno
from types import TracebackType

_PLAIN_WORDS = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EIO: "the device reported an input/output error",
    errno.EFBIG: "the file would pass the size limit",
    errno.EMFILE: "this process has too many open files",
    errno.ENFILE: "the system has too many open files",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOENT: "the directory does not exist",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EISDIR: "it is a directory",
    errno.ETXTBSY: "the file is a program that is running",
    errno.EBUSY: "the file is in use as a mount point",
    errno.EXDEV: "the file is on another device than its directory",
    errno.ELOOP: "a symbolic link is in the way",
    errno.EINVAL: "the name or content is not valid on this file system",
}


class DiskFault(Exception):
    """A file operation that could not be done; the message says why in plain words."""


class NotRegularFile(DiskFault):
    """The path is a directory, FIFO, socket, device or kernel file."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"not a regular file but a {kind}")
        self.kind = kind


class SizeLimitExceeded(DiskFault):
    """The file is bigger than the caller allowed."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"the file is too large: {size_bytes:,} bytes")
        self.size_bytes = size_bytes


class UnexpectedSymlink(DiskFault):
    """A symbolic link stands where the caller promised a resolved path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"a symbolic link is in the way at {path!r}")
        self.path = path


class LockTimeout(DiskFault):
    """Another process held the advisory lock for the whole waiting time."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"another process held the lock for {wait_s:g} s")
        self.wait_s = wait_s


class NeedsJournal(DiskFault):
    """The file can only be written in place, and no journal was given to make that safe."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the file can only be written in place: {reason}")
        self.reason = reason


class DiskWriteFailed(DiskFault):
    """A change failed; `applied` says whether the new content is in place all the same.

    `damaged` is True only if an in-place write failed and the old content could not be put back:
    then the journal still holds it.
    """

    def __init__(
        self, reason: str, errno: int | None, *, applied: bool = False, damaged: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.errno = errno
        self.applied = applied
        self.damaged = damaged


class ReadBackMismatch(OSError):
    """The file system returned other content than was written."""

    def __init__(self) -> None:
        super().__init__(errno.EIO, "it reads back differently from what was written")

    def __str__(self) -> str:
        return self.strerror or ""


def describe_os_error(error: OSError) -> str:
    """The meaning of an operating system error, without its number."""
    if isinstance(error, ReadBackMismatch):
        return str(error)
    return _PLAIN_WORDS.get(error.errno or 0) or (error.strerror or str(error)).lower()


class wrap_os_errors:  # noqa: N801 (reads as a verb after `with`)
    """Turn an OSError inside into a WriteFailed that names the step."""

    # A class, because every write passes several of these and a generator costs five times more.
    __slots__ = ("_applied", "_step")

    def __init__(self, step: str, *, applied: bool = False) -> None:
        self._step = step
        self._applied = applied

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            reason = f"could not {self._step}: {describe_os_error(error)}"
            raise DiskWriteFailed(reason, error.errno, applied=self._applied) from error
