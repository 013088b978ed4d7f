"""Run one hook program: start it, write its input, read its output, end it with its children.

Everything except `kill` runs in a separate thread, so a slow program does not block the event loop.
The program leads its own session; the rest of its process group is ended with it. Children in other
sessions are found by a tag in their environment and ended too.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from handaxe.process.process_tags import kill_tagged, tag_environment
from handaxe.process.worker_pool import WORKERS

MAX_STDOUT_BYTES = 1 << 20
MAX_STDERR_BYTES = 1 << 16
GRACE_S = 0.5
"""How long a program may take to exit after its timeout."""
DRAIN_S = 0.1
"""How long to wait for more output when a child of an ended program holds the pipe."""
GIVE_UP_S = 2.0
MARK = "HANDAXE_HOOK"

_PIECE_BYTES = 1 << 16
_TICK_S = 0.02
_LONG_S = 60.0


class HookProcessResult(msgspec.Struct, frozen=True):
    """The end of the program."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool


class HookProcess:
    """A program with its own thread."""

    def __init__(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], mark: str) -> None:
        self._argv = argv
        self._cwd = cwd
        self._mark = mark
        self._env = tag_environment({**env, MARK: mark})
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_unwanted = False

    def kill(self) -> None:
        """End it now; may be called from any thread at any time."""
        with self._lock:
            self._is_unwanted = True
            self._signal(signal.SIGKILL)

    def run(self, stdin: bytes, timeout_s: float) -> HookProcessResult:
        """Start it and return how it ended; `OSError` if it cannot be started."""
        ends_at = time.monotonic() + timeout_s
        process = self._start()
        pipes = _Pipes(process, stdin)
        try:
            timed_out = not pipes.serve_until_exit(ends_at)
            if timed_out:
                with self._lock:
                    self._signal(signal.SIGTERM)
                pipes.serve_until_exit(time.monotonic() + GRACE_S)
            elif not self._is_unwanted:
                pipes.serve_until_silent(time.monotonic() + DRAIN_S)
        finally:
            exit_code = self._end(process)
            pipes.close()
        kill_tagged(MARK, self._mark, since=process.pid)
        return HookProcessResult(exit_code, bytes(pipes.stdout), bytes(pipes.stderr), timed_out)

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # noqa: S603 - what the user configured is what runs
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._cwd,
            env=self._env,
            bufsize=0,
            start_new_session=True,
        )
        WORKERS.keep_watch()
        with self._lock:
            self._process = process
            if self._is_unwanted:
                self._signal(signal.SIGKILL)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> int:
        """Kill the rest of the group and read the exit code; never waits while holding the lock."""
        give_up_at = time.monotonic() + GIVE_UP_S
        with self._lock:
            self._signal(signal.SIGKILL)
        while True:
            with self._lock:
                if (exit_code := process.poll()) is not None:
                    self._process = None
                    return exit_code
            if time.monotonic() > give_up_at:
                # Stuck in the kernel, unreachable by signals: the call continues without it.
                return -signal.SIGKILL
            time.sleep(0.001)

    def _signal(self, number: signal.Signals) -> None:
        # Not yet waited for, so the number still belongs to this group and to no other.
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


class _Pipes:
    """The three pipes of a program and the event of its end."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._process = process
        self._has_ended = False
        self._unsent = memoryview(stdin)
        self._in = process.stdin.fileno()
        self._kept = {
            process.stdout.fileno(): (self.stdout, MAX_STDOUT_BYTES),
            process.stderr.fileno(): (self.stderr, MAX_STDERR_BYTES),
        }
        self._news = _open_exit_event(process.pid)
        self._poll = select.poll()
        for fd in self._kept:
            os.set_blocking(fd, False)
            self._poll.register(fd, select.POLLIN)
        os.set_blocking(self._in, False)
        self._poll.register(self._in, select.POLLOUT)
        if self._news is not None:
            self._poll.register(self._news, select.POLLIN)
        self._talking = set(self._kept)

    def serve_until_exit(self, deadline: float) -> bool:
        """Exchange data until the program ends; False at the deadline."""
        while not self._ended():
            if not self._serve(deadline):
                return False
        return True

    def serve_until_silent(self, deadline: float) -> None:
        """Read until all pipes are closed, or until the deadline."""
        while self._talking and self._serve(deadline):
            pass

    def close(self) -> None:
        """Close every descriptor."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if self._news is not None:
            os.close(self._news)

    def _serve(self, deadline: float) -> bool:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        wait_s = min(left_s, _LONG_S if self._news is not None else _TICK_S)
        for fd, _ in self._poll.poll(wait_s * 1000):
            if fd == self._news:
                self._has_ended = True
                self._poll.unregister(fd)
            elif fd == self._in:
                self._feed()
            else:
                self._listen(fd)
        return True

    def _feed(self) -> None:
        try:
            sent = os.write(self._in, self._unsent[:_PIECE_BYTES]) if self._unsent else 0
        except BlockingIOError:
            return
        except OSError:
            # It does not want to hear more.
            self._unsent = self._unsent[:0]
            sent = 0
        self._unsent = self._unsent[sent:]
        if not self._unsent and self._process.stdin is not None:
            self._poll.unregister(self._in)
            self._in = -1
            with suppress(OSError):
                self._process.stdin.close()

    def _listen(self, fd: int) -> None:
        try:
            piece = os.read(fd, _PIECE_BYTES)
        except BlockingIOError:
            return
        if not piece:
            self._poll.unregister(fd)
            self._talking.discard(fd)
            return
        kept, most = self._kept[fd]
        kept += piece[: most - len(kept)]

    def _ended(self) -> bool:
        if self._news is None and not self._has_ended:
            self._has_ended = _is_zombie(self._process)
        return self._has_ended


def _open_exit_event(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, if the system supports it."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _is_zombie(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, without reaping it if that can be avoided."""
    if sys.platform == "darwin":
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
