"""Being told by the system which directories changed, so that only those are looked at again.

A watch never proves anything alone: whatever it cannot promise (a full queue, a directory more
than the system lets us watch, a file system that changes elsewhere) ends in a look at the tree.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

Dirty = dict[str, set[str]]
"""By directory, the names in it that somebody touched."""

_MASK = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x01000000 | 0x02000000
"""Written, attributes, closed, moved, created, deleted; a directory and no link to one."""
_OVERFLOW = 0x4000
_IGNORED = 0x8000
_HEAD = struct.Struct("iIII")
_READ_BYTES = 1 << 18
# File systems whose every change is made by this machine, and so is told.
_LOCAL = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "zfs", "overlay", "bcachefs"}
)


class CannotWatch(Exception):
    """The system has no watches left for us, or none at all."""


class InotifyWatcher:
    """One queue of changes, over many directories."""

    def __init__(self, fd: int = -1) -> None:
        """Open a queue, or use one that another process has opened.

        Raises:
            CannotWatch: there is none to be had.
        """
        if sys.platform != "linux":
            raise CannotWatch
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC) if fd < 0 else fd
        if self.fd < 0:
            raise CannotWatch
        self.paths: dict[int, str] = {}
        """Each watch with the directory it is on."""
        self.is_begun = False
        """Whether everything that has to be watched is, so that what is not told did not happen."""
        self._most = _read_watch_limit()

    def begin(self, paths: Mapping[int, str] | None = None) -> None:
        """From now on what is taken is told; nothing is watched yet but these."""
        self.paths = dict(paths or {})
        self.is_begun = True

    def add(self, directory: str) -> None:
        """Watch one directory, under this path from now on.

        Raises:
            CannotWatch: there are no more watches.
        """
        watch = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), _MASK)
        if watch >= 0:
            self.paths[watch] = directory
        elif ctypes.get_errno() not in _GONE:
            raise CannotWatch
        if len(self.paths) > self._most:
            raise CannotWatch

    def take(self) -> tuple[Dirty | None, set[str]]:
        """What was touched since the last time, None if that is not known; what was deleted."""
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
        """Watch nothing any more."""
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
    """Whether every change below a place is made, and told, by this machine."""
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
    """Half of what the user may have, since editors want theirs as well."""
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_watches").read_text(encoding="ascii")) // 2
    except (OSError, ValueError):
        return 4096
