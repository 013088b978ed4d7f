"""Learn from the kernel which directories changed, so that only those are read again.

A watch alone proves nothing: if the queue overflows, watches run out or the file system changes
elsewhere, the tree is compared.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

Dirty = dict[str, set[str]]
"""By directory, the changed names in it."""

_MASK = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x01000000 | 0x02000000
"""Written, attributes, closed, moved, created, deleted; only real directories."""
_OVERFLOW = 0x4000
_IGNORED = 0x8000
_HEAD = struct.Struct("iIII")
_READ_BYTES = 1 << 18
# File systems whose changes are all made, and so reported, by this machine.
_LOCAL = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "zfs", "overlay", "bcachefs"}
)


class CannotWatch(Exception):
    """No watches are available."""


class InotifyWatcher:
    """One inotify queue for many directories."""

    def __init__(self, fd: int = -1) -> None:
        """Open a queue, or use one opened by another process.

        Raises:
            CannotWatch: none is available.
        """
        if sys.platform != "linux":
            raise CannotWatch
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC) if fd < 0 else fd
        if self.fd < 0:
            raise CannotWatch
        self.paths: dict[int, str] = {}
        """Each watch with its directory."""
        self.is_begun = False
        """Whether all required watches exist, so that no event means no change."""
        self._most = _read_watch_limit()

    def begin(self, paths: Mapping[int, str] | None = None) -> None:
        """Start: from now on `take` returns events, of these directories only."""
        self.paths = dict(paths or {})
        self.is_begun = True

    def add(self, directory: str) -> None:
        """Watch one directory under this path.

        Raises:
            CannotWatch: no watches are left.
        """
        watch = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), _MASK)
        if watch >= 0:
            self.paths[watch] = directory
        elif ctypes.get_errno() not in _GONE:
            raise CannotWatch
        if len(self.paths) > self._most:
            raise CannotWatch

    def take(self) -> tuple[Dirty | None, set[str]]:
        """The paths touched since the last call, or None if unknown, and the deleted ones."""
        dirty: Dirty = {}
        deleted: set[str] = set()
        is_whole = self.is_begun
        while data := self._read():
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size + length
                if mask & _OVERFLOW:
                    is_whole = False
                elif mask & _IGNORED:
                    deleted.add(self.paths.pop(watch, ""))
                elif length and (directory := self.paths.get(watch)) is not None:
                    name = data[at - length : at].rstrip(b"\0")
                    dirty.setdefault(directory, set()).add(os.fsdecode(name))
        return dirty if is_whole else None, deleted

    def close(self) -> None:
        """Remove all watches."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _read(self) -> bytes:
        try:
            return os.read(self.fd, _READ_BYTES)
        except BlockingIOError:
            return b""


# ENOENT, ENOTDIR, EACCES: gone a moment ago, or nothing we could list either.
_GONE = frozenset({2, 20, 13})


def can_be_watched(place: str) -> bool:
    """Whether this machine makes and reports every change below a directory."""
    try:
        dev = os.stat(place).st_dev
        for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
            fields, _, kind = line.partition(b" - ")
            if fields.split()[2] == b"%d:%d" % (os.major(dev), os.minor(dev)):
                return kind.split()[0].decode() in _LOCAL
    except (OSError, IndexError):
        return False
    return False


def _read_watch_limit() -> int:
    """Half of the user's limit, because editors need watches too."""
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_watches").read_text(encoding="ascii")) // 2
    except (OSError, ValueError):
        return 4096
