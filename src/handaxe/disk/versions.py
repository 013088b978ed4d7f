"""The version of a file at a moment: content by hash, and its status."""

import errno
import functools
import hashlib
import os
import stat
import sys
from collections.abc import Callable

import msgspec

from handaxe.disk.durability import close
from handaxe.disk.errors import DiskFault, NotRegularFile, SizeLimitExceeded
from handaxe.disk.safe_open import open_regular_at

_CHUNK_BYTES = 1 << 20


class Version(msgspec.Struct, frozen=True):
    """One version of a regular file."""

    digest: str
    """SHA-256 of the content in hex; empty where the content was too big to be worth hashing."""
    size_bytes: int
    mtime_ns: int
    mode: int
    """Permission bits, without the file type."""
    dev: int = 0
    ino: int = 0
    nlink: int = 1

    def has_same_content(self, other: "Version | Absent") -> bool:
        """Whether both have equal bytes; times, modes and inodes do not matter."""
        return (
            isinstance(other, Version)
            and self.size_bytes == other.size_bytes
            and self.digest == other.digest
        )


class Absent(msgspec.Struct, frozen=True):
    """There is no file of that name."""


ABSENT = Absent()


class VersionChanged(DiskFault):
    """The file is not what the caller expected; `actual` is what was found."""

    def __init__(self, actual: Version | Absent) -> None:
        super().__init__("the file on disk is not the version that was expected")
        self.actual = actual


def read_regular(
    path: str | os.PathLike[str], *, max_bytes: int | None = None
) -> tuple[bytes, Version]:
    """Content and version of the regular file at a resolved path; never waits for a peer.

    Raises:
        NotRegular: it is anything else, or a file the kernel makes up.
        TooLarge: it has more than `max_bytes`.
        UnexpectedSymlink: a part of the path is a symbolic link.
        OSError: it is missing or unreadable.
    """
    fd, info = _open(path)
    try:
        if max_bytes is not None and info.st_size > max_bytes:
            raise SizeLimitExceeded(info.st_size)
        data = read_open_file(fd, info.st_size, max_bytes)
    finally:
        close(fd)
    return data, build_version(info, hashlib.sha256(data).hexdigest(), len(data))


def read_version(path: str | os.PathLike[str]) -> Version | Absent:
    """The version of the file at a resolved path, hashed without holding it in memory."""
    try:
        fd, info = _open(path)
    except FileNotFoundError:
        return ABSENT
    try:
        digest, size_bytes = hash_file(fd, info.st_size)
    finally:
        close(fd)
    return build_version(info, digest, size_bytes)


def build_version(info: os.stat_result, digest: str, size_bytes: int) -> Version:
    """A version from a file's status and what its bytes gave."""
    return Version(
        digest=digest,
        size_bytes=size_bytes,
        mtime_ns=info.st_mtime_ns,
        mode=stat.S_IMODE(info.st_mode),
        dev=info.st_dev,
        ino=info.st_ino,
        nlink=info.st_nlink,
    )


def hash_file(fd: int, size_hint_bytes: int) -> tuple[str, int]:
    """Digest and size of an open file from its first byte, in bounded memory."""
    hasher = hashlib.sha256()
    if size_hint_bytes < _CHUNK_BYTES:
        data = os.pread(fd, size_hint_bytes + 1, 0)
        hasher.update(data)
        done = len(data)
        if done == size_hint_bytes:
            return hasher.hexdigest(), done
    else:
        done = 0
    chunk = memoryview(bytearray(_CHUNK_BYTES))
    while got := os.preadv(fd, [chunk], done):
        hasher.update(chunk[:got])
        done += got
    return hasher.hexdigest(), done


def read_open_file(fd: int, size_hint_bytes: int, max_bytes: int | None = None) -> bytes:
    """All bytes of an open file from its position on."""
    data = os.read(fd, size_hint_bytes + 1)
    # One byte more was asked for than the file had, so exactly its size means its end.
    if len(data) == size_hint_bytes:
        return data
    parts = [data]
    total = len(data)
    while more := os.read(fd, _CHUNK_BYTES):
        parts.append(more)
        total += len(more)
        if max_bytes is not None and total > max_bytes:
            raise SizeLimitExceeded(total)
    if max_bytes is not None and total > max_bytes:
        raise SizeLimitExceeded(total)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _open(path: str | os.PathLike[str]) -> tuple[int, os.stat_result]:
    text = os.fsdecode(path)
    # Kernel files call themselves regular, but some of them never end and some of them wait.
    if text.startswith("/proc/"):
        raise NotRegularFile("kernel file")
    return open_regular_at(text)


_HERE = -100
_NO_FOLLOW = 0x100
_BIRTH = 0x800
# `struct statx`: the mask of what was answered, and the time of birth in seconds and the rest.
_SIZE_BYTES, _SECONDS_AT, _REST_AT = 256, 80, 88


def get_birth_ns(path: str) -> int | None:
    """The birth time of the file itself in nanoseconds; None where it is unknown."""
    if sys.platform == "darwin":
        return int(os.lstat(path).st_birthtime * 1e9)
    ask = _load_statx()
    return None if ask is None else ask(path)


def find_shared_birth_ns(path: str, info: os.stat_result) -> int:
    """The birth time of a regular file with several names; 0 otherwise and where it is unknown.

    Such a file is written in place, so a later undo has to know that it still is the same file.
    """
    if info.st_nlink <= 1 or not stat.S_ISREG(info.st_mode):
        return 0
    try:
        return get_birth_ns(path) or 0
    except OSError:
        return 0


@functools.cache
def _load_statx() -> Callable[[str], int | None] | None:
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if call is None:
        return None
    call.argtypes = [
        *(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint),
        ctypes.c_char_p,
    ]

    def ask(path: str) -> int | None:
        answer = ctypes.create_string_buffer(_SIZE_BYTES)
        if call(_HERE, os.fsencode(path), _NO_FOLLOW, _BIRTH, answer):
            code = ctypes.get_errno()
            if code in {errno.ENOSYS, errno.EPERM, errno.EINVAL}:
                return None
            raise OSError(code, os.strerror(code), path)
        data = answer.raw
        if not int.from_bytes(data[:4], sys.byteorder) & _BIRTH:
            return None
        seconds = int.from_bytes(data[_SECONDS_AT : _SECONDS_AT + 8], sys.byteorder, signed=True)
        return seconds * 10**9 + int.from_bytes(data[_REST_AT : _REST_AT + 4], sys.byteorder)

    return ask
