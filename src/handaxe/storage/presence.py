"""Who works in a session now: a lock beside its log, held for as long as a process lives.

What a log leaves open is lost only if nobody is there any more. The lock is shared between all
that work in the session; whoever can have it alone may close what the dead left. It says nothing
of whose a call is: while somebody is there, nothing is taken for lost.
"""

import os
from contextlib import suppress
from pathlib import Path

from handaxe.disk import locks
from handaxe.disk.durability import close
from handaxe.disk.faults import DiskFault

LOCK_NAME = "in-use.lock"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Presence:
    """One process, or one of several logs in it, at work in a session's directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_NAME
        self._fd = -1

    @property
    def is_held(self) -> bool:
        """Whether others know of us."""
        return self._fd >= 0

    def enter(self) -> None:
        """Be there until `leave`; a disk that is full or knows no locks keeps nobody from work."""
        with suppress(OSError, DiskFault):
            self._open()
            locks.hold(self._fd, shared=True)

    def enter_alone(self) -> bool:
        """Be there if nobody else is, and let nobody in until `enter`; whether that worked."""
        try:
            self._open()
            locks.hold(self._fd, wait_s=0)
        except locks.Locked:
            self.leave()
            return False
        except (OSError, DiskFault):
            # Who cannot see the others goes on as if there were none.
            return True
        return True

    def leave(self) -> None:
        """Be gone."""
        if self._fd >= 0:
            close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.leave()

    def _open(self) -> None:
        if self._fd < 0:
            self._fd = os.open(self._path, _OPEN, 0o600)
