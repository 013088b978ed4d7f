"""Which process has a session open, and which processes work in it now.

A session is open in one process alone, or in several that asked to share it (`SessionLock`). One
file per data directory has a byte for each session and for each call under way in a shared one.
A process holds the lock of a byte until it releases it or dies. So a process needs one descriptor
for all its sessions. These locks do not distinguish two holders in one process; a table does.

Every process that writes to the session's log holds a shared lock beside it (`Presence`). Open
calls of a log are lost only if no process holds it: a process that gets the lock alone may close
the calls of dead processes. The lock does not say which process made a call: while any process
holds it, no call counts as lost.
"""

import errno
import fcntl
import gc
import hashlib
import os
import struct
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from handaxe.disk import locks
from handaxe.disk.durability import close
from handaxe.disk.errors import DiskFault
from handaxe.storage.home import make_durable_directory

LOCK_NAME = "in-use.lock"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN = {errno.EACCES, errno.EAGAIN}
_FLOCK = struct.Struct("hhqqi4x")
"""`struct flock` of 64-bit Linux, whose last number is a process."""


class SharedSessionLock:
    """One process, or one of several logs in it, at work in a session's directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_NAME
        self._fd = -1

    @property
    def is_held(self) -> bool:
        """Whether others know of us."""
        return self._fd >= 0

    def enter(self) -> None:
        """Hold the shared lock until `leave`; a full disk or missing locks stop no work."""
        with suppress(OSError, DiskFault):
            self._open()
            locks.hold(self._fd, shared=True)

    def enter_alone(self) -> bool:
        """Take the lock alone until `enter`; False if another process holds it."""
        try:
            self._open()
            locks.hold(self._fd, wait_s=0)
        except locks.LockTimeout:
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


def get_holders_file(home: Path) -> Path:
    """Where the locks of all sessions are."""
    return home / "holders.lock"


class SessionLock:
    """A session in the hands of one `Session` object."""

    def __init__(
        self, home: Path, session_id: str, *, shared: bool = False, is_named: bool = False
    ) -> None:
        """A named session is taken at once: other processes may have it."""
        self._home = home
        self._session_id = session_id
        self.is_shared = shared
        self._is_held = False
        self._calls: set[int] = set()
        if is_named:
            self.take()

    def take(self) -> None:
        """Hold the session until `release`; a full disk or missing locks stop no work.

        Raises:
            SessionBusy: another process has it, and not both asked to share it.
        """
        if self._is_held:
            return
        place = hash_offset(self._session_id)
        for is_last in (False, True):
            holder = take_place(self._home, place, shared=self.is_shared)
            if holder != os.getpid() or is_last:
                break
            # An object that nobody has any more may not have been cleared away yet.
            gc.collect()
        if holder is not None:
            from handaxe.contract.faults.session import SessionBusy

            raise SessionBusy(self._session_id, holder, os.getpid())
        self._is_held = True

    def take_call(self, call_id: str) -> bool:
        """Have one call of a shared session; False while another holder has it."""
        place = hash_offset(self._session_id, call_id)
        if take_place(self._home, place, shared=False) is not None:
            return False
        self._calls.add(place)
        return True

    def release_call(self, call_id: str) -> None:
        """The call is over."""
        place = hash_offset(self._session_id, call_id)
        if place in self._calls:
            self._calls.discard(place)
            release_place(self._home, place)

    def release(self) -> None:
        """Others may have it."""
        while self._calls:
            release_place(self._home, self._calls.pop())
        if self._is_held:
            self._is_held = False
            release_place(self._home, hash_offset(self._session_id))

    def __del__(self) -> None:
        self.release()


class _HoldersFile:
    """The open file of one data directory, and what this process holds in it."""

    def __init__(self, home: Path) -> None:
        make_durable_directory(home)
        self.fd = os.open(get_holders_file(home), _OPEN, 0o600)
        self.held: dict[int, tuple[int, bool]] = {}
        """How many objects hold a place, and whether they share it."""
        self.users = 0
        """How many are at work with the descriptor; collected objects come in between."""

    def take(self, place: int, *, shared: bool) -> int | None:
        """Take a place; else the process that has it, 0 if that is not known."""
        count, is_shared = self.held.get(place, (0, True))
        if count and not (shared and is_shared):
            return os.getpid()
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.lockf(self.fd, kind | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            if error.errno in _TAKEN:
                return _find_holder(self.fd, place)
            # A file system without locks: whoever cannot see the others goes on.
        self.held[place] = (count + 1, shared)
        return None

    def is_held(self, place: int) -> bool:
        """Whether any process has a place."""
        if place in self.held:
            return True
        if _can_ask_for_locks():
            return _ask_for_lock(self.fd, place) is not None
        if self.take(place, shared=False) is not None:
            return True
        self.release(place)
        return False

    def release(self, place: int) -> None:
        count, is_shared = self.held.pop(place, (0, False))
        if count > 1:
            self.held[place] = (count - 1, is_shared)
        elif count:
            # If it does not work, it goes with the descriptor.
            with suppress(OSError):
                fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, place)


_lock = threading.RLock()
_files: dict[str, _HoldersFile] = {}


@contextmanager
def _open_holders_file(home: Path) -> Generator[_HoldersFile]:
    """The file of a data directory, closed when nothing in it is held any more."""
    with _lock:
        file = _files.get(str(home))
        if file is None:
            file = _files[str(home)] = _HoldersFile(home)
        file.users += 1
        try:
            yield file
        finally:
            file.users -= 1
            if not file.held and not file.users:
                os.close(_files.pop(str(home)).fd)


def take_place(home: Path, place: int, *, shared: bool) -> int | None:
    """Take a place of a data directory; else the process that has it, 0 if that is not known."""
    try:
        with _open_holders_file(home) as file:
            return file.take(place, shared=shared)
    except OSError:
        return None


def release_place(home: Path, place: int) -> None:
    """Let others have a place."""
    with suppress(OSError), _open_holders_file(home) as file:
        file.release(place)


def is_session_open(home: Path, session_id: str) -> bool:
    """Whether a process has the session open; False where that is unknown."""
    if not get_holders_file(home).exists():
        return False
    try:
        with _open_holders_file(home) as file:
            return file.is_held(hash_offset(session_id))
    except OSError:
        return False


def _find_holder(fd: int, place: int) -> int:
    return (_ask_for_lock(fd, place) or 0) if _can_ask_for_locks() else 0


def _can_ask_for_locks() -> bool:
    return sys.platform == "linux" and struct.calcsize("P") == 8


def _ask_for_lock(fd: int, place: int) -> int | None:
    """The process that holds a lock, 0 if it is unknown; None if it is free.

    It takes no lock, so it disturbs no other process.
    """
    wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
    try:
        found = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, wanted))
    except OSError:
        return None
    # In another container it has a number that means nothing here.
    return max(found[-1], 0) if found[0] != fcntl.F_UNLCK else None


def hash_offset(*names: str) -> int:
    """The place that stands for these names."""
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "little")


def _forget() -> None:
    """A copy of this process holds nothing."""
    for file in _files.values():
        os.close(file.fd)
    _files.clear()


os.register_at_fork(after_in_child=_forget)
