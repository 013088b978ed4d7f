"""How many of the paths that real commands change count as theirs, with and without a trace.

Run it with `python bench/undo_owners.py [DIRECTORY...]`. Test runs, builds and formatters work in
copies of real projects: handaxe itself, two packages of this environment, a generated C program,
and whatever directories are named. A changed path that nothing shows to be the command's is
ambiguous: undo leaves it alone unless it is named. We want fewer than 2 % of them where commands
can be traced. The last column is how long the command took.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import click
import httpx

from handaxe import Session

GOAL = 0.02
Row = tuple[str, int, int, float]
"""What ran, how many paths changed, how many of them are ambiguous, seconds."""
PYTHON = f"env -u PYTHONDONTWRITEBYTECODE {quote(sys.executable)} -m"
COMMON = {
    "format": f"{PYTHON} ruff format --isolated --line-length 60 -q .",
    "compile": f"{PYTHON} compileall -q -j 2 .",
    "commit": "git init -q . && git add -A && "
    "git -c user.name=b -c user.email=b@b -c commit.gpgsign=false commit -qm all",
}
MAKEFILE = """\
sources := $(wildcard *.c)
program: $(sources:.c=.o)
\tcc -o $@ $^
%.o: %.c
\tcc -MMD -c -o $@ $<
clean:
\trm -f program *.o *.d
-include $(sources:.c=.d)
"""


def list_projects(place: Path, named: list[str]) -> Iterator[tuple[str, Path, dict[str, str]]]:
    """Copies of projects, with what to run there."""
    root = Path(__file__).parents[1]
    files = subprocess.run(
        ["git", "ls-files", "-zco", "--exclude-standard"], cwd=root, capture_output=True, check=True
    ).stdout
    for name in filter(None, files.decode().split("\0")):
        (place / "handaxe" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, place / "handaxe" / name)
    tests = f"PYTHONPATH=src {PYTHON} pytest -q tests/session"
    yield "handaxe", place / "handaxe", {"test": tests, **COMMON}
    packages = [Path(module.__file__ or "").parent for module in (click, httpx)]
    for source in (*packages, *map(Path, named)):
        shutil.copytree(
            source, place / source.name / source.name, ignore=shutil.ignore_patterns("__pycache__")
        )
        tests = f"{PYTHON} pytest -q --doctest-modules . ; true"
        yield source.name, place / source.name, {"test": tests, **COMMON}
    yield "C program", make_program(place / "c"), {"build": "make -j2", "again": "make clean all"}


def make_program(place: Path) -> Path:
    place.mkdir()
    (place / "Makefile").write_text(MAKEFILE + "all: program\n")
    for number in range(40):
        (place / f"part{number}.c").write_text(f"int part{number}(void) {{ return {number}; }}\n")
    (place / "main.c").write_text("int part7(void);\nint main(void) { return part7() - 7; }\n")
    return place


async def measure(root: Path, home: Path, commands: dict[str, str], *, traced: bool) -> list[Row]:
    rows: list[Row] = []
    settings = {"undo": {"trace_commands": traced}}
    mode = "bypassPermissions"
    async with Session(root, permission_mode=mode, home=home, settings=settings) as session:
        await session.call("Bash", command="eval true")
        for name, command in commands.items():
            known = len(session.history())
            began = time.perf_counter()
            result = await session.call("Bash", command=command, timeout=600_000)
            took_s = time.perf_counter() - began
            assert result.ok, result.text
            changes = [change for call in session.history()[known:] for change in call.changes]
            rows.append((name, len(changes), sum(bool(c.ambiguous) for c in changes), took_s))
    return rows


async def main() -> None:
    totals = {True: [0, 0], False: [0, 0]}
    for traced in (True, False):
        place = Path(tempfile.mkdtemp(prefix="undo-owners-"))
        try:
            for name, root, commands in list_projects(place, sys.argv[1:]):
                rows = await measure(root, place / "home", commands, traced=traced)
                for what, changed, ambiguous, took_s in rows:
                    totals[traced][0] += changed
                    totals[traced][1] += ambiguous
                    show(traced, f"{name}: {what}", changed, ambiguous, f"{took_s:8.2f} s")
        finally:
            shutil.rmtree(place)
    for traced, (changed, ambiguous) in totals.items():
        show(traced, "all", changed, ambiguous, f"goal: below {GOAL:.0%}" if traced else "")


def show(traced: bool, what: str, changed: int, ambiguous: int, more: str) -> None:  # noqa: FBT001
    kind = "traced" if traced else "untraced"
    share = ambiguous / changed if changed else 0
    sys.stdout.write(f"{kind:9} {what:24} {ambiguous:6} of {changed:6} = {share:6.1%} {more}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
