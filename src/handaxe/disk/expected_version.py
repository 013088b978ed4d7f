"""The current file of a name, compared with the one a caller expects."""

import contextlib
import os
import sys
import time
from types import TracebackType
from typing import Self

from handaxe.disk.durability import close
from handaxe.disk.safe_open import open_regular, refuse_special
from handaxe.disk.versions import ABSENT, Absent, Version, VersionChanged, build_version, hash_file

_WORTH_HASHING_BYTES = 1 << 26
# Two changes within one tick of the file system's clock look like one. Linux stamps files with
# this clock, which stands still between ticks; elsewhere a wide guess has to do.
_COARSE_REALTIME = 5
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000


class CurrentFile:
    """The regular file at a name, held open; or its absence."""

    def __init__(self, directory_fd: int, name: str) -> None:
        self._directory_fd = directory_fd
        self._name = name
        self.exists = True
        self._found_at_ns = _get_clock_ns()
        try:
            self.fd, self.info = open_regular(name, dir_fd=directory_fd)
        except FileNotFoundError:
            self.exists = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.exists:
            close(self.fd)

    @property
    def size_bytes(self) -> int:
        """The size it had when it was found; 0 if there is no file."""
        return self.info.st_size if self.exists else 0

    def refresh_status(self) -> None:
        """Read the status again, after this process changed something other than the content."""
        self._found_at_ns = _get_clock_ns()
        self.info = os.fstat(self.fd)

    def version(self) -> Version | Absent:
        """The current state, with a digest unless the file is huge."""
        if not self.exists:
            return ABSENT
        size_bytes = self.info.st_size
        if size_bytes > _WORTH_HASHING_BYTES:
            return build_version(self.info, "", size_bytes)
        return build_version(self.info, *hash_file(self.fd, size_bytes))

    def check_presence(self, expect: Version | Absent | None) -> None:
        """Raise Changed where existence or size alone tell."""
        if expect is None:
            return
        size_bytes = expect.size_bytes if isinstance(expect, Version) else None
        if size_bytes != (self.info.st_size if self.exists else None):
            raise VersionChanged(self.version())

    def check_content(self, expect: Version | Absent | None) -> None:
        """Raise Changed unless the bytes are the expected ones."""
        if self.exists and isinstance(expect, Version):
            actual = build_version(self.info, *hash_file(self.fd, self.info.st_size))
            if not expect.has_same_content(actual):
                raise VersionChanged(actual)

    def check_again(self, expect: Version | Absent | None) -> None:
        """Raise Changed if the name leads to other content than at the first check.

        Cheap if nothing was touched; what was touched is hashed again.
        """
        if expect is None:
            self._refuse_special()
            return
        if not self.exists or self._is_surely_untouched():
            return
        with CurrentFile(self._directory_fd, self._name) as now:
            now.check_presence(expect)
            now.check_content(expect)

    def _refuse_special(self) -> None:
        """Whatever content is welcome, but not a link or a directory that came in between."""
        with contextlib.suppress(FileNotFoundError):
            now = os.stat(self._name, dir_fd=self._directory_fd, follow_symlinks=False)
            refuse_special(self._name, now)

    def _is_surely_untouched(self) -> bool:
        try:
            now = os.stat(self._name, dir_fd=self._directory_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return _get_identity(now) == _get_identity(self.info) and not self._can_hide_change()

    def _can_hide_change(self) -> bool:
        """Whether a change right after the file was found could have left its times equal.

        The time of the content tells. That of the status is younger wherever the file was given
        a second name a moment ago, to keep its old content.
        """
        info = self.info
        is_coarse = not (info.st_ctime_ns % 1_000_000_000 or info.st_mtime_ns % 1_000_000_000)
        return info.st_mtime_ns + (_COARSE_TICK_NS if is_coarse else 0) >= self._found_at_ns


def _get_identity(info: os.stat_result) -> tuple[int, ...]:
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def _get_clock_ns() -> int:
    """The newest time stamp of a file that was changed before now."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(_COARSE_REALTIME)
    return time.time_ns() - _TICK_NS
