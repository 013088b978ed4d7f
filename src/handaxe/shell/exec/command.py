"""One command: turns messages of its worker and its output into a result."""

import asyncio
import os
import signal
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from fcntl import fcntl
from typing import TypeVar

import msgspec

from handaxe.contract.faults.shell import BadWorkdir, CannotStart
from handaxe.contract.job_state import EndedBy, JobState, JobStatus
from handaxe.contract.ports.shell import (
    CommandEnd,
    CommandOutput,
    ConfinedCommand,
    Ended,
    RunningCommand,
    ShellCommand,
)
from handaxe.process.worker_connection import WorkerConnection
from handaxe.process.worker_pool import WORKERS, explain_failed_start
from handaxe.shell.exec.capture import OutputCapture
from handaxe.shell.exec.stall_detection import SelfTailDetector, StdinWaitDetector

MARK = "HANDAXE_COMMAND"
SMALL_READ_BYTES = 1 << 16
LARGE_READ_BYTES = 1 << 18
PIPE_BYTES = 1 << 20
ANSWER_S = 7.0
"""A worker that does not answer a stop request for this long is killed."""
PROD_S = 1.0
"""A worker that does not answer for this long is woken, in case it was suspended."""

_F_SETPIPE_SZ = 1031
_BUFFERS = threading.local()
T = TypeVar("T")


class LocalCommandOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one command."""

    job_id: str
    mark: str
    """The tag in the environment of its processes."""
    output_path: str
    stays_in: str | None
    """The final directory of the shell, if it is known beforehand."""
    runaway_bytes: int
    confined: ConfinedCommand
    on_settled: Callable[["LocalCommand"], None]
    on_let_go: Callable[["LocalCommand"], None]


class LocalCommand(RunningCommand):
    """A command that a worker runs."""

    def __init__(
        self, command: ShellCommand, terms: LocalCommandOptions, capture: OutputCapture
    ) -> None:
        self.command = command
        self.is_let_go = False
        self._terms = terms
        self._capture = capture
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = self._loop.create_future()
        self._waiters: list[asyncio.Future[bool]] = []
        self._line: WorkerConnection | None = None
        self._pipe = -1
        self._errors = -1
        self._buffer: bytearray | None = None
        self._how: Ended | None = None
        self._shell_pid = 0
        self._end: CommandEnd | None = None
        self._began_at = time.time()
        self._began = time.monotonic()
        self._ended_at: float | None = None
        self._prompt = StdinWaitDetector()
        self._loops = SelfTailDetector()
        self._timer: asyncio.TimerHandle | None = None
        self._prodding: asyncio.TimerHandle
        self._rescue: asyncio.Task[None] | None = None

    @property
    def job_id(self) -> str:
        """Its id among background jobs."""
        return self._terms.job_id

    def attach(self, line: WorkerConnection, pipe: int, errors: int = -1) -> None:
        """Listen to the worker and the pipe; `errors`: standard error is separate."""
        self._line, self._pipe, self._errors = line, pipe, errors
        self._loop.add_reader(line, self._handle_message)
        self._loop.add_reader(pipe, self._handle_output)
        if errors >= 0:
            self._loop.add_reader(errors, self._handle_errors)
        self._prodding = self._loop.call_later(PROD_S, self._wake_worker)

    async def has_started(self) -> None:
        """Wait until the shell runs; a `ToolFault` if it does not."""
        try:
            await self._started
        except asyncio.CancelledError:
            self._ask_to_stop("stopped")
            raise

    @property
    def end(self) -> CommandEnd | None:
        """Its end; None while it runs."""
        return self._end

    @property
    def state(self) -> JobState:
        """Its current state."""
        end = self._end
        return JobState(
            job_id=self._terms.job_id,
            kind=self.command.kind,
            status="running" if end is None else _get_status(end),
            description=self.command.description,
            command=self.command.command,
            call_id=self.command.call_id,
            output_path=self._terms.output_path if self._capture.has_file else "",
            output_bytes=self._capture.total_bytes,
            output_is_cut=self._capture.is_cut,
            exit_code=None if end is None else end.exit_code,
            signal=None if end is None else end.signal,
            ended_by=None if end is None else _ENDED_BY[end.how],
            started_at=self._began_at,
            ended_at=self._ended_at,
            waiting_for_input=self._find_prompt(),
        )

    def output(self, limit_chars: int) -> CommandOutput:
        """Its output so far, at most this much."""
        return self._capture.output(limit_chars)

    def tail(self, limit_chars: int) -> str:
        """The end of its output so far, for a model."""
        return self._capture.tail(limit_chars)

    def whole(self) -> bytes | None:
        """The exact bytes of its output, unless there are too many."""
        return self._capture.whole()

    def follow(self, listener: Callable[[bytes], None]) -> Callable[[], None]:
        """Receive every further piece of output; call the result to stop."""
        return self._capture.follow(listener)

    def let_go(self) -> None:
        """Make it a background job: it may outlive the call, and its end is announced."""
        if not self.is_let_go:
            self._terms.on_let_go(self)
            self.is_let_go = True
            self._capture.open_file()
            if self._end is not None:
                self._capture.close()

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end; False if the time was over first."""
        if self._end is not None:
            return True
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiters.append(waiter)
        timer = None
        if timeout_s is not None:
            timer = self._loop.call_later(max(timeout_s, 0), _resolve, waiter, False)  # noqa: FBT003
        try:
            return await waiter
        finally:
            if timer is not None:
                timer.cancel()
            with suppress(ValueError):
                self._waiters.remove(waiter)

    async def stop(self, *, time_is_up: bool = False) -> None:
        """Stop it with all its processes; returns when none is left."""
        self._ask_to_stop("time_up" if time_is_up else "stopped")
        await self.wait()

    def _ask_to_stop(self, how: Ended) -> None:
        if self._end is not None or self._how is not None or self._line is None:
            return
        self._how = how
        self._line.stop()
        self._timer = self._loop.call_later(ANSWER_S, self._drop_worker)

    def _handle_message(self) -> None:
        assert self._line is not None
        try:
            words = self._line.hear()
        except BlockingIOError:
            return
        if words is None:
            self._drop_worker()
        elif words[0] == "here":
            self._line.worker_pid = words[1]
        elif words[0] == "started":
            self._shell_pid = words[1]
            self._prodding.cancel()
            _resolve(self._started, None)
        elif words[0] == "failed":
            self._fail(words[1], words[2])
        else:
            _, status, survivors, stuck, cwd = words
            place = _parse_cwd(cwd, self._terms.stays_in)
            self._settle(status, survivors=survivors, cwd=place, is_clean=not stuck)

    def _handle_output(self) -> None:
        try:
            if self._buffer is None:
                piece = os.read(self._pipe, SMALL_READ_BYTES)
                size = len(piece)
                if size == SMALL_READ_BYTES:
                    self._buffer = _widen_pipe(self._pipe)
            else:
                piece = self._buffer
                size = os.readv(self._pipe, [piece])
        except BlockingIOError:
            return
        if not size:
            self._close_pipe()
            self._prodding.cancel()
            self._prodding = self._loop.call_later(PROD_S, self._wake_worker)
            return
        self._note(piece, size)

    def _handle_errors(self) -> None:
        try:
            piece = os.read(self._errors, SMALL_READ_BYTES)
        except BlockingIOError:
            return
        if piece:
            self._note(piece, len(piece), is_heard=False)
        else:
            self._close_errors()

    def _note(self, piece: bytes | bytearray, size: int, *, is_heard: bool = True) -> None:
        self._prompt.note_output()
        self._capture.take(piece, size, is_heard=is_heard)
        if self._capture.total_bytes > self._terms.runaway_bytes:
            self._ask_to_stop("output_cap")
        elif self._capture.has_file and self._loops.is_loop(
            self._capture.total_bytes, self._shell_pid, self._terms.output_path, self._pipe
        ):
            self._ask_to_stop("own_output")

    def _wake_worker(self) -> None:
        """A message is overdue: wake the worker, which a command may have suspended."""
        if self._line is not None:
            WORKERS.wake_worker(self._line)
            self._prodding = self._loop.call_later(PROD_S, self._wake_worker)

    def _fail(self, number: int | None, reason: str) -> None:
        barred = find_cwd_problem(self.command.cwd, is_confined=False) if number else None
        fault = BadWorkdir(cwd=self.command.cwd, reason=barred) if barred else None
        fault = fault or explain_failed_start(number, reason)
        self._settle(127 << 8, survivors=0, cwd=None, is_clean=True)
        if not self._started.done():
            self._started.set_exception(fault)

    def _drop_worker(self) -> None:
        """The worker is dead or hangs: the supervisor must end its processes."""
        if self._rescue is None and self._end is None and self._line is not None:
            self._loop.remove_reader(self._line)
            self._rescue = self._loop.create_task(self._request_rescue())

    async def _request_rescue(self) -> None:
        from handaxe.process.process_tags import kill_tagged

        assert self._line is not None
        await asyncio.to_thread(WORKERS.end, self._line.worker_pid)
        # A killed supervisor does not affect this.
        await asyncio.to_thread(kill_tagged, MARK, self._terms.mark)
        was_there = bool(self._line.worker_pid)
        self._settle(signal.SIGKILL, survivors=0, cwd=None, is_clean=False)
        if was_there:
            # A command can be faster in killing its warden than that in saying that it began.
            _resolve(self._started, None)
        elif not self._started.done():
            self._started.set_exception(CannotStart("the process that runs commands did not start"))

    def _settle(self, status: int, *, survivors: int, cwd: str | None, is_clean: bool) -> None:
        """It has ended and no process is left."""
        line, self._line = self._line, None
        if line is None:
            return
        self._loop.remove_reader(line)
        if self._timer is not None:
            self._timer.cancel()
        while (self._pipe >= 0 or self._errors >= 0) and self._has_more():
            pass
        self._close_pipe()
        self._close_errors()
        self._prodding.cancel()
        # Before another command can come: a way out of its network would be that one's too.
        notes = self._terms.confined.close()
        if is_clean:
            WORKERS.give_back(line)
        else:
            line.close()
        code = os.waitstatus_to_exitcode(status)
        self._ended_at = time.time()
        self._end = CommandEnd(
            how=self._how or ("exit" if code >= 0 else "signal"),
            exit_code=code if code >= 0 else 128 - code,
            signal=-code if code < 0 else None,
            duration_s=time.monotonic() - self._began,
            cwd=cwd,
            survivors=survivors,
            notes=notes,
        )
        self._capture.close()
        for waiter in self._waiters:
            _resolve(waiter, True)  # noqa: FBT003
        self._terms.on_settled(self)

    def _has_more(self) -> bool:
        """Read the rest of the pipe, without waiting."""
        before = self._capture.received_bytes
        if self._errors >= 0:
            self._handle_errors()
        if self._pipe >= 0:
            self._handle_output()
        return self._capture.received_bytes > before

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def _close_errors(self) -> None:
        if self._errors >= 0:
            self._loop.remove_reader(self._errors)
            os.close(self._errors)
            self._errors = -1

    def _find_prompt(self) -> str | None:
        if self._end is not None:
            return None
        return self._prompt.find_waiting_line(self._capture.last_line, self._shell_pid, self._pipe)


