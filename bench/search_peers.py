"""Glob and Grep beside the file tools of other agent libraries, on the tree of `search.py`: prints
ratios, never judges.

`python bench/search_peers.py [files] [megabytes] [rounds]`. A peer takes part if a variable names
an interpreter that has it: `HANDAXE_BENCH_DEEPAGENTS=/somewhere/bin/python` (deepagents) and
`HANDAXE_BENCH_OPENHANDS=...` (openhands-tools). Each runs in its own process with the same ripgrep
on its PATH and measures itself, so neither its start nor the way to it counts. All take turns. A
peer that cannot do a line, or finds something else, is named and left out of it.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from search import NEEDLE, NOWHERE, RG, grow

from handaxe import Session

LINES = ("glob", "tiny word", "rare files", "nowhere", "word, 250 lines")
Turn = Callable[[str], Awaitable[tuple[float, int]]]
"""Does a line; gives its seconds and how many files or lines it came to."""

SERVE = """
import json, sys, time
for line in sys.stdin:
    began = time.perf_counter()
    try:
        count = LINES[json.loads(line)]()
        answer = [time.perf_counter() - began, count]
    except Exception as error:
        answer = [0, repr(error)[:200]]
    print(json.dumps(answer), flush=True)
"""
DEEPAGENTS = """
from deepagents.backends.filesystem import FilesystemBackend
there, tiny = FilesystemBackend(ROOT, virtual_mode=False), FilesystemBackend(TINY, virtual_mode=False)
def found(result):
    if result.error:
        raise ValueError(result.error)
    return result.matches
LINES = {
    "glob": lambda: len(found(there.glob("**/*.py", ROOT))),
    "tiny word": lambda: len(found(tiny.grep("return", TINY, max_count=250))),
    "rare files": lambda: len({match["path"] for match in found(there.grep(NEEDLE, ROOT))}),
    "nowhere": lambda: len(found(there.grep(NOWHERE, ROOT))),
    "word, 250 lines": lambda: len(found(there.grep("return", ROOT, max_count=250))),
}
"""
OPENHANDS = """
from openhands.tools.glob.definition import GlobAction
from openhands.tools.glob.impl import GlobExecutor
from openhands.tools.grep.definition import GrepAction
from openhands.tools.grep.impl import GrepExecutor
files, there, tiny = GlobExecutor(ROOT), GrepExecutor(ROOT), GrepExecutor(TINY)
LINES = {
    "glob": lambda: len(files(GlobAction(pattern="**/*.py")).files),
    "tiny word": lambda: len(tiny(GrepAction(pattern="return")).matches),
    "rare files": lambda: len(there(GrepAction(pattern=NEEDLE)).matches),
    "nowhere": lambda: len(there(GrepAction(pattern=NOWHERE)).matches),
}
"""


class PeerFailed(Exception):
    """It could not do a line, and says why."""


class Peer:
    """A library in its own process."""

    def __init__(self, python: str, program: str, places: dict[str, str]) -> None:
        head = "\n".join(f"{name} = {value!r}" for name, value in places.items())
        path = f"{Path(RG).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        self._process = subprocess.Popen(
            [python, "-c", head + program + SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PATH": path, "PYTHONPATH": ""},
            text=True,
        )

    async def turn(self, line: str) -> tuple[float, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        seconds, count = json.loads(self._process.stdout.readline() or '[0, "it ended"]')
        if not isinstance(count, int):
            raise PeerFailed(count)
        return seconds, count

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def handaxe(session: Session, tiny: Session) -> Turn:
    content = {"output_mode": "content"}
    calls = {
        "glob": (session, "Glob", {"pattern": "**/*.py"}, "numFiles"),
        "tiny word": (tiny, "Grep", {"pattern": "return", **content}, "numLines"),
        "rare files": (session, "Grep", {"pattern": NEEDLE}, "numFiles"),
        "nowhere": (session, "Grep", {"pattern": NOWHERE}, "numFiles"),
        "word, 250 lines": (session, "Grep", {"pattern": "return", **content}, "numLines"),
    }

    async def turn(line: str) -> tuple[float, int]:
        where, name, call_input, counted = calls[line]
        began = time.perf_counter()
        result = await where.call(name, call_input)
        return time.perf_counter() - began, result.data[counted]

    return turn


async def compare(line: str, rounds: int, turns: dict[str, Turn]) -> None:
    taken: dict[str, list[float]] = {}
    shown: list[str] = []
    counts: dict[str, int] = {}
    for number in range(rounds + 1):
        for name, turn in turns.items():
            if number and name not in counts:
                continue
            try:
                seconds, counts[name] = await turn(line)
            except PeerFailed as error:
                shown.append(f"{name} cannot: {error}")
                counts.pop(name, None)
                continue
            if number:
                taken.setdefault(name, []).append(seconds * 1000)
    ours = taken.pop("handaxe")
    first = f"handaxe {statistics.median(ours):.1f} ms ({counts['handaxe']})"
    for name, times in taken.items():
        ratio, best = statistics.median(times) / statistics.median(ours), min(times) / min(ours)
        shown.append(f"{name} x{ratio:.2f}, best x{best:.2f} ({counts[name]})")
    print(f"{line:18} {first}   " + "   ".join(shown), flush=True)


async def main() -> None:
    numbers = [int(argument) for argument in sys.argv[1:]]
    files, megabytes, rounds = (*numbers, *(50_000, 500, 5)[len(numbers) :])
    with tempfile.TemporaryDirectory(prefix="handaxe-bench-") as folder:
        root, tiny = Path(folder, "tree"), Path(folder, "tiny")
        grow(root, files, megabytes)
        grow(tiny, 20, 1)
        places = {"ROOT": str(root), "TINY": str(tiny), "NEEDLE": NEEDLE, "NOWHERE": NOWHERE}
        peers = {
            name: Peer(python, program, places)
            for name, program in (("deepagents", DEEPAGENTS), ("openhands", OPENHANDS))
            if (python := os.environ.get(f"HANDAXE_BENCH_{name.upper()}"))
        }
        print(f"{files:,} files, {megabytes:,} MB, {rounds} rounds; in brackets what was found")
        home = Path(folder, "home")
        try:
            async with Session(root, home=home) as session, Session(tiny, home=home) as small:
                ours = {"handaxe": handaxe(session, small)}
                turns = ours | {name: peer.turn for name, peer in peers.items()}
                for line in LINES:
                    await compare(line, rounds, turns)
        finally:
            for peer in peers.values():
                peer.end()


if __name__ == "__main__":
    asyncio.run(main())
