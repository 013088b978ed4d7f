"""The connection to one worker process: what it is to run, and what it says of that."""

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
    """The line to one warden."""

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
        """Have a program run; `inherited` says which descriptor it finds under which number.

        `start_fd`: a shell reads its first commands there. At its end it reports its directory
        under the number below; 0 for other programs. `lent` is how a worker starts it that can
        do a part of the confining. `trace` is where it reports the writes of the program, and
        whether the program may lose the way to more rights for that.
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
        """Have the program ended that runs now, with all it started."""
        with suppress(OSError):
            self._talk.send(b"stop", socket.MSG_DONTWAIT)
        self.wake()

    def wake(self) -> None:
        """Let the warden go on, should a command have stopped it."""
        if self.worker_pid:
            with suppress(OSError):
                os.kill(self.worker_pid, signal.SIGCONT)

    def hear(self) -> tuple[Any, ...] | None:
        """What the warden says; None where it is gone. `BlockingIOError` if it is silent."""
        try:
            message = self._talk.recv(1 << 17, socket.MSG_DONTWAIT)
        except ConnectionError:
            return None
        return marshal.loads(message) if message else None  # noqa: S302 - from our own warden

    def _send(self, message: bytes, fds: list[int]) -> None:
        socket.send_fds(self._talk, [message], fds, socket.MSG_DONTWAIT)
