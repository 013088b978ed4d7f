"""One run of ripgrep: started, read as it writes, ended, and never left behind.

Its output goes to a consumer piece by piece, so nothing is kept that nobody wants; what it says
about files it passed by is counted while it goes.
"""

import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

from handaxe.host.search.watch import Stopped, Watch

PIECE_BYTES = 1 << 16
QUICK_PIECES = 50
SMALL_PIECE_BYTES = 1 << 15
GATHER_S = 0.002
MAX_COMPLAINT_BYTES = 1 << 14
MAX_MEMORY_BYTES = 1 << 30

# Only Linux can limit a running process; elsewhere ripgrep is trusted to be modest.
prlimit = getattr(resource, "prlimit", None)

Feed = Callable[[bytes], bool]
"""Takes a piece of output; True means that no more is wanted."""
Ending = Literal["finished", "satisfied", "out_of_time"]


class Run:
    """What one run of ripgrep came to."""

    __slots__ = ("_partial", "binary", "complaints", "ending", "exit_code", "ignored", "too_large")

    def __init__(self) -> None:
        self.ending: Ending = "satisfied"
        self.exit_code = 0
        self.ignored = 0
        self.binary = 0
        self.too_large = 0
        self.complaints: list[bytes] = []
        self._partial = b""

    @property
    def lacked_threads(self) -> bool:
        """Whether the machine refused another thread or process."""
        said = b"\n".join(self.complaints)
        return self._failed and (
            b"os error 11" in said or b"WouldBlock" in said or b"failed to spawn" in said
        )

    @property
    def lacked_memory(self) -> bool:
        """Whether it wanted more memory than it is given."""
        said = b"\n".join(self.complaints)
        return self._failed and (
            b"memory allocation" in said or b"os error 12" in said or b"OutOfMemory" in said
        )

    @property
    def crashed(self) -> bool:
        """Whether it ended in a way that says nothing about the question."""
        return self._failed and self.exit_code != 2

    @property
    def _failed(self) -> bool:
        return self.ending == "finished" and self.exit_code not in {0, 1}

    def hear(self, piece: bytes) -> None:
        """Take in what it writes to its standard error."""
        *lines, self._partial = (self._partial + piece).split(b"\n")
        for line in lines:
            self._note(line)

    def _note(self, line: bytes) -> None:
        if not line.startswith(b"rg: DEBUG|"):
            if line and sum(map(len, self.complaints)) < MAX_COMPLAINT_BYTES:
                self.complaints.append(line)
        elif b": Ignore(IgnoreMatch(Gitignore(" in line:
            self.ignored += 1
        elif b": found binary data at offset" in line:
            self.binary += 1
        elif b": ignoring " in line and line.endswith(b" bytes"):
            self.too_large += 1


def run(
    command: Sequence[str], directory: str, feed: Feed, watch: Watch, ends_at: float | None = None
) -> Run:
    """Run ripgrep in a directory until it ends, is satisfied, or its time is up."""
    outcome = Run()
    deadline = time.monotonic() + watch.left_s()
    if ends_at is not None:
        deadline = min(deadline, ends_at)
    process = _start(command, directory)
    watch.on_cancel(lambda: _kill(process))
    try:
        outcome.ending = _drain(process, feed, outcome, deadline)
    finally:
        _end(process, outcome)
        watch.on_cancel(None)
    if watch.is_cancelled:
        raise Stopped
    return outcome


def _start(command: Sequence[str], directory: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(  # noqa: S603 - an absolute program, arguments built by us
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=directory,
        env={},
        bufsize=0,
        process_group=0,
    )
    if prlimit is not None:
        with suppress(OSError):
            prlimit(process.pid, resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    return process


def _drain(process: subprocess.Popen[bytes], feed: Feed, outcome: Run, deadline: float) -> Ending:
    """Read both outputs until they end; only their end means that nothing more comes."""
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = process.stdout.fileno(), process.stderr.fileno()
    poll = select.poll()
    poll.register(out, select.POLLIN)
    poll.register(err, select.POLLIN)
    is_open = {out, err}
    pieces = 0
    while is_open:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return "out_of_time"
        for fd, _ in poll.poll(left_s * 1000):
            piece = os.read(fd, PIECE_BYTES)
            if not piece:
                poll.unregister(fd)
                is_open.discard(fd)
            elif fd == err:
                outcome.hear(piece)
            elif feed(piece):
                return "satisfied"
            else:
                pieces += 1
                if pieces > QUICK_PIECES and len(piece) < SMALL_PIECE_BYTES:
                    # A long answer: let some of it gather instead of waking for every file.
                    time.sleep(GATHER_S)
    return "finished"


def _end(process: subprocess.Popen[bytes], outcome: Run) -> None:
    """Leave no process and no descriptor behind."""
    if outcome.ending != "finished":
        _kill(process)
    outcome.exit_code = process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    outcome.hear(b"\n")


def _kill(process: subprocess.Popen[bytes]) -> None:
    # Not yet waited for, so the number still belongs to this process and to no other.
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
