"""The whole agent as a process, against a model server on loopback, beside whichever rivals are here.

    uv run python bench/agent_cli.py                      # 5 rounds, everybody who is installed
    uv run python bench/agent_cli.py --rounds 3 --files 2000 --only handaxe codex

A round runs each contender once: the time from spawning it to its first request, and from each answer
with a call to the request that carries the result. The model asks for every kind of call three times;
the first of each kind stands in a row of its own, because it also loads what the tool needs. Floors
are taken in the same round: a Python that only imports asyncio, and `rg` on the same tree. Memory is
the most that the process and its children held at once. See rivals.py for who can take part.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from model_server import ModelServer, Request
from rivals import LINES, Contender, Work, contenders

PASSES = 3
FIRST = "spawn to first request"
MEMORY = "resident memory, MB"
GOALS = {
    FIRST: "1.2 x codex, 0.25 x others",
    "unknown tool": "5",
    "shell true": "12",
    "read 2,000 lines": "12",
    "write 10 KB": "10",
    "edit in 10 KB": "8",
    "grep rare": "1.15 x rg",
    MEMORY: "80",
}
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
_LINE = "line of text %d, about fifty characters long, really\n"
_LIMIT_S = 120

Times = dict[str, list[float]]


def works(root: Path) -> list[Work]:
    """What every pass asks for."""
    content = "".join(_LINE % number for number in range(200))
    old = _LINE % 198 + _LINE % 199
    return [
        Work(
            long=str(root / f"long-{number}.txt"),
            new=str(root / f"new-{number}.txt"),
            content=content,
            old=old,
            replacement="changed\n",
            needle=f"needle_{number}_in_it",
        )
        for number in range(PASSES)
    ]


async def one_round(contender: Contender, root: Path, home: Path) -> Times:
    """Every line, in milliseconds; memory in MB.

    Raises:
        RuntimeError: it did not do the work.
    """
    for left in root.glob("new-*.txt"):
        left.unlink()
    asked = works(root)
    server = ModelServer([call for work in asked for call in contender.spell(work)])
    start = contender.start(await server.start(), home)
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *contender.program, *start.arguments, cwd=root, stdin=subprocess.DEVNULL,
        env={**environment, "HOME": str(home), "TERM": "dumb", **start.environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    watching = asyncio.ensure_future(peak_mb(process.pid))
    try:
        out, errors = await asyncio.wait_for(process.communicate(), _LIMIT_S)
    except TimeoutError:
        process.kill()
        raise RuntimeError(f"{contender.name} did not end within {_LIMIT_S} s") from None
    finally:
        server.stop()
    requests = server.requests
    if problem := unfinished(asked, requests):
        said = (out + errors).decode(errors="replace")[-600:]
        raise RuntimeError(f"{contender.name}: {problem}. It said: {said}")
    times: Times = {FIRST: [(requests[0].at - began) * 1000], MEMORY: [await watching]}
    for number, answered in enumerate(server.answered[:-1]):
        line = LINES[number % len(LINES)]
        row = line if number >= len(LINES) else f"{line}, first"
        times.setdefault(row, []).append((requests[number + 1].at - answered) * 1000)
    return times


def unfinished(asked: list[Work], requests: list[Request]) -> str:
    """What was not done, as files and the model's own history show; empty if all was."""
    wanted = len(asked) * len(LINES) + 1
    if len(requests) != wanted:
        return f"{len(requests)} requests instead of {wanted}"
    heard = b"".join(request.body for request in requests)
    for number, work in enumerate(asked):
        path = Path(work.new)
        if not path.exists() or not path.read_text().endswith(work.replacement):
            return f"{path.name} is not what it should be"
        if b"rare-%d.py" % number not in heard:
            return f"{work.needle} was not found"
        if b"opening words of long-%d" % number not in heard:
            return f"{work.long} was not read"
    return ""


async def peak_mb(pid: int) -> float:
    """The most that a process and its children held at once, until it ends."""
    most = 0.0
    while pages := sum(resident_pages(pid)):
        most = max(most, pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20))
        await asyncio.sleep(0.05)
    return most


def resident_pages(pid: int) -> Iterable[int]:
    """What each of a process and its descendants holds."""
    place = Path(f"/proc/{pid}")
    try:
        yield int((place / "statm").read_text().split()[1])
        children = [task.read_text().split() for task in place.glob("task/*/children")]
    except OSError:
        return
    for child in {int(number) for numbers in children for number in numbers}:
        yield from resident_pages(child)


def floors(root: Path) -> Times:
    """The same machine without any agent."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
    times = {"floor: python + asyncio": [(time.perf_counter() - began) * 1000]}
    rg = shutil.which("rg")
    if rg is not None:
        began = time.perf_counter()
        subprocess.run([rg, "-l", "needle_0_in_it", str(root)], check=False, capture_output=True)
        times["floor: rg"] = [(time.perf_counter() - began) * 1000]
    return times


def make_tree(root: Path, files: int) -> None:
    """A project to work in."""
    line = "some words of an ordinary source file, number %d\n"
    for number in range(files):
        folder = root / f"part{number % 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"file{number}.py").write_text("".join(line % at for at in range(40)))
    for number in range(PASSES):
        (root / "part0" / f"rare-{number}.py").write_text(f"needle_{number}_in_it = 1\n")
        text = "".join(line % at for at in range(1999))
        (root / f"long-{number}.txt").write_text(f"opening words of long-{number}\n{text}")


def measure(taking_part: list[Contender], root: Path, homes: Path, rounds: int) -> dict[str, Times]:
    """All rounds of all contenders, taken in turns; whoever fails is named and left out."""
    found: dict[str, Times] = {one.name: {} for one in taking_part}
    for number in range(rounds + 1):
        for one in [one for one in taking_part if one.name in found]:
            home = homes / one.name
            home.mkdir(parents=True, exist_ok=True)
            try:
                times = asyncio.run(one_round(one, root, home))
            except RuntimeError as error:
                print(error, file=sys.stderr)
                del found[one.name]
                continue
            # The first round only warms up.
            if number:
                for line, values in times.items():
                    found[one.name].setdefault(line, []).extend(values)
        if number:
            for line, values in floors(root).items():
                found.setdefault("floors", {}).setdefault(line, []).extend(values)
    return found


def show(found: dict[str, Times]) -> None:
    """Medians, the best in brackets."""
    floor = found.pop("floors")
    print(f"{'ms, median (best)':24}" + "".join(f"{name:>18}" for name in found) + "   goal")
    for line in (FIRST, *LINES, *(f"{line}, first" for line in LINES), MEMORY):
        row = "".join(f"{_cell(times[line]):>18}" for times in found.values())
        print(f"{line:24}{row}   {GOALS.get(line, '')}")
    for line, values in floor.items():
        print(f"{line:24}{_cell(values):>18}")


def _cell(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--only", nargs="+", default=None, help="names of contenders")
    given = parser.parse_args()
    taking_part = [one for one in contenders() if not given.only or one.name in given.only]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        root, homes = Path(place, "project"), Path(place, "homes")
        root.mkdir()
        make_tree(root, given.files)
        show(measure(taking_part, root, homes, given.rounds))


if __name__ == "__main__":
    main()
