"""One fault in one system call of a whole command of the program; then the next session goes on.

The faults: the process is killed at the call, the call fails with an error, or a write takes only
half of its bytes. The commands run as the program runs them, without the start of the interpreter.
Run as a script it is the process in which all happens: faults on stdin, findings on stdout.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import crash_operations
import crash_replay
import recorded_calls
import swept_commands
from crash_checks import Problem
from swept_commands import COMMANDS, Command

HOWS = ("KILL", "EIO", "ENOSPC", "EINTR", "SHORT")
WRITES = {"write", "pwrite64"}
INTERRUPTED = WRITES | {"writev", "read", "pread64", "openat", "fsync", "fdatasync", "flock"}
CHANGING = {
    "openat", "write", "pwrite64", "writev", "ftruncate", "fallocate", "fsync", "fdatasync",
    "syncfs", "link", "linkat", "symlink", "symlinkat", "rename", "renameat", "renameat2",
    "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "chmod", "fchmod", "fchmodat", "flock",
    "copy_file_range", "utimensat", "fsetxattr", "setxattr", "fchown",
}  # fmt: skip
LOOKING = {
    "close", "fcntl", "fgetxattr", "flistxattr", "getxattr", "llistxattr", "lgetxattr", "fstat",
    "getdents64", "lseek", "newfstatat", "open", "pread64", "read", "readlink", "stat", "lstat",
    "statx", "fadvise64", "inotify_add_watch", "fstatfs", "statfs",
}  # fmt: skip
_MAY_MEET = {"EINTR": INTERRUPTED, "SHORT": WRITES, "ENOSPC": CHANGING}
"""The calls that some faults can meet; the others meet any."""
_LONGEST_S = 60
_NOT_LOADED = re.compile("ModuleNotFoundError: No module|ImportError: ")
_CALLED = re.compile(r"(\d+) +(\w+)\(")


class Fault(NamedTuple):
    """What goes wrong."""

    command: str
    call: str
    nth: int
    how: str

    def __str__(self) -> str:
        return f"{self.command}:{self.call}:{self.nth}:{self.how}"


class Found(NamedTuple):
    """What came of one fault."""

    fault: Fault
    has_struck: bool
    """The command made that call this time, too."""
    problems: list[Problem]


def sweep(faults: Sequence[Fault]) -> Iterator[Found]:
    """Try them one after the other."""
    for fault, (has_struck, problems) in _work(faults):
        yield Found(Fault(*fault), has_struck, [Problem(*one) for one in problems])


def faults_of(commands: Sequence[str]) -> list[Fault]:
    """Every fault of every call that these commands make when all goes well."""
    return [
        Fault(command, call, nth, how)
        for command, counts in zip(commands, _work(commands), strict=True)
        for call, count in sorted(counts.items())
        for nth in range(1, count + 1)
        for how in HOWS
        if call in _MAY_MEET.get(how, CHANGING | LOOKING)
        # An injected error leaves the descriptor open, as the kernel never does.
        and (call != "close" or how == "KILL")
    ]


def _work(jobs: Sequence[object]) -> Iterator[Any]:
    # Not in a directory of the system, where every removal needs a decision.
    with tempfile.TemporaryDirectory(prefix="handaxe-sweep-") as made:
        library = crash_replay.compile_library("nth_write.c", Path(made))
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LD_PRELOAD": str(library),
        }
        with subprocess.Popen(
            [sys.executable, __file__, made],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            json.dump(jobs, worker.stdin)
            worker.stdin.close()
            yield from map(json.loads, worker.stdout)
        assert worker.returncode == 0, f"the sweep ended with {worker.returncode}"


def _count(name: str, place: Path) -> dict[str, int]:
    """How often the command makes each call, at most, in its main thread or another."""
    with tempfile.NamedTemporaryFile() as to:
        status, told = _run(COMMANDS[name], place, ["-o", to.name])
        assert status == 0, (name, status, told)
        lines = Path(to.name).read_text(errors="replace").splitlines()
    counts = Counter(found.groups() for line in lines if (found := _CALLED.match(line)))
    main = lines[0].split()[0]
    most: dict[str, int] = {}
    for (thread, call), count in counts.items():
        # Other processes read thousands of files when they start, and none of them is ours.
        if call in (CHANGING | LOOKING if thread == main else CHANGING - {"openat"}):
            most[call] = max(count, most.get(call, 0))
    return most


def _strike(fault: Fault, place: Path, *, undo_first: bool) -> tuple[bool, list[Problem]]:
    """Run the command with the fault, then go on; whether it struck, and what is wrong."""
    command = COMMANDS[fault.command]
    options, short = ["-e", f"trace={fault.call}"], 0
    if fault.how == "SHORT":
        short = fault.nth
    else:
        what = "signal=KILL" if fault.how == "KILL" else f"error={fault.how}"
        options += ["-e", f"inject={fault.call}:{what}:when={fault.nth}"]
    with tempfile.NamedTemporaryFile() as to:
        status, told = _run(command, place, [*options, "-o", to.name], short)
        trace = Path(to.name).read_text(errors="replace")
    has_struck = bool(short) or "(INJECTED)" in trace or "killed by SIGKILL" in trace
    is_blamed = "Traceback" in told or "internal error" in told
    # Where the interpreter cannot load a part of the program, nobody can say it better.
    is_loaded = not _NOT_LOADED.search(told)
    problems = [Problem("told", told[-1500:])] if is_blamed and is_loaded else []
    is_tried_again = fault.how == "SHORT" or (fault.how == "EINTR" and fault.call != "openat")
    # Nobody tries again to list a directory or to load a library.
    if is_tried_again and status and not command.expected.by_command:
        problems.append(Problem("refused", f"{status}: {told[-500:]}"))
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        problems.append(Problem("died", "it did not finish"))
    said = int(status == 0)
    going_on = crash_replay.try_going_on(command.expected, place, said, (), undo_first=undo_first)
    return has_struck, problems + going_on


def _run(command: Command, place: Path, options: Sequence[str], short: int = 0) -> tuple[int, str]:
    """Prepare the place and run the command there under strace; its status and what it said."""
    place.mkdir()
    os.environ |= crash_operations.environment(place)
    prepared = os.fork()
    if not prepared:
        recorded_calls.run_child(lambda: swept_commands.prepare(command, place))
    assert os.waitpid(prepared, 0)[1] == 0
    with tempfile.TemporaryFile() as told:

        def begin() -> Callable[[], None]:
            signal.alarm(_LONGEST_S)
            work = swept_commands.start(command, place, told.fileno())

            def run() -> None:
                if short:
                    ctypes.CDLL(None).shorten_write(short)
                os._exit(work())

            return run

        status, strace = recorded_calls.trace_child(begin, options)
        told.seek(0)
        return status, told.read().decode(errors="replace") + strace


def _main() -> None:
    made = Path(sys.argv[1])
    recorded_calls.end_with_parent()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    del os.environ["LD_PRELOAD"]
    jobs = json.load(sys.stdin)
    crash_replay.load(made / "loading")
    for number, job in enumerate(jobs):
        place = made / "place"
        if isinstance(job, str):
            answer: object = _count(job, place)
        else:
            answer = job, _strike(Fault(*job), place, undo_first=number % 2 == 1)
        print(json.dumps(answer), file=answers, flush=True)
        os.chdir(made)
        shutil.rmtree(place)


if __name__ == "__main__":
    _main()
