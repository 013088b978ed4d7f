"""The supervisor of this process, and connections to its workers.

One per process, shared by all sessions: `WORKERS`. The first command starts it.
"""

import atexit
import errno
import marshal
import os
import resource
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

from handaxe.contract.faults.shell import CannotStart
from handaxe.process.process_tags import get_host_token
from handaxe.process.supervisor import APART, CONTROL_FD
from handaxe.process.worker_connection import WorkerConnection

MAX_IDLE = 20
"""Maximum number of idle workers per kind; others are released after their command."""

_TOO_MANY_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.EBADF})
_START_FD = 251
_RESERVE = 50
"""More than a sandbox needs."""
_REPLY_S = 8.0
_ROOT = str(Path(__file__).parents[2])
_PROGRAM = """\
import sys
sys.path.append(sys.argv[1])
from handaxe.process.supervisor import main
main(int(sys.argv[2]), sys.argv[3])
"""
_KINDS = socket.SOCK_SEQPACKET | getattr(socket, "SOCK_CLOEXEC", 0)


class WorkerPool:
    """The workers of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reply_lock = threading.Lock()
        self._idle: dict[bool, list[WorkerConnection]] = {False: [], True: []}
        self._control: socket.socket | None = None
        self.supervisor_pid = 0
        self._former: set[int] = set()
        self._max_files = 0
        """The open file limit of commands, inherited from the supervisor."""

    def get_ready(self) -> None:
        """Start the supervisor and one worker in advance."""
        with self._lock:
            idle = self._idle[False]
            if not idle:
                # Callers that need a worker get the reason.
                with suppress(OSError):
                    idle.append(self._open_connection(is_apart=False))

    def take(self, *, is_apart: bool = False) -> WorkerConnection:
        """A connection to a free worker; raises `OSError` if none is available.

        `is_apart`: one with its own network to lend, if possible.
        """
        with self._lock:
            self._reap()
            while idle := self._idle[is_apart]:
                line = idle.pop()
                if _is_alive(line):
                    return line
                line.close()
            return self._open_connection(is_apart=is_apart)

    def give_back(self, line: WorkerConnection) -> None:
        """Return a worker whose command ended without leftovers."""
        with self._lock:
            idle = self._idle[line.is_apart]
            if len(idle) < MAX_IDLE:
                idle.append(line)
                return
        line.close()

    def keep_watch(self) -> None:
        """Ensure that children of this process are ended if it is killed."""
        if self._control is None and sys.platform == "linux" and sys.executable:
            with self._lock, suppress(OSError):
                self._control = self._control or self._start_supervisor()

    def choose_start_fd(self) -> int:
        """A descriptor number for the start text, with the two numbers below it free.

        Descriptors for a sandbox keep their numbers of this process.
        """
        free = 0
        # If no file can be opened, starting the command reports it.
        with suppress(OSError):
            free = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            os.close(free)
        wanted = _START_FD if free < _START_FD - _RESERVE else free + _RESERVE
        return min(wanted, get_max_open_files() - 1, (self._max_files or wanted + 1) - 1)

    def wake_worker(self, line: WorkerConnection) -> None:
        """Resume the worker and the supervisor that messages depend on."""
        line.wake()
        if self._control is not None:
            with suppress(OSError):
                os.kill(self.supervisor_pid, signal.SIGCONT)

    def end(self, worker_pid: int) -> bool:
        """Kill a worker that does not answer, and its processes; blocks. False if that failed."""
        with self._reply_lock:
            control = self._control
            if control is None:
                return False
            try:
                os.kill(self.supervisor_pid, signal.SIGCONT)
                control.send(marshal.dumps((worker_pid, 0)))
                if control.recv(64):
                    return True
            except OSError:
                pass
        with self._lock:
            self._drop_supervisor(control)
        return False

    def shut_down(self) -> None:
        """Release all workers and end what still runs."""
        with self._lock:
            self._forget()

    def close_after_fork(self) -> None:
        """In a forked child: close the copies, so that the supervisor does not wait for them."""
        self._lock = threading.Lock()
        self._reply_lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        for idle in self._idle.values():
            while idle:
                idle.pop().close()
        if self._control is not None:
            self._control.close()
            self._control = None
            self._former.add(self.supervisor_pid)

    def _open_connection(self, *, is_apart: bool) -> WorkerConnection:
        ours, theirs = socket.socketpair(socket.AF_UNIX, _KINDS)
        with theirs:
            try:
                self._hand_over(theirs, APART if is_apart else b"fork")
            except BaseException:
                ours.close()
                raise
        return WorkerConnection(ours, is_apart=is_apart)

    def _hand_over(self, theirs: socket.socket, kind: bytes) -> None:
        if self._control is not None:
            with suppress(ConnectionError):
                socket.send_fds(self._control, [kind], [theirs.fileno()])
                return
            self._drop_supervisor(self._control)
        self._control = self._start_supervisor()
        socket.send_fds(self._control, [kind], [theirs.fileno()])

    def _drop_supervisor(self, control: socket.socket) -> None:
        """The supervisor was killed; its workers continue."""
        control.close()
        if self._control is control:
            self._control = None
            with suppress(OSError):
                os.kill(self.supervisor_pid, signal.SIGKILL)
                os.waitpid(self.supervisor_pid, 0)

    def _reap(self) -> None:
        """Reap supervisors that were released and have ended."""
        if self._former:
            self._former = {pid for pid in self._former if not _has_ended(pid)}

    def _start_supervisor(self) -> socket.socket:
        self._reap()
        self._max_files = get_max_open_files()
        ours, theirs = socket.socketpair(socket.AF_UNIX, _KINDS)
        kept = ("LD_LIBRARY_PATH", "PATH")
        nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
        with theirs:
            self.supervisor_pid = os.posix_spawn(
                sys.executable,
                [
                    sys.executable,
                    "-I",
                    "-S",
                    "-c",
                    _PROGRAM,
                    _ROOT,
                    str(os.getpid()),
                    get_host_token(),
                ],
                {name: os.environ[name] for name in kept if name in os.environ},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), CONTROL_FD),
                    nothing,
                    (os.POSIX_SPAWN_DUP2, 0, 1),
                    (os.POSIX_SPAWN_DUP2, 0, 2),
                ],
                setsid=True,
                setsigmask=(),
            )
        ours.settimeout(_REPLY_S)
        return ours


def get_max_open_files() -> int:
    """The open file limit of this process."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def explain_failed_start(error: int | None, reason: str) -> CannotStart:
    """Why a command did not start, with a remedy."""
    if error not in _TOO_MANY_FILES:
        return CannotStart(reason)
    return CannotStart(
        f"too many files would be open at once (`ulimit -n` is {get_max_open_files()})",
        "Raise that limit where handaxe is started, for example with `ulimit -n 1024`, or wait for "
        "other commands to end.",
    )


def _is_alive(line: WorkerConnection) -> bool:
    try:
        words = line.hear()
    except BlockingIOError:
        return True
    # All that a warden says while it waits is that it is there.
    if words is None or words[0] != "here":
        return False
    line.worker_pid = words[1]
    return True


def _has_ended(child: int) -> bool:
    try:
        return os.waitpid(child, os.WNOHANG)[0] == child
    except OSError:
        return True


WORKERS = WorkerPool()
atexit.register(WORKERS.shut_down)
os.register_at_fork(after_in_child=WORKERS.close_after_fork)
