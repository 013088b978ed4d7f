"""Advisory locks between threads and processes.

The lock of a file is `flock` on the descriptor of its directory: it leaves no lock file in the
user's project, holds across data directories, and dies with its process. It keeps handaxe's own
writers apart; other programs do not know it, so writers still compare before they replace.
"""

import errno
import fcntl
import time

from handaxe.disk.faults import Locked

WAIT_S = 10.0

_SHORTEST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.005
# Network and user-space file systems answer with one of these when they know no such lock.
_NO_LOCKS_HERE = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


def hold(fd: int, *, shared: bool = False, wait_s: float | None = None) -> bool:
    """Take the lock of an open descriptor; False where the file system has no locks.

    Raises:
        Locked: somebody else kept it for `wait_s`, by default `WAIT_S`.
    """
    wait_s = WAIT_S if wait_s is None else wait_s
    flags = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    deadline = pause_s = 0.0
    while True:
        try:
            fcntl.flock(fd, flags)
        except BlockingIOError:
            now = time.monotonic()
            deadline = deadline or now + wait_s
            if now >= deadline:
                raise Locked(wait_s) from None
            pause_s = min(max(pause_s * 2, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
            # Waiters that sleep equally long would meet again and again.
            time.sleep(pause_s * (0.5 + time.perf_counter_ns() % 997 / 997))
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise
            return False
        else:
            return True


def release(fd: int) -> None:
    """Give a lock back while the descriptor stays open."""
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        # A file system without locks has nothing to take back.
        return
