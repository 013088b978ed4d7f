"""Notice cheaply that one of some files was touched, also one that was not there before."""

import os
import time
from collections.abc import Iterable

Stamp = tuple[int, ...]
_UNSEEN: Stamp = (0, 0, -1, 0, 0)

_TICK_NS = 50_000_000
"""Two changes within one tick of a file's clock can look like one."""


class Watch:
    """How some files looked. For a file that is missing, the nearest directory is watched."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._stamps: dict[str, Stamp] = {}
        self._directories: dict[str, Stamp | None] = {}
        self._recent_ns = time.time_ns() - _TICK_NS
        self._is_unsure = False
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Watch one more file or directory."""
        directory = path.rpartition("/")[0] or "/"
        # The directory is looked at first: what appears in it meanwhile changes it once more.
        if not self._is_directory(directory) or path in self._stamps:
            return
        stamp = _stamp(path)
        if stamp is None:
            self._note(directory, self._directories[directory])
        else:
            self._note(path, stamp)

    def stamp_of(self, path: str) -> Stamp | None:
        """How the file looked; None if it was not there."""
        return self._stamps.get(path)

    def is_quiet(self) -> bool:
        """Whether surely nothing was touched since."""
        return not self._is_unsure and all(
            _stamp(path) == stamp for path, stamp in self._stamps.items()
        )

    def _is_directory(self, directory: str) -> bool:
        if directory not in self._directories:
            stamp = self._directories[directory] = _stamp(directory)
            if stamp is None and directory != "/":
                above = directory.rpartition("/")[0] or "/"
                if self._is_directory(above):
                    self._note(above, self._directories[above])
        return self._directories[directory] is not None

    def _note(self, path: str, stamp: Stamp | None) -> None:
        if stamp is not None:
            self._stamps[path] = stamp
            # What was touched just now may be touched again without looking different.
            self._is_unsure |= max(stamp[:2]) > self._recent_ns


def _stamp(path: str) -> Stamp | None:
    """What changes whenever the file or directory does; None if it is not there."""
    try:
        info = os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError:
        # Something is there that may not be looked at; whoever reads it will hear why.
        return _UNSEEN
    return (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino, info.st_dev)
