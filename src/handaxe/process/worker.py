"""A worker runs commands one after the other and ends their leftovers.

It is the subreaper of its command: a process that loses its parent becomes the worker's child. So
if the worker has no child left, no process of the command is left, and checking that costs one
system call.
"""

import marshal
import os
import signal
import socket
import time
from contextlib import suppress

from handaxe.process.spawn import (
    ProcessPoller,
    list_descendants,
    read_process_stat,
    signal_groups,
    spawn,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from handaxe.process.write_trace import WriteTrace

CWD_FD = 250
"""The descriptor on which the shell reports its final directory, if possible."""
START_TEXT = f"""\
HANDAXE_FD=${{BASH_ENV##*/}}
unset BASH_ENV
eval "exec $HANDAXE_FD<&- 3>&$((HANDAXE_FD - 1)) $((HANDAXE_FD - 1))>&-"
exec {{HANDAXE_FD}}>&3
exec {{HANDAXE_FD}}>&-
{{
  exec {CWD_FD}>&$HANDAXE_FD && HANDAXE_FD={CWD_FD} || exec {{HANDAXE_FD}}>&$HANDAXE_FD
}} 3>&- 2>&-
exec 3>&-
trap "{{ builtin pwd -P; }} 2>&- >&$HANDAXE_FD" EXIT
unset HANDAXE_FD
"""
"""A script that the shell reads before the command, through `BASH_ENV=/dev/fd/N`.

N - 1 is where it reports its directory. No program it starts may inherit that descriptor. Bash
copies the close-on-exec flag with a descriptor, and sets it on the copy of a temporarily redirected
one, so the descriptor is taken from there. That copy has the first free number from 10 on.
"""

LINGER_S = 0.1
"""How long leftovers of a shell may take to exit by themselves."""
GRACE_S = 0.1
"""How long a process may take to exit after SIGTERM."""
GIVE_UP_S = 5.0
"""After this time a process that cannot be ended is left to the supervisor."""

_CHASE = 48


class ShellWorker:
    """Runs commands one after the other and ends their leftovers."""

    def __init__(
        self, talk: socket.socket, host: int | None, start: int, *, is_apart: bool = False
    ) -> None:
        """`start` is what shells read first; `is_apart`: it has its own network to lend."""
        self._talk = talk
        self._watch = ProcessPoller(talk, host)
        self._start = start
        # No writer can block the reader here.
        self._cwd_from, self._cwd_to = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._shell = 0
        self._status: int | None = None
        self._last_ended = 0
        self._trace: WriteTrace | None = None
        self._network = None
        if is_apart:
            from handaxe.process.netns import NetworkNamespace

            self._network = NetworkNamespace()

    def serve(self) -> bool:
        """Run the host's requests until it ends. Return whether all processes are gone then."""
        self._say(("here", os.getpid()))
        while True:
            if not self._watch.wait():
                continue
            message, fds = self._watch.hear()
            if not message:
                return not self._reap()
            if message == b"stop":
                # Too late: the addressed command has ended.
                continue
            try:
                has_begun = self._begin(message, fds)
            finally:
                for fd in fds:
                    os.close(fd)
            if has_begun and not self._wait_for_shell():
                return not self._reap()

    def _begin(self, message: bytes, fds: list[int]) -> bool:
        if message == b"large":
            message = os.pread(fds[-1], os.fstat(fds[-1]).st_size, 0)
        argv, env, cwd, targets, start_fd, lent, traced = marshal.loads(message)  # noqa: S302 - from our own host
        inherited = dict(zip(targets, fds[1:], strict=False))
        self._status = None
        self._drain_cwd()
        try:
            plan = None
            if lent is not None and (lent[3] or self._network is not None):
                argv, door, port, plan = lent
                if self._network is not None:
                    self._network.begin(inherited.pop(door, None), port)
            os.chdir(cwd)
            given = [(fds[0], 1), (fds[0], 2)]
            if start_fd:
                given += [(self._start, start_fd), (self._cwd_to, start_fd - 1)]
            given += ((source, target) for target, source in inherited.items())
            if traced is not None:
                if plan is not None:
                    # Loading a module may write a file, which the thread that is traced must not.
                    from handaxe.process import landlock_launcher

                    del landlock_launcher
                self._trace = _open_trace(fds[1 + len(targets)], *traced)
                self._shell = self._trace.spawn(lambda: spawn(argv, env, given, plan))
            else:
                self._shell = spawn(argv, env, given, plan)
        except (OSError, ValueError) as error:
            self._end_trace()
            self._say(("failed", getattr(error, "errno", None), str(error)))
            return False
        finally:
            # A directory in use cannot be unmounted.
            os.chdir("/")
        self._say(("started", self._shell))
        return True

    def _wait_for_shell(self) -> bool:
        """Wait for the shell, end other processes, and report; False to accept no more commands."""
        is_wanted, is_stopped = True, False
        while self._status is None and not is_stopped:
            if self._watch.wait():
                is_wanted = bool(self._watch.hear()[0])
                is_stopped = True
            else:
                self._reap()
        survivors, stuck = self._clean_up(linger=not is_stopped)
        self._end_trace()
        words = ("ended", self._status, survivors, stuck, self._drain_cwd())
        return is_wanted and self._say(words) and not stuck

    def _end_trace(self) -> None:
        trace, self._trace = self._trace, None
        if trace is not None:
            trace.close()

    def _clean_up(self, *, linger: bool) -> tuple[int, int]:
        """End all processes of the command; returns how many there were, and how many are stuck."""
        if not self._reap() or (linger and not self._wait_for_all(LINGER_S)):
            return 0, 0
        family = [process for process in list_descendants() if process[2] != b"Z"]
        survivors = sum(1 for process in family if process[0] != self._shell)
        # One that hops about is there even if no list shows it.
        survivors = max(survivors, 1 if linger else 0)
        signal_groups(family, signal.SIGTERM)
        signal_groups(family, signal.SIGCONT)
        is_any_left = self._wait_for_all(GRACE_S)
        give_up_at = time.monotonic() + GIVE_UP_S
        while is_any_left:
            self._kill_forking()
            signal_groups(list_descendants(), signal.SIGKILL)
            is_any_left = self._wait_for_all(0.002)
            if is_any_left and time.monotonic() > give_up_at:
                return survivors, len(list_descendants())
        return survivors, 0

    def _wait_for_all(self, timeout_s: float) -> bool:
        """Wait until no child is left, up to a time limit. Return whether one is left."""
        ends_at = time.monotonic() + timeout_s
        while self._reap():
            left_s = ends_at - time.monotonic()
            if left_s <= 0:
                return True
            self._watch.wait_for_children(left_s)
        return False

    def _kill_forking(self) -> None:
        """End processes that fork faster than they can be listed."""
        me = os.getpid()
        for pid in range(self._last_ended + 1, self._last_ended + _CHASE):
            if (found := read_process_stat(pid)) is not None and found[1] == me:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def _reap(self) -> bool:
        """Reap ended children and return whether any is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            self._last_ended = pid
            if pid == self._shell:
                self._status = status

    def _drain_cwd(self) -> bytes:
        with suppress(BlockingIOError):
            return os.read(self._cwd_from, 1 << 16)
        return b""

    def _say(self, words: "tuple[Any, ...]") -> bool:
        try:
            self._talk.send(marshal.dumps(words))
        except OSError:
            return False
        return True


def _open_trace(file: int, begins: bytes, ends: bytes, may_restrict: bool) -> "WriteTrace":  # noqa: FBT001
    from handaxe.process.write_trace import WriteTrace

    return WriteTrace(os.dup(file), begins, ends, may_restrict=may_restrict)
