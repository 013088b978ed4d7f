"""Notice cheaply that one of some files was touched, also one that was not there before."""

import os
import time
from collections.abc import Iterable
from itertools import repeat

Stamp = tuple[int, ...]
_UNSEEN: Stamp = (0, 0, -1, 0, 0)

_TICK_NS = 50_000_000
"""Two changes within one tick of a file's clock can look like one."""


class FileStamps:
    """How some files looked. Of a file that is missing, the first missing directory is watched."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._stamps: dict[str, Stamp] = {}
        self._missing: dict[str, bytes] = {}
        self._recent_ns = time.time_ns() - _TICK_NS
        self._is_unsure = False
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Watch one more file or directory."""
        if path in self._stamps or path in self._missing:
            return
        stamp = read_stamp(path)
        if stamp is None and is_dangling(path):
            stamp = _UNSEEN
        if stamp is None:
            first = _find_first_missing(path)
            self._missing[first] = os.fsencode(first)
            return
        self._stamps[path] = stamp
        # What was touched just now may be touched again without looking different.
        self._is_unsure |= max(stamp[:2]) > self._recent_ns

    def get_stamp(self, path: str) -> Stamp | None:
        """How the file looked; None if it was not there."""
        return self._stamps.get(path)

    def is_quiet(self) -> bool:
        """Whether surely nothing was touched since."""
        if self._is_unsure:
            return False
        for path, stamp in self._stamps.items():
            now = read_stamp(path)
            if now != stamp and (now is not None or stamp != _UNSEEN or not is_dangling(path)):
                return False
        # Half the price of `stat`, which raises.
        return not any(map(os.access, self._missing.values(), repeat(os.F_OK)))


def _find_first_missing(path: str) -> str:
    """The topmost part of a missing path that is missing itself; while it is, so is the rest."""
    above = path.rpartition("/")[0]
    while above and read_stamp(above) is None:
        path, above = above, above.rpartition("/")[0]
    return path


def read_stamp(path: str) -> Stamp | None:
    """A stamp that changes when the file or directory changes, or None if it is missing."""
    try:
        info = os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError:
        # Something is there that may not be looked at; whoever reads it will hear why.
        return _UNSEEN
    return (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino, info.st_dev)


def is_dangling(path: str) -> bool:
    """Whether a path is missing because a link on the way leads to nothing: it was meant to be."""
    if "\0" in path:
        return False
    while path and not os.path.lexists(path):
        path = path.rpartition("/")[0]
    return bool(path) and read_stamp(path) is None
