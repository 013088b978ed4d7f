"""Many mixed calls with faults in one process: `scripts/check --long soak [calls]`.

Prints descriptors, threads, processes, memory and temporary files twenty times, and compares the
later half of the run with the earlier one: all of them have to stay flat.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import asyncio
import contextlib
import ctypes
import gc
import os
import random
import resource
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.measure import processes_below, resident_mb
from tests.faults.undo_model import find_leftovers
from tests.undo.undoable import NOTEBOOK, in_a_process

from handaxe import Session, ToolResult

SAMPLES = 20
CALLS_PER_SESSION = 40
MAY_GROW = {"descriptors": 1, "threads": 1, "processes": 1, "temporary files": 0}
MEMORY_SHARE, MEMORY_MB = 0.03, 2.0
"""Memory may grow by this share, or by so much: the interpreter keeps what it once had."""

Sample = dict[str, float]


class Soak:
    """Sessions in one project, one after the other, with a person and faults around them."""

    def __init__(self, place: Path, seed: int) -> None:
        self.root, self.home = place / "project", place / "home"
        self.temporary = place / "temporary"
        (self.root / "d").mkdir(parents=True)
        self.temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.temporary)
        self.random = random.Random(seed)
        self.calls = 0
        self.codes: dict[str, int] = {}

    async def run(self, calls: int) -> list[Sample]:
        """Make so many calls; what was measured on the way."""
        samples: list[Sample] = []
        while self.calls < calls:
            await self._run_session(min(CALLS_PER_SESSION, calls - self.calls))
            if self.calls >= len(samples) * calls / SAMPLES:
                samples.append(self._measure())
                print(_line(self.calls, samples[-1]), flush=True)
        return samples

    async def _run_session(self, calls: int) -> None:
        self._reset_files()
        options = {"undo": {"max_bytes": 2 << 20, "shell_ahead": self.random.random() < 0.2}}
        session = Session(
            self.root, permission_mode="bypassPermissions", home=self.home, settings=options
        )
        async with session:
            until = self.calls + calls
            while self.calls < until:
                result = await self.random.choice(STEPS)(self, session)
                self.calls += 1
                code = "ok" if result.ok else result.code
                assert code, result.text
                assert code != "internal.error", result.text
                self.codes[code] = self.codes.get(code, 0) + 1
        if self.random.random() < 0.1:
            self._kill_one()
        (self.home / ".undo-pruned").unlink(missing_ok=True)

    def _reset_files(self) -> None:
        for name, text in {
            "a": "one\n",
            "d/b": "one\ntwo\n",
            "big": "one\n" + "x" * 70_000,
        }.items():
            (self.root / name).write_text(text)
        (self.root / "n.ipynb").write_text(NOTEBOOK)

    def _kill_one(self) -> None:
        """A session in a process of its own is killed while it writes."""
        path = str(self.root / self.random.choice(["a", "big"]))
        calls = [
            ("Read", {"file_path": path, "limit": 2}),
            ("Write", {"file_path": path, "content": "killed\n"}),
        ]
        in_a_process(self.root, self.home, calls, self.random.randrange(40), session_id="killed")

    def _measure(self) -> Sample:
        gc.collect()
        # What nobody uses any more is no growth, also where the allocator has kept it.
        ctypes.CDLL(None).malloc_trim(0)
        below = processes_below(os.getpid())
        return {
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": len(os.listdir("/proc/self/task")),
            "processes": len(below),
            "memory": resident_mb(),
            "memory below": _memory_of(below),
            "temporary files": len(find_leftovers(self.root))
            + sum(len(files) for _, _, files in os.walk(self.temporary)),
        }


def _memory_of(processes: list[int]) -> float:
    total = 0.0
    for pid in processes:
        with contextlib.suppress(OSError):
            total += resident_mb(pid)
    return total


# The steps: each makes one call.

Step = Callable[[Soak, Session], Awaitable[ToolResult]]


def _step(tool: str, *choices: dict[str, Any], reads: str = "") -> Step:
    """A call of a tool, with one of these inputs, after a Read if it needs one."""

    async def make(soak: Soak, session: Session) -> ToolResult:
        chosen = {
            key: value.replace("#", str(soak.calls)) if isinstance(value, str) else value
            for key, value in soak.random.choice(choices).items()
        }
        if reads:
            await session.call("Read", file_path=str(soak.root / chosen[reads]), limit=2)
        return await session.call(tool, chosen)

    return make


async def _undo(soak: Soak, session: Session) -> ToolResult:
    return await session.undo(redo=soak.random.random() < 0.3, force=soak.random.random() < 0.2)


async def _person(soak: Soak, session: Session) -> ToolResult:
    """Somebody else saves the file between Read and Edit."""
    await session.call("Read", file_path="a")
    (soak.root / "a").write_text(f"one of theirs {soak.calls}\n")
    return await session.call("Edit", file_path="a", old_string="one", new_string="two")


async def _cancel(_soak: Soak, session: Session) -> ToolResult:
    running = asyncio.ensure_future(session.call("Bash", command="sleep 60"))
    while not session.cancel():
        await asyncio.sleep(0)
    return await running


async def _background(_soak: Soak, session: Session) -> ToolResult:
    """Work in the background that the end of the session has to end."""
    return await session.call("Bash", command="sleep 300", run_in_background=True)


async def _no_space(soak: Soak, session: Session) -> ToolResult:
    """No file may grow beyond some kilobytes: as on a full disk, writes stop in the middle."""
    with _limit(resource.RLIMIT_FSIZE, soak.random.randrange(1, 60_000)):
        return await session.call("Write", file_path="new", content=f"{soak.calls}" * 9_000)


async def _no_descriptors(soak: Soak, session: Session) -> ToolResult:
    used = len(os.listdir("/proc/self/fd"))
    with _limit(resource.RLIMIT_NOFILE, used + soak.random.randrange(4)):
        return await session.call("Write", file_path="new", content=f"{soak.calls}")


@contextlib.contextmanager
def _limit(what: int, most: int) -> Generator[None]:
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))


STEPS: tuple[Step, ...] = (
    _step("Read", {"file_path": "a"}, {"file_path": "big", "limit": 2}, {"file_path": "gone"}),
    _step("Write", {"file_path": "d/new#", "content": "new #\n"}),
    _step("Write", {"file_path": "big", "content": "one\n#"}, reads="file_path"),
    _step(
        "Edit",
        {"file_path": "a", "old_string": "one", "new_string": "one #"},
        {"file_path": "big", "old_string": "one", "new_string": "one #"},
        {"file_path": "a", "old_string": "not there", "new_string": "#"},
        {"file_path": "gone", "old_string": "x", "new_string": "#"},
        reads="file_path",
    ),
    _step(
        "NotebookEdit",
        {"notebook_path": "n.ipynb", "cell_id": "c", "new_source": "#"},
        reads="notebook_path",
    ),
    _step("Glob", {"pattern": "**/*"}),
    _step("Grep", {"pattern": "one"}, {"pattern": "(broken"}),
    _step(
        "Bash",
        {"command": "echo # >> a"},
        {"command": "sh -c 'rm -f d/new*; mv big bigger; mv bigger big'"},
        {"command": "exit 3"},
        {"command": "seq 1 20000"},
        {"command": "sleep 60", "timeout": 20},
        {"command": "(sleep 60 &) ; echo left one behind"},
    ),
    _step("Edit", {"file_path": 7}),
    _step("NoSuchTool", {"x": "y"}),
    _undo,
    _undo,
    _person,
    _cancel,
    _background,
    _no_space,
    _no_descriptors,
)


def find_growth(samples: list[Sample]) -> list[str]:
    """What grew between the earlier and the later half; the first quarter warms up."""
    settled = samples[len(samples) // 4 :]
    half = len(settled) // 2
    grown: list[str] = []
    for name in settled[0]:
        early = statistics.median(sample[name] for sample in settled[:half])
        late = statistics.median(sample[name] for sample in settled[half:])
        room = MAY_GROW.get(name, max(MEMORY_MB, early * MEMORY_SHARE))
        print(f"{name}: {early:.1f} in the earlier half, {late:.1f} in the later")
        if late > early + room:
            grown.append(name)
    return grown


def _line(calls: int, sample: Sample) -> str:
    return f"{calls:7,} calls  " + "  ".join(f"{v:.1f} {name}" for name, v in sample.items())


def main(calls: int, seed: int = 0) -> int:
    with tempfile.TemporaryDirectory() as place:
        for name in ("HANDAXE_HOME", "HANDAXE_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
            os.environ[name] = f"{place}/{name.lower()}"
        soak = Soak(Path(place), seed)
        samples = asyncio.run(soak.run(calls))
        print("answers:", ", ".join(f"{n:,} {code}" for code, n in sorted(soak.codes.items())))
        grown = find_growth(samples)
        print(f"{soak.calls:,} calls; grown: {', '.join(grown) or 'nothing'}")
        return bool(grown)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["10000"])))
