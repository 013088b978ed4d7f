"""The supervisor: one per host process; forks workers, and ends what a dead one leaves.

It runs in its own small process, so that it starts fast, its workers are small and forking is
cheap.
"""

import gc
import marshal
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress

from handaxe.process.spawn import (
    ProcessPoller,
    enable_subreaper,
    list_descendants,
    signal_groups,
)
from handaxe.process.worker import GIVE_UP_S, START_TEXT, ShellWorker

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Loading `typing` would be a fifth of this process's start, which the first command waits for.
    from typing import NoReturn

CONTROL_FD = 3
APART = b"apart"
"""Requests a worker with its own network, if available."""
FAREWELL_S = 8.0
"""How long workers may take to end their processes when the host has ended."""
LEAVING_S = 3.0
"""How long a host may take to exit after it released the supervisor."""


class Supervisor:
    """Forks workers, and ends what a dead one leaves."""

    def __init__(self, control: socket.socket, host: int | None) -> None:
        self._control = control
        self._host = host
        self._watch = ProcessPoller(control, host)
        self._workers: set[int] = set()
        self._start = os.memfd_create("handaxe-start", os.MFD_CLOEXEC)
        os.write(self._start, START_TEXT.encode())
        self._is_apart_possible: bool | None = None

    def serve(self) -> None:
        """Handle requests until the host ends."""
        while True:
            is_said = self._watch.wait()
            self._reap()
            if not is_said:
                continue
            message, fds = self._watch.hear()
            if not message:
                break
            if fds:
                self._fork(fds[0], is_apart=message == APART and self._can_be_apart())
            else:
                pid, token = marshal.loads(message)  # noqa: S302 - from our own host
                self._end(pid)
                with suppress(OSError):
                    self._control.send(marshal.dumps(token))
        self._control.close()

    def _can_be_apart(self) -> bool:
        if self._is_apart_possible is None:
            from handaxe.process.netns import can_have_own_network

            self._is_apart_possible = can_have_own_network()
        return self._is_apart_possible

    def _fork(self, talk: int, *, is_apart: bool) -> None:
        pid = os.fork()
        if pid:
            os.close(talk)
            self._workers.add(pid)
            return
        # Any value except zero makes the supervisor look for leftovers.
        exit_code = 1
        try:
            self._control.close()
            self._watch.close()
            enable_subreaper()
            warden = ShellWorker(
                socket.socket(fileno=talk), self._host, self._start, is_apart=is_apart
            )
            if warden.serve():
                exit_code = 0
        finally:
            os._exit(exit_code)

    def _end(self, pid: int) -> None:
        """End one worker, dead or alive, and its processes."""
        if pid in self._workers:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            while pid in self._workers and self._reap():
                self._watch.wait_for_children(0.05)
        self._sweep()

    def _reap(self) -> bool:
        """Reap ended children and return whether any is left."""
        is_clean = True
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                break
            if pid in self._workers:
                self._workers.discard(pid)
                is_clean = is_clean and status == 0
        if not is_clean:
            self._sweep()
        return True

    def _sweep(self) -> None:
        """End every child that is not a worker, with its descendants."""
        give_up_at = time.monotonic() + GIVE_UP_S
        while (strays := list_descendants(self._workers)) and time.monotonic() < give_up_at:
            signal_groups(strays, signal.SIGKILL)
            self._watch.wait_for_children(0.002)
            with suppress(ChildProcessError):
                while pid := os.waitpid(-1, os.WNOHANG)[0]:
                    self._workers.discard(pid)

    def wait_for_workers(self) -> None:
        """Wait for workers, which end their processes; end what they leave."""
        ends_at = time.monotonic() + FAREWELL_S
        while self._reap() and time.monotonic() < ends_at:
            self._watch.wait_for_children(0.05)
        for pid in self._workers:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._workers.clear()
        self._sweep()


def main(host_pid: int, host_token: str) -> "NoReturn":
    """Run the supervisor for the host process with this number."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        # `pkill python` in a command must not take down what owns the command.
        signal.signal(number, signal.SIG_IGN)
    # What the host left open for whomever is not for commands.
    os.closerange(CONTROL_FD + 1, 1 << 20)
    os.chdir("/")
    host = None
    with suppress(OSError):
        # Surer than the end of the socket: a child of the host may hold a copy of that.
        host = os.pidfd_open(host_pid)
    if os.getppid() != host_pid:
        _end_children_of_host(host_token)
        sys.exit(0)
    enable_subreaper()
    gc.disable()
    gc.freeze()
    supervisor = Supervisor(socket.socket(fileno=CONTROL_FD), host)
    supervisor.serve()
    is_dead = _has_ended(host, 0)
    if is_dead:
        _end_children_of_host(host_token)
    supervisor.wait_for_workers()
    # The host may have released the supervisor on exit.
    if not is_dead and _has_ended(host, LEAVING_S):
        _end_children_of_host(host_token)
    os._exit(0)


def _has_ended(host: int | None, within_s: float) -> bool:
    return host is not None and bool(select.select([host], [], [], within_s)[0])


def _end_children_of_host(token: str) -> None:
    from handaxe.process.orphans import end_orphans

    end_orphans(token)
