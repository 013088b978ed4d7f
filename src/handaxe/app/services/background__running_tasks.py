"""How much background work of one user goes on, over all processes and sessions.

Every session that has some keeps its number in a file of its own, locked for as long as it lives.
So what a killed process left behind is known by its free lock, and does not count.
"""

import os
from contextlib import suppress
from pathlib import Path

from handaxe.disk import locks
from handaxe.disk.durability import close
from handaxe.disk.errors import DiskFault
from handaxe.storage.home import make_private_directory

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_DIGITS = 8


class TaskCounter:
    """What one session says of itself, and what the others say."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "running"
        self._own = self._directory / os.urandom(8).hex()
        self._fd = -1

    def note(self, count: int) -> None:
        """So much goes on in this session now; a full disk does not keep anybody from work."""
        with suppress(OSError, DiskFault):
            if count and self._fd < 0:
                make_private_directory(self._directory)
                self._fd = os.open(self._own, _CREATE, 0o600)
                locks.hold(self._fd, wait_s=0)
            if count:
                os.pwrite(self._fd, b"%*d" % (_MOST_DIGITS, count), 0)
        if not count:
            self.close()

    def elsewhere(self) -> int:
        """How much goes on in other sessions."""
        total = 0
        with suppress(OSError):
            for place in self._directory.iterdir():
                if place != self._own:
                    total += _read_count(place)
        return total

    def close(self) -> None:
        """Nothing goes on here any more."""
        if self._fd >= 0:
            self._own.unlink(missing_ok=True)
            close(self._fd)
            self._fd = -1


def _read_count(place: Path) -> int:
    try:
        fd = os.open(place, _OPEN)
    except OSError:
        return 0
    try:
        locks.hold(fd, wait_s=0)
        # Nobody holds it any more.
        place.unlink(missing_ok=True)
    except DiskFault:
        with suppress(OSError, ValueError):
            return int(os.pread(fd, _MOST_DIGITS, 0))
    finally:
        close(fd)
    return 0
