"""Every state that a crash may leave, made real, recovered and looked at.

Works in a process of its own with `shown_inodes.so` loaded, so that files that are made anew have
their old numbers. Run as a script it is that process: jobs on stdin, outcomes on stdout, as JSON.
"""

import ctypes
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import crash_checks
import crash_operations
import planted_bugs
import recorded_calls
import tracing
from call_recorder import Recorder
from crash_checks import Expected, Problem, expected_of
from crash_states import Choice, CrashStates, Found, Tree
from disk_model import Recording, initial

_LONGEST_S = 60
_TELLING = 100


class Job(NamedTuple):
    """Which states of which operation to try."""

    operation: str
    states: int
    seed: int = 0
    plant: str = ""
    """A bug that the operation is to have."""
    skip: int = 0
    """So many states were tried before."""
    until: tuple[str, ...] = ()
    """Stop when problems of all these kinds were found."""


class Outcome(NamedTuple):
    """What came of a job."""

    states: int
    steps: int
    problems: list[tuple[str, Problem]]
    """With the crash, spelled out."""

    def kinds(self) -> dict[str, int]:
        """In how many states a problem of each kind was found."""
        return dict(Counter(kind for _, kind in {(c, p.kind) for c, p in self.problems}))


def why_not() -> str | None:
    """Why nothing can be simulated here."""
    return tracing.why_not() or (None if _compiler() else "no C compiler is installed")


def _compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


def simulate(jobs: Sequence[Job]) -> Iterator[Outcome]:
    """Record every operation and try the states it may leave, one after the other."""
    with tempfile.TemporaryDirectory(prefix="handaxe-crash-", dir=quick()) as made:
        library = compile_library("shown_inodes.c", Path(made))
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LD_PRELOAD": str(library),
        }
        command = [sys.executable, __file__, made]
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            json.dump(jobs, worker.stdin)
            worker.stdin.close()
            for line in worker.stdout:
                states, steps, problems = json.loads(line)
                yield Outcome(states, steps, [(c, Problem(*rest)) for c, *rest in problems])
        assert worker.returncode == 0, f"the replay ended with {worker.returncode}"


def compile_library(name: str, to: Path) -> Path:
    """A library of this directory, compiled."""
    library, source = to / Path(name).with_suffix(".so"), Path(__file__).with_name(name)
    compiling = [_compiler() or "cc", "-shared", "-fPIC", "-o", library, source, "-ldl"]
    subprocess.run(compiling, check=True)
    return library


def quick() -> str | None:
    """Where thousands of files cost little; the default where there is no such place."""
    quick = "/dev/shm"
    return quick if os.access(quick, os.W_OK) else None


def record(operation: str, place: Path, plant: str = "") -> Recording:
    """Prepare the place and run the operation there under strace."""

    def work() -> None:
        if plant:
            planted_bugs.plant(plant, place)
        crash_operations.run(operation, place)

    prepared = os.fork()
    if not prepared:
        recorded_calls.run_child(lambda: crash_operations.prepare(operation, place))
    assert os.waitpid(prepared, 0)[1] == 0
    before = initial(place)
    recorder = Recorder(place, before)
    recording = recorder.record(recorded_calls.trace(work))
    _compare(recorder.contents(), place)
    for path, number in recorder.paths():
        known, info = recording.inodes[number], (place / path).lstat()
        if not known.is_old:
            recording.inodes[number] = known._replace(
                ino=info.st_ino, mtime_ns=info.st_mtime_ns, ctime_ns=info.st_ctime_ns
            )
    return recording


