"""Long-lived child processes, and their end.

A child leads its own session and has a tag in its environment. When it is stopped, all remaining
processes with its session or tag are ended too.
"""

import asyncio
import os
import secrets
import signal
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path

from handaxe.contract.ports.processes import Child, ChildProgram, Processes, ProcessStartFailed
from handaxe.process.child_environment import clean_environment
from handaxe.process.process_tags import get_process_session, kill_tagged, tag_environment
from handaxe.process.worker_pool import WORKERS
from handaxe.text.redact import RedactedStream, Redactor
from handaxe.text.secrets import MIN_CHARS

MAX_BYTES = 1 << 20
TAIL_BYTES = 8 << 10


class BoundedLog:
    """A log file of limited size; at most twice `max_bytes` are on disk."""

    def __init__(
        self, path: str, *, max_bytes: int = MAX_BYTES, redactor: Redactor | None = None
    ) -> None:
        """`redactor` removes secrets before anything is stored."""
        self.path = path
        self._redactor = redactor
        self._stream: RedactedStream | None = None
        self._max_bytes = max_bytes
        self._size = 0
        self._fd: int | None = None
        self._tail = b""

    def write(self, data: bytes) -> None:
        """Add to the log; disk errors are ignored."""
        if self._stream is None and self._redactor:
            self._stream = self._redactor.open_stream()
        self._keep(data if self._stream is None else self._stream.feed(data))

    def _keep(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        with suppress(OSError):
            for at in range(0, len(data), self._max_bytes):
                self._append(data[at : at + self._max_bytes])

    def read_stderr_tail(self, limit_chars: int) -> str:
        """The end of the log, from the start of a line if possible."""
        held = b"" if self._stream is None else self._stream.held
        # A longer piece may be most of a secret.
        tail = self._tail + held if len(held) < MIN_CHARS else self._tail
        text = tail.decode("utf-8", "replace").strip()
        if len(text) <= limit_chars:
            return text
        return text[-limit_chars:].partition("\n")[2] or text[-limit_chars:]

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None and (rest := self._stream.finish()):
            self._keep(rest)
        self._let_go()

    def _let_go(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _append(self, data: bytes) -> None:
        if self._fd is not None and self._size + len(data) > self._max_bytes:
            self._let_go()
            Path(self.path).replace(f"{self.path}.1")
        if self._fd is None:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._fd = os.open(self.path, flags, 0o600)
            self._size = 0
        self._size += os.write(self._fd, data)


MARK = "HANDAXE_CHILD"
POLITE_S = 1.0
"""How long a child may take to exit: once after its input closes, once more after SIGTERM."""
DRAIN_S = 0.2
"""How long to read the output of an ended child if its own child holds the pipe."""
REAP_S = 2.0

_MANY_BYTES = 1 << 20


class LocalProcesses(Processes):
    """Starts children with a clean environment and only three pipes as descriptors."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        """`redactor` removes secrets from the logs of children."""
        self._redactor = redactor

    async def start(self, program: ChildProgram) -> Child:
        """Start a program; raises `CannotStart` if that fails."""
        mark = secrets.token_hex(12)
        talk = _Talk(BoundedLog(program.log_path, redactor=self._redactor))
        env = tag_environment({**clean_environment(os.environ, program.env), MARK: mark})
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.subprocess_exec(
                lambda: talk,
                *program.argv,
                cwd=program.cwd,
                env=env,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ProcessStartFailed(f"{program.argv[0]} could not be started ({reason})") from None
        WORKERS.keep_watch()
        return LocalChild(transport, talk, mark)


class LocalChild(Child):
    """A child of this process."""

    def __init__(self, transport: asyncio.SubprocessTransport, talk: "_Talk", mark: str) -> None:
        self._transport = transport
        self._talk = talk
        self._mark = mark
        self.pid = transport.get_pid()

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._transport.get_returncode()

    async def read(self) -> bytes:
        """The next piece of its standard output; empty at the end."""
        return await self._talk.read_piece()

    async def write(self, data: bytes) -> None:
        """Write input, and wait until most of it was accepted."""
        await self._talk.write(data)

    def note(self, text: str) -> None:
        """Write a line into its log."""
        self._talk.log.write(text.encode("utf-8", "replace") + b"\n")

    def read_stderr_tail(self, limit_chars: int) -> str:
        """The end of its standard error."""
        return self._talk.log.read_stderr_tail(limit_chars)

    async def stop(self) -> None:
        """Stop it with all its processes; a cancellation makes that faster."""
        ended = self._talk.ended
        try:
            self._talk.close_input()
            if not await _wait_within(ended, POLITE_S):
                self._signal(signal.SIGTERM)
                await _wait_within(ended, POLITE_S)
        finally:
            self._signal(signal.SIGKILL)
            self._talk.mute()
        await _wait_within(ended, REAP_S)
        await asyncio.to_thread(_kill_leftovers, self.pid, self._mark)
        with suppress(ProcessLookupError, PermissionError):
            self._transport.close()
        self._talk.log.close()

    def _signal(self, number: signal.Signals) -> None:
        if self.exit_code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


class _Talk(asyncio.SubprocessProtocol):
    """The input and output of a child, with limited buffers."""

    def __init__(self, log: BoundedLog) -> None:
        self.log = log
        self.ended = asyncio.Event()
        self._pieces: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._news = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._is_silent = False
        self._is_deaf = False
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            self.log.write(data)
            return
        if self._is_silent:
            return
        self._pieces.append(data)
        self._waiting_bytes += len(data)
        self._news.set()
        if self._waiting_bytes > _MANY_BYTES:
            self._pause(is_paused=True)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == 0:
            self._is_deaf = True
            self._may_write.set()
        elif fd == 1:
            self.mute()

    def process_exited(self) -> None:
        self.ended.set()
        self._is_deaf = True
        self._may_write.set()
        # A grandchild may hold the pipe without limit.
        asyncio.get_running_loop().call_later(DRAIN_S, self.mute)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def read_piece(self) -> bytes:
        while not self._pieces:
            if self._is_silent:
                return b""
            self._news.clear()
            await self._news.wait()
        piece = self._pieces.popleft()
        self._waiting_bytes -= len(piece)
        if self._waiting_bytes <= _MANY_BYTES // 2:
            self._pause(is_paused=False)
        return piece

    async def write(self, data: bytes) -> None:
        await self._may_write.wait()
        pipe = self._pipe(0)
        if self._is_deaf or not isinstance(pipe, asyncio.WriteTransport):
            raise BrokenPipeError("the program no longer accepts input")
        pipe.write(data)
        await self._may_write.wait()

    def close_input(self) -> None:
        """Close its input."""
        self._is_deaf = True
        self._may_write.set()
        if (pipe := self._pipe(0)) is not None:
            pipe.close()

    def mute(self) -> None:
        """Ignore further output."""
        self._is_silent = True
        self._news.set()

    def _pause(self, *, is_paused: bool) -> None:
        pipe = self._pipe(1)
        if isinstance(pipe, asyncio.ReadTransport) and not pipe.is_closing():
            if is_paused:
                pipe.pause_reading()
            else:
                pipe.resume_reading()

    def _pipe(self, fd: int) -> asyncio.BaseTransport | None:
        return self._transport.get_pipe_transport(fd) if self._transport is not None else None


async def _wait_within(event: asyncio.Event, limit_s: float) -> bool:
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _kill_leftovers(leader: int, mark: str) -> None:
    """End what an ended child left: members of its session and tagged processes."""
    kill_tagged(MARK, mark)
    if sys.platform != "linux" or Path(f"/proc/{leader}").exists():
        return
    # While a member of the session lives, its number cannot pass to another one.
    for name in os.listdir("/proc"):
        if name.isdigit() and get_process_session(int(name)) == leader:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(name), signal.SIGKILL)