_ENDED_BY: dict[Ended, EndedBy] = {
    "exit": "exit", "signal": "signal", "stopped": "stopped", "time_up": "time_up",
    "output_cap": "output_limit", "own_output": "own_output",
}  # fmt: skip


def _parse_cwd(said: bytes, stays_in: str | None) -> str | None:
    """The final directory of the shell, if it is valid."""
    path = stays_in or os.fsdecode(said.removesuffix(b"\n"))
    return path if path.startswith("/") and os.path.isdir(path) else None


def _widen_pipe(pipe: int) -> bytearray:
    """Enlarge the pipe for large output; returns the read buffer."""
    if not hasattr(_BUFFERS, "large"):
        _BUFFERS.large = bytearray(LARGE_READ_BYTES)
    with suppress(OSError):
        fcntl(pipe, _F_SETPIPE_SZ, PIPE_BYTES)
    return _BUFFERS.large


def _get_status(end: CommandEnd) -> JobStatus:
    if end.how in {"exit", "signal"}:
        return "completed" if end.exit_code == 0 else "failed"
    return "killed"


def _resolve(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


def find_cwd_problem(path: str, *, is_confined: bool) -> str | None:
    """The reason why a program cannot start in a directory, or None if it seems possible."""
    if not os.access(path, os.X_OK):
        return os.strerror(_get_errno(path))
    if is_confined and os.geteuid() == 0 and not _is_open_to_owner(path):
        return "Permission denied"
    return None


def _get_errno(path: str) -> int:
    try:
        # Says what `access` does not.
        os.stat(f"{path}/.")
    except OSError as error:
        return error.errno or 0
    return 0


def _is_open_to_owner(path: str) -> bool:
    """Whether root gets there by modes alone, because it has no other rights in the sandbox."""
    place = path
    while True:
        try:
            info = os.stat(place)
        except OSError:
            return False
        if info.st_uid == 0:
            bit = stat.S_IXUSR
        else:
            bit = stat.S_IXGRP if info.st_gid in {0, *os.getgroups()} else stat.S_IXOTH
        if not info.st_mode & bit:
            return False
        if place == "/":
            return True
        place = place.rpartition("/")[0] or "/"