def _compare(recorded: dict[str, bytes], place: Path) -> None:
    """The recording is complete: replayed whole it gives what the program left."""
    real = {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    wrong = sorted(path for path in {*real, *recorded} if real.get(path) != recorded.get(path))
    assert not wrong, f"the recording differs from what the program left: {wrong}"


class Replay:
    """The place of one recording, made what it may be after a crash, again and again."""

    def __init__(self, place: Path, recording: Recording) -> None:
        self._place = place
        self._recording = recording
        self._recording_ns = max(inode.mtime_ns for inode in recording.inodes.values())
        self._shim = ctypes.CDLL(None)

    def make(self, tree: Tree) -> None:
        """Make the place that tree, with the numbers and times of the recording."""
        self._shim.forget_inodes(ctypes.c_ulonglong(0))
        for path in self._place.iterdir():
            shutil.rmtree(path)
        first = {0: self._place}
        for name, found in tree.items():
            path = self._place / name
            if found.inode in first:
                os.link(first[found.inode], path, follow_symlinks=False)
            else:
                first[found.inode] = path
                _make(path, found)
        for found in {found.inode: found for found in tree.values()}.values():
            known = self._recording.inodes[found.inode]
            is_known = known.mtime_ns and (found.is_first or not known.is_old)
            time_ns = known.mtime_ns if is_known else self._recording_ns
            os.utime(first[found.inode], ns=(time_ns, time_ns), follow_symlinks=False)
        self._show({number: path.lstat() for number, path in first.items()})

    def _show(self, infos: dict[int, os.stat_result]) -> None:
        self._shim.forget_inodes(ctypes.c_ulonglong(infos[0].st_dev))
        for number, info in infos.items():
            known = self._recording.inodes[number]
            full = known.ino and self._shim.show_inode(
                ctypes.c_ulonglong(info.st_ino),
                ctypes.c_ulonglong(known.ino),
                ctypes.c_longlong(info.st_ctime_ns),
                ctypes.c_longlong(known.ctime_ns),
            )
            assert not full, "more files than the library has room for"

    def end(self) -> None:
        """Show everything as it is again."""
        self._shim.forget_inodes(ctypes.c_ulonglong(0))


def _make(path: Path, found: Found) -> None:
    if found.kind == "link":
        path.symlink_to(found.target)
        return
    if found.kind == "directory":
        path.mkdir()
    else:
        path.write_bytes(found.content)
    path.chmod(found.mode)


def try_going_on(
    expected: Expected, place: Path, said: int, unknown: Collection[str], *, undo_first: bool
) -> list[Problem]:
    """Check in a process of its own: what one state taught must not count for the next."""
    reading, writing = os.pipe()

    def work() -> None:
        signal.alarm(_LONGEST_S)
        os.dup2(2, 1)
        try:
            found = list(crash_checks.check(expected, place, said, unknown, undo_first=undo_first))
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            found = [Problem("died", traceback.format_exc()[-1500:])]
        with os.fdopen(writing, "w") as pipe:
            json.dump(found, pipe)

    child = os.fork()
    if not child:
        recorded_calls.run_child(work)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        return [Problem("died", f"ended with {status}")]
    return [Problem(*one) for one in json.loads(told)]


def load(place: Path) -> None:
    """Have everything imported before the first fork."""
    place.mkdir()
    os.environ |= crash_operations.environment(place)
    crash_operations.prepare("undo", place)
    assert not list(crash_checks.check(expected_of("undo"), place, 0, (), undo_first=False))
    gc.freeze()


def _do(job: Job, place: Path) -> Outcome:
    place.mkdir()
    os.environ |= crash_operations.environment(place)
    recording = record(job.operation, place, job.plant)
    replay, states = Replay(place, recording), CrashStates(recording)
    problems: list[tuple[str, Problem]] = []
    expected, count = expected_of(job.operation), 0
    for number, (choice, tree) in enumerate(states.different(job.states, job.seed)):
        if number < job.skip:
            continue
        if job.until and {problem.kind for _, problem in problems} >= set(job.until):
            break
        count += 1
        replay.make(tree)
        said = len(recording.acknowledged(choice.after))
        unknown = states.find_unrecorded(choice, tree)
        found = try_going_on(expected, place, said, unknown, undo_first=number % 2 == 1)
        if found:
            told = f"state {number}: {_spelled(choice, recording, states)}"
            problems += [(told, problem) for problem in found]
        if count % _TELLING == 0:
            kinds = Outcome(count, 0, problems).kinds()
            sys.stderr.write(f"{job.operation}: {number + 1} states, {kinds}\n")
    replay.end()
    return Outcome(count, len(recording.steps), problems)


def _spelled(choice: Choice, recording: Recording, states: CrashStates) -> str:
    lost = [n for n in states.pending(choice.after) if n not in choice.kept]
    step = str(recording.steps[choice.after - 1])[:80] if choice.after else "nothing"
    return (
        f"crash after step {choice.after} ({step}), without steps {lost}, "
        f"torn {dict(choice.torn)}, zeroed inodes {sorted(choice.zeroed)}"
    )


def _main() -> None:
    made = Path(sys.argv[1])
    recorded_calls.end_with_parent()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Only this process needs the library; what it starts has nothing to show.
    del os.environ["LD_PRELOAD"]
    jobs = [Job(*given) for given in json.load(sys.stdin)]
    load(made / "loading")
    for number, job in enumerate(jobs):
        outcome = _do(job, made / f"place-{number}")
        problems = [(told, *problem) for told, problem in outcome.problems]
        print(json.dumps((outcome.states, outcome.steps, problems)), file=answers, flush=True)


if __name__ == "__main__":
    _main()
