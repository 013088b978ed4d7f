"""Which paths named the same files during a whole search.

ripgrep opens files by their names, and follows a link that replaced a name after its check.
A program that replaces an entry leaves a trace, even if it restores the entry. The trace is the
change time of the entry and of its directory, which no program can set. So after a search a path is
sure if for every part of it one of the two is older than the search. That costs one `stat` per
directory. Paths that are not sure are searched again by open descriptors.

No path is sure on a file system whose clock is not the clock of this machine.
"""

import ctypes
import os
import stat
import sys
import time
from collections.abc import Iterable
from functools import cache

MARGIN_NS = 20_000_000
"""An entry that changed so shortly before a search may have changed during it."""
_STEP_NS = 15_000_000
"""No path is sure if the clock was set back by more during a search."""
_SECOND_NS = 1_000_000_000
_ROOT = b""
_LOCAL = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # btrfs
        0x01021994,  # tmpfs
        0x794C7630,  # overlayfs
        0xF2F52010,  # F2FS
        0x2FC12FC1,  # ZFS
        0xCA451A4E,  # bcachefs
    }
)
"""File systems that set change times by the clock of this machine."""


class UnchangedPaths:
    """Created before a search, used after it; paths are relative to the root."""

    def __init__(self, fd: int, *, are_named: bool = False) -> None:
        """Note that a search of the directory `fd` begins.

        With `are_named` the caller names the files, so they may have been links before.
        """
        self._fd = fd
        self._are_named = are_named
        self._device = os.fstat(fd).st_dev
        self._is_local = _is_local(fd)
        self._began_ns, self._began_at = time.time_ns(), time.monotonic_ns()
        self._old_ns = self._began_ns - MARGIN_NS

    def select_unsure(self, paths: Iterable[bytes]) -> list[bytes]:
        """The paths that may have led to another file."""
        if not self._has_usable_clock():
            return list(paths)
        known: dict[bytes, tuple[bool, bool]] = {}
        unsure: list[bytes] = []
        for path in paths:
            is_sure, is_settled = state = self._state(path.rpartition(b"/")[0], known)
            is_checked = state != (True, True) or self._are_named
            if is_checked and not (is_sure and self._is_file_sure(path, is_settled=is_settled)):
                unsure.append(path)
        return unsure

    def find_moving(self, directories: Iterable[bytes]) -> set[bytes]:
        """The directories in which files may have been replaced."""
        if self._are_named or not self._has_usable_clock():
            return set(directories)
        known: dict[bytes, tuple[bool, bool]] = {}
        return {path for path in directories if self._state(path, known) != (True, True)}

    def _state(self, directory: bytes, known: dict[bytes, tuple[bool, bool]]) -> tuple[bool, bool]:
        """Whether a directory stayed the same, and whether its entries did."""
        state = known.get(directory)
        if state is not None:
            return state
        state = (False, False)
        if directory == _ROOT:
            state = (True, self._is_old(os.fstat(self._fd)))
        else:
            is_above_sure, is_above_old = self._state(directory.rpartition(b"/")[0], known)
            if is_above_sure:
                try:
                    info = os.stat(directory, dir_fd=self._fd, follow_symlinks=False)
                except OSError:
                    info = None
                if info and stat.S_ISDIR(info.st_mode) and info.st_dev == self._device:
                    is_old = self._is_old(info)
                    state = (is_old or is_above_old, is_old)
        known[directory] = state
        return state

    def _is_file_sure(self, path: bytes, *, is_settled: bool) -> bool:
        try:
            info = os.stat(path, dir_fd=self._fd, follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISREG(info.st_mode) and (is_settled or self._is_old(info))

    def _is_old(self, info: os.stat_result) -> bool:
        changed_ns = info.st_ctime_ns
        # Some file systems keep whole seconds.
        return changed_ns < self._old_ns - (0 if changed_ns % _SECOND_NS else 2 * _SECOND_NS)

    def _has_usable_clock(self) -> bool:
        by_wall_ns = time.time_ns() - self._began_ns
        elapsed_ns = time.monotonic_ns() - self._began_at
        return self._is_local and by_wall_ns >= elapsed_ns - _STEP_NS


def _is_local(fd: int) -> bool:
    answer = ctypes.create_string_buffer(256)
    if sys.platform != "linux" or _load_libc().fstatfs(fd, answer) != 0:
        return False
    kind = ctypes.c_long.from_buffer(answer).value
    return (kind & 0xFFFFFFFF) in _LOCAL


@cache
def _load_libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
