"""Writing into a file that cannot be replaced: hard links, mount points, closed directories.

Not atomic by itself. The journal makes it so: the old content is durable elsewhere before the
first byte changes, and goes back if the write does not come to its end.
"""

import contextlib
import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from handaxe.disk import attributes
from handaxe.disk.content_writer import Content
from handaxe.disk.durability import sync_file
from handaxe.disk.errors import DiskWriteFailed, describe_os_error


class Intent(msgspec.Struct, frozen=True):
    """An overwrite that is about to happen; all a journal needs to take it back."""

    path: str
    old: bytes
    old_digest: str
    new_digest: str
    ino: int


Journal = Callable[[Intent], AbstractContextManager[object]]
"""Makes an intent durable on entry and forgets it on exit, unless a `damaged` fault passes."""


def overwrite(
    fd: int, content: Content, intent: Intent, journal: Journal, *, mode: int | None = None
) -> None:
    """Put `content` into an open file under a journal; on failure the old bytes are put back.

    Raises:
        WriteFailed: with `damaged` set if even the old bytes could not be put back.
    """
    before = attributes.read_attributes(fd)
    after = before if mode is None else msgspec.structs.replace(before, mode=mode)
    times = os.fstat(fd)
    with journal(intent):
        try:
            _reserve(fd, len(intent.old), content.size_bytes)
            write_content(fd, content)
            # Writing takes away set-id bits and capabilities.
            with contextlib.suppress(attributes.CannotKeep):
                attributes.apply_attributes(fd, after)
            sync_file(fd)
        except BaseException as error:
            _put_back(fd, intent.old, error)
            with contextlib.suppress(OSError, attributes.CannotKeep):
                attributes.apply_attributes(fd, before)
                os.utime(fd, ns=(times.st_atime_ns, times.st_mtime_ns))
            if isinstance(error, OSError):
                reason = f"could not write the file in place: {describe_os_error(error)}"
                raise DiskWriteFailed(reason, error.errno) from error
            raise


def _reserve(fd: int, old_bytes: int, new_bytes: int) -> None:
    """Find out that the disk is full before anything is overwritten."""
    if new_bytes <= old_bytes or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(fd, old_bytes, new_bytes - old_bytes)
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}:
            raise


def write_content(fd: int, content: Content) -> None:
    """Make an open file exactly this content, durably, and read it back."""
    os.lseek(fd, 0, os.SEEK_SET)
    content.write_to(fd)
    os.ftruncate(fd, content.size_bytes)
    sync_file(fd)
    content.check(fd)


def _put_back(fd: int, old: bytes, cause: BaseException) -> None:
    content = Content([old])
    try:
        if not content.is_in(fd):
            write_content(fd, content)
    except BaseException as error:
        why = describe_os_error(error) if isinstance(error, OSError) else "it was interrupted"
        reason = (
            f"writing in place failed ({cause}) and putting the old content back failed too: "
            f"{why}; the journal keeps it"
        )
        raise DiskWriteFailed(reason, getattr(error, "errno", None), damaged=True) from error
