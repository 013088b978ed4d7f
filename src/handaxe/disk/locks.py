"""Advisory locks between threads and processes.

The lock of a file is `flock` on the descriptor of its directory: it leaves no lock file in the
user's project, holds across data directories, and dies with its process. It keeps handaxe's own
writers apart; other programs do not know it, so writers still compare before they replace.

`flock` alone is not fair: a writer that releases the lock and takes it again at once wins over one
that sleeps between two attempts. So a waiting writer marks its place in a queue, and no other
writer passes it. The mark is a shared lock of one byte, at the time of its arrival, on the same
open descriptor; like the lock itself it leaves nothing behind and dies with its process.
"""

import errno
import fcntl
import struct
import time

from handaxe.disk.errors import LockTimeout

WAIT_S = 10.0

_SHORTEST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.005
_LONGEST_PAUSE_OF_FIRST_S = 0.001
# A process that is stopped in the queue takes no lock; those behind it go on after this time.
_MOST_IDLE_S = 0.05
# Network and user-space file systems answer with one of these when they know no such lock.
_NO_LOCKS_HERE = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}

_SET_MARK = getattr(fcntl, "F_OFD_SETLK", None)
_GET_MARK = getattr(fcntl, "F_OFD_GETLK", None)
_MARK = struct.Struct("hhqqi")
_ANY_MARK = _MARK.pack(fcntl.F_WRLCK, 0, 0, 0, 0)
_NO_MARK = _MARK.pack(fcntl.F_UNLCK, 0, 0, 0, 0)


def hold(fd: int, *, shared: bool = False, wait_s: float | None = None) -> bool:
    """Take the lock of an open descriptor; False where the file system has no locks.

    Exclusive locks are given in the order of arrival. `wait_s=0` does not wait.

    Raises:
        Locked: another process kept it for `wait_s`, by default `WAIT_S`.
    """
    wait_s = WAIT_S if wait_s is None else wait_s
    flags = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    is_queued = not shared and wait_s > 0
    try:
        if not (is_queued and _find_mark(fd, _ANY_MARK) is not None) and _take(fd, flags):
            return True
        if is_queued:
            return _wait_in_queue(fd, flags, wait_s)
        return _wait(fd, flags, wait_s)
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE:
            raise
        return False


def release(fd: int) -> None:
    """Give a lock back while the descriptor stays open."""
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        # A file system without locks has nothing to take back.
        return


def _wait(fd: int, flags: int, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    pause_s = 0.0
    while True:
        if time.monotonic() >= deadline:
            raise LockTimeout(wait_s)
        pause_s = _sleep(min(pause_s * 2, _LONGEST_PAUSE_S))
        if _take(fd, flags):
            return True


def _wait_in_queue(fd: int, flags: int, wait_s: float) -> bool:
    arrived_ns = time.monotonic_ns()
    earlier = _MARK.pack(fcntl.F_WRLCK, 0, 0, arrived_ns, 0)
    _set_mark(fd, _MARK.pack(fcntl.F_RDLCK, 0, arrived_ns, 1, 0))
    deadline = time.monotonic() + wait_s
    pause_s = 0.0
    idle: tuple[int, float] | None = None
    try:
        while True:
            ahead = _find_mark(fd, earlier)
            if not _take(fd, flags):
                idle = None
            elif ahead is None:
                return True
            else:
                # Free, and left to the one ahead, as long as that one is seen to do something.
                now = time.monotonic()
                idle = idle if idle and idle[0] == ahead else (ahead, now)
                if now - idle[1] >= _MOST_IDLE_S:
                    return True
                release(fd)
            if time.monotonic() >= deadline:
                raise LockTimeout(wait_s)
            longest_s = _LONGEST_PAUSE_OF_FIRST_S if ahead is None else _LONGEST_PAUSE_S
            pause_s = _sleep(min(pause_s * 2, longest_s))
    finally:
        _set_mark(fd, _NO_MARK)


def _sleep(pause_s: float) -> float:
    """Pause about that long, at least `_SHORTEST_PAUSE_S`; gives how long it was meant to be."""
    pause_s = max(pause_s, _SHORTEST_PAUSE_S)
    # Waiters that sleep equally long would meet again and again.
    time.sleep(pause_s * (0.5 + time.perf_counter_ns() % 997 / 997))
    return pause_s


def _take(fd: int, flags: int) -> bool:
    try:
        fcntl.flock(fd, flags)
    except BlockingIOError:
        return False
    return True


def _find_mark(fd: int, where: bytes) -> int | None:
    """The place of another waiting process, in the part of the queue that `where` names."""
    if _GET_MARK is None:
        return None
    try:
        found = fcntl.fcntl(fd, _GET_MARK, where)
    except OSError:
        # Without marks everybody tries at once, as if nobody waited.
        return None
    kind, _, start, _, _ = _MARK.unpack(found)
    return None if kind == fcntl.F_UNLCK else start


def _set_mark(fd: int, mark: bytes) -> None:
    if _SET_MARK is None:
        return
    try:
        fcntl.fcntl(fd, _SET_MARK, mark)
    except OSError:
        # A descriptor that cannot be read cannot be marked either.
        return
