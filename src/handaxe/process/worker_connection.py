"""The connection to one worker process."""

import marshal
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from handaxe.contract.ports.shell import AssistedSpawn
from handaxe.contract.ports.undo import TRACE_ENDED, TRACED

_INLINE_BYTES = 1 << 16


class WorkerConnection:
    """The connection to one worker."""

    def __init__(self, talk: socket.socket, *, is_apart: bool) -> None:
        self._talk = talk
        self.is_apart = is_apart
        self.fileno = talk.fileno
        self.close = talk.close
        self.worker_pid = 0

    def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        *,
        output: int,
        inherited: Mapping[int, int],
        start_fd: int,
        lent: AssistedSpawn | None = None,
        trace: tuple[int, bool] | None = None,
    ) -> None:
        """Run a program; `inherited` maps descriptor numbers to descriptors.

        `start_fd`: a shell reads its start text there and reports its final directory on the number
        below; 0 for other programs. `lent`: the start by a worker that does part of the sandboxing.
        `trace`: where writes are reported, and whether that may remove the ability to gain
        privileges.
        """
        apart = None if lent is None else (lent.argv, lent.door, lent.port, lent.plan)
        traced = None if trace is None else (TRACED, TRACE_ENDED, trace[1])
        message = marshal.dumps(
            (list(argv), dict(env), cwd, tuple(inherited), start_fd, apart, traced)
        )
        fds = [output, *inherited.values(), *(() if trace is None else trace[:1])]
        if len(message) <= _INLINE_BYTES:
            self._send(message, fds)
            return
        # A long message could have to wait for the other side; a descriptor never does.
        large = os.memfd_create("handaxe-command", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(large), "wb") as file:
                file.write(message)
            self._send(b"large", [*fds, large])
        finally:
            os.close(large)

    def stop(self) -> None:
        """Stop the running program with all its processes."""
        with suppress(OSError):
            self._talk.send(b"stop", socket.MSG_DONTWAIT)
        self.wake()

    def wake(self) -> None:
        """Resume the worker, in case a command suspended it."""
        if self.worker_pid:
            with suppress(OSError):
                os.kill(self.worker_pid, signal.SIGCONT)

    def hear(self) -> tuple[Any, ...] | None:
        """The next message; None if the worker is gone; raises `BlockingIOError` without one."""
        try:
            message = self._talk.recv(1 << 17, socket.MSG_DONTWAIT)
        except ConnectionError:
            return None
        return marshal.loads(message) if message else None  # noqa: S302 - from our own warden

    def _send(self, message: bytes, fds: list[int]) -> None:
        socket.send_fds(self._talk, [message], fds, socket.MSG_DONTWAIT)
