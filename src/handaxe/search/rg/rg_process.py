"""One process of ripgrep: start, reading, pause, end.

A consumer takes the output piece by piece. Messages about skipped files go to a file in memory and
are counted at the end. ripgrep writes each of them in many small pieces, for which a pipe would be
slow.
"""

import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from handaxe.process.process_tags import tag_environment
from handaxe.search.deadline import SearchCancelled, SearchDeadline
from handaxe.search.rg.open_files import create_memory_file
from handaxe.search.rg.rg_outcome import Ending, RipgrepOutcome
from handaxe.search.rg_arguments import NO_CONFIG

PIECE_BYTES = 1 << 16
QUICK_PIECES = 50
SMALL_PIECE_BYTES = 1 << 15
GATHER_S = 0.002
BRIEFLY_S = 0.0003
MAX_SAID_BYTES = 64 << 20
LOOK_UP_S = 0.2
"""The longest time between two checks of a run that writes nothing."""
FIRST_LOOK_S = 0.004
LOOK_SHARE = 0.25
"""The first check comes after `FIRST_LOOK_S`, later ones after this share of the time so far."""
TOO_LATE_S = 0.1
"""After so long a run is not stopped for its messages, unless they exceed `MAX_SAID_BYTES`."""
MAX_MEMORY_BYTES = 1 << 30
SMALL_MEMORY_BYTES = 32 << 20
MEMORY_PER_THREAD = 4 << 20
"""The first memory limit: enough for trees of any size, but not for very long lines."""
MAX_THREADS = 12
CONFIG_VARIABLE = "RIPGREP_CONFIG_PATH"

# Only Linux can limit a running process.
prlimit = getattr(resource, "prlimit", None)
_CAN_WAIT = prlimit is not None and Path("/proc/self/fd").is_dir()

Feed = Callable[[bytes], bool]
"""Takes a piece of output; True means that no more is wanted."""


class RipgrepProcessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of a run."""

    is_prompt: bool = False
    may_say: int = MAX_SAID_BYTES
    memory_bytes: int = MAX_MEMORY_BYTES
    fds: Sequence[int] = ()


ORDINARY = RipgrepProcessOptions()


class RipgrepProcess:
    """A running ripgrep, which can be paused and resumed."""

    def __init__(
        self,
        command: Sequence[str],
        directory: str,
        feed: Feed,
        watch: SearchDeadline,
        outcome: RipgrepOutcome,
        at_end: Callable[[RipgrepOutcome], None] = lambda _: None,
        terms: RipgrepProcessOptions = ORDINARY,
    ) -> None:
        self.outcome = outcome
        self.may_say = terms.may_say
        """How many bytes of messages it may write before it is stopped."""
        self._feed = feed
        self._at_end = at_end
        self._watch = watch
        self._quick_pieces, self._gather_s = (
            (0, BRIEFLY_S) if terms.is_prompt else (QUICK_PIECES, GATHER_S)
        )
        self._began = time.monotonic()
        self._said = os.fdopen(create_memory_file(), "w+b")
        try:
            self._process = _start(command, directory, self._said, terms)
        except OSError:
            self._said.close()
            raise

    def go(
        self, ends_at: float | None = None, has_enough: Callable[[], bool] = lambda: False
    ) -> Ending:
        """Read until it ends, its consumer is satisfied or has enough, or time runs out."""
        deadline = time.monotonic() + self._watch.get_remaining_s()
        if ends_at is not None:
            deadline = min(deadline, ends_at)
        self._watch.on_cancel(self._kill)
        try:
            self.outcome.ending = self._drain(deadline, has_enough)
        finally:
            self._watch.on_cancel(None)
        if self._watch.is_cancelled:
            raise SearchCancelled
        return self.outcome.ending

    def read_resident_bytes(self) -> int:
        """The memory in use; 0 if the system does not say."""
        try:
            pages = Path(f"/proc/{self._process.pid}/statm").read_bytes().split()[1]
            return int(pages) * resource.getpagesize()
        except (OSError, IndexError, ValueError):
            return 0

    def pause(self) -> None:
        """Stop it for a while."""
        self._signal(signal.SIGSTOP)

    def resume(self, for_s: float | None = None) -> Ending:
        """Let a paused run continue, and read until it ends or time runs out."""
        self._signal(signal.SIGCONT)
        return self.go(None if for_s is None else time.monotonic() + for_s)

    def end(self) -> RipgrepOutcome:
        """End the process and close its descriptors; further calls give the same outcome."""
        outcome = self.outcome
        if self._said.closed:
            return outcome
        if outcome.ending != "finished" or self._watch.is_cancelled:
            self._kill()
        outcome.exit_code = self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        with self._said as said:
            outcome.said_bytes = said.seek(0, os.SEEK_END)
            said.seek(0)
            if outcome.ending != "talked_too_much":
                outcome.hear(said)
        outcome.duration_s = time.monotonic() - self._began
        self._at_end(outcome)
        return outcome

    def _drain(self, deadline: float, has_enough: Callable[[], bool]) -> Ending:
        """Read the output until its end or a reason to stop."""
        assert self._process.stdout is not None
        out = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(out, select.POLLIN)
        pieces = 0
        look_at = self._schedule_check(time.monotonic())
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "out_of_time"
            if now >= look_at:
                if self._is_output_excessive(now):
                    return "talked_too_much"
                look_at = self._schedule_check(now)
            if not poll.poll((min(deadline, look_at) - now) * 1000):
                continue
            piece = os.read(out, PIECE_BYTES)
            if not piece:
                return "finished"
            if self._feed(piece):
                return "satisfied"
            if has_enough():
                return "enough"
            pieces += 1
            if pieces > self._quick_pieces and len(piece) < SMALL_PIECE_BYTES:
                # Let some output gather, instead of waking up for every file or line.
                time.sleep(self._gather_s)

    def _schedule_check(self, now: float) -> float:
        return now + min(LOOK_UP_S, max(FIRST_LOOK_S, LOOK_SHARE * (now - self._began)))

    def _is_output_excessive(self, now: float) -> bool:
        is_late = now - self._began > TOO_LATE_S
        said = os.fstat(self._said.fileno()).st_size
        return said > (MAX_SAID_BYTES if is_late else self.may_say)

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # The process was not waited for, so its number is still its own.
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def compute_initial_memory() -> int:
    """The memory limit of a first run."""
    return SMALL_MEMORY_BYTES + MEMORY_PER_THREAD * min(os.cpu_count() or 1, MAX_THREADS)


def _start(
    command: Sequence[str], directory: str, said: BinaryIO, terms: RipgrepProcessOptions
) -> subprocess.Popen[bytes]:
    gate, opens = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - an absolute program, arguments built by us
            [argument for argument in command if not _CAN_WAIT or argument != NO_CONFIG],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            cwd=directory,
            # It reads settings first, so this makes it wait until its memory is limited.
            env=tag_environment({CONFIG_VARIABLE: f"/proc/self/fd/{gate}"} if _CAN_WAIT else {}),
            bufsize=0,
            process_group=0,
            pass_fds=(*terms.fds, gate),
        )
        if prlimit is not None:
            with suppress(OSError):
                limit = terms.memory_bytes
                prlimit(process.pid, resource.RLIMIT_DATA, (limit, limit))
    finally:
        os.close(gate)
        os.close(opens)
    # ripgrep works meanwhile.
    from handaxe.process.worker_pool import WORKERS

    WORKERS.keep_watch()
    return process
