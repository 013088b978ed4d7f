"""Mode, owner, extended attributes and ACL of a file: taken from one, given to another."""

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable

import msgspec

_NOT_SUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
# The kernel computes these from the content; a copy would be wrong.
_COMPUTED = {"security.ima", "security.evm"}

# FS_IOC_GETFLAGS and the two flags of it that forbid a change.
_GET_MARKS = 0x80086601
_IMMUTABLE = 0x10
_APPEND_ONLY = 0x20


class Attributes(msgspec.Struct, frozen=True):
    """Attributes of a file besides its bytes and its name."""

    mode: int
    uid: int
    gid: int
    extended: dict[str, bytes]


class CannotKeep(Exception):
    """An attribute of the old file cannot be given to a new one by this user."""


def read_attributes(fd: int) -> Attributes:
    """The attributes of an open file."""
    info = os.fstat(fd)
    return Attributes(
        stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid, read_extended_attributes(fd)
    )


def apply_attributes(fd: int, wanted: Attributes) -> None:
    """Make the attributes of an open file equal to `wanted`, touching only what differs.

    Raises:
        CannotKeep: this user may not set one of them.
    """
    have = read_attributes(fd)
    if (have.uid, have.gid) != (wanted.uid, wanted.gid):
        _try_change("its owner", os.fchown, fd, wanted.uid, wanted.gid)
    for name in have.extended.keys() - wanted.extended.keys():
        _try_change(f"the lack of {name}", os.removexattr, fd, name)
    for name, value in wanted.extended.items():
        if have.extended.get(name) != value:
            _try_change(name, os.setxattr, fd, name, value)
    # Last, because changing the owner or an ACL changes the mode.
    if stat.S_IMODE(os.fstat(fd).st_mode) != wanted.mode:
        _try_change("its mode", os.fchmod, fd, wanted.mode)


def _try_change(what: str, change: Callable[..., None], *arguments: object) -> None:
    try:
        change(*arguments)
    except OSError as error:
        if error.errno in _NOT_SUPPORTED | {errno.EPERM, errno.EACCES}:
            raise CannotKeep(f"{what} cannot be given to a new file") from error
        raise


def read_extended_attributes(fd: int) -> dict[str, bytes]:
    """The extended attributes of an open file, where its file system has them."""
    if not hasattr(os, "listxattr"):
        return {}
    try:
        names = os.listxattr(fd)
    except OSError as error:
        if error.errno in _NOT_SUPPORTED:
            return {}
        raise
    return {name: os.getxattr(fd, name) for name in names if name not in _COMPUTED}


def describe_protection(fd: int) -> str | None:
    """Why an open file may not be changed, if it has such a mark."""
    if sys.platform != "linux":
        return None
    try:
        marks = int.from_bytes(fcntl.ioctl(fd, _GET_MARKS, bytes(8))[:4], sys.byteorder)
    except OSError:
        return None
    if marks & _IMMUTABLE:
        return "it is marked immutable (chattr +i)"
    return "it is marked append-only (chattr +a)" if marks & _APPEND_ONLY else None
