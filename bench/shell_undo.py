"""What making commands undoable costs in a project of 50,000 files.

Run it with `python bench/shell_undo.py [DIRECTORY] [FILES]`. The floor is the same command through
the same session with the tracking switched off; contenders are interleaved, medians are printed.
"""

import asyncio
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from handaxe import Effects, Session, tool

GOAL_MS = 150


@tool
async def sh(command: Annotated[str, "What."], cwd: Annotated[str, "Where."]) -> str:
    """Run a command of unknown effect."""
    process = await asyncio.create_subprocess_exec("bash", "-c", command, cwd=cwd)
    return str(await process.wait())


@tool(effects=Effects.none())
async def look(command: Annotated[str, "What."], cwd: Annotated[str, "Where."]) -> str:
    """Run a command that was proved to look only."""
    process = await asyncio.create_subprocess_exec("bash", "-c", command, cwd=cwd)
    return str(await process.wait())


def make_project(root: Path, files: int) -> None:
    for directory in range(files // 20):
        place = root / f"part{directory // 50}" / f"d{directory % 50}"
        place.mkdir(parents=True)
        for number in range(20):
            (place / f"f{number}.py").write_text(f"{directory} {number}\n" * 150)


def open_session(root: Path, home: Path, *, tracked: bool) -> Session:
    return Session(
        root,
        permission_mode="bypassPermissions",
        tools=["Undo", sh, look],
        home=home,
        settings=None if tracked else {"undo": {"shell_max_files": 0}},
    )


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    result = await work()
    assert result.ok, result.text
    return (time.perf_counter() - began) * 1e3


def line(name: str, ours: float, floor: float, goal: str = "") -> None:
    print(
        f"{name:44} {ours:9.1f} ms   floor {floor:8.1f} ms   on top {ours - floor:8.1f} ms  {goal}"
    )


async def measure(root: Path, home: Path, label: str) -> None:
    async with (
        open_session(root, home, tracked=True) as ours,
        open_session(root, home / "floor", tracked=False) as floor,
    ):

        def calling(session: Session, name: str, command: str) -> Callable[[], Awaitable[Any]]:
            return lambda: session.call(name, command=command, cwd=str(root))

        first = await timed(calling(ours, "sh", "true"))
        line(f"{label}: first command", first, await timed(calling(floor, "sh", "true")))
        for name, tool_name, command, rounds in (
            ("nothing changes", "sh", "true", 20),
            ("one file changes", "sh", "echo x >> part0/d0/f0.py", 20),
            ("a directory moves", "sh", "mv part1 moved && mv moved part1", 5),
            ("50 files are touched", "sh", "touch part2/d*/f1.py", 5),
            ("proved read-only", "look", "true", 20),
        ):
            times: dict[str, list[float]] = {"ours": [], "floor": []}
            for _ in range(rounds):
                times["floor"].append(await timed(calling(floor, tool_name, command)))
                times["ours"].append(await timed(calling(ours, tool_name, command)))
            middle = {who: statistics.median(taken) for who, taken in times.items()}
            line(f"{label}: {name}", middle["ours"], middle["floor"], f"goal {GOAL_MS} ms on top")
        removed = await timed(calling(ours, "sh", "rm -rf part0 part1 part2 part3"))
        print(f"{label}: rm -rf of 4,000 files {removed:26.1f} ms")
        undone = await timed(ours.undo)
        print(f"{label}: undo of that {undone:35.1f} ms")
    kept = sum(p.lstat().st_size for p in (home / "snapshots").rglob("*") if p.is_file())
    print(f"{label}: kept of the tree {kept:31,} bytes")


async def main() -> None:
    place = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None))
    files = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    root = place / "project"
    try:
        make_project(root, files)
        await measure(root, place / "home", "plain")
        await measure(root, place / "home", "next session")
        for command in (
            "git init -q",
            "git add -A",
            "git -c gc.auto=0 -c user.name=b -c user.email=b@b commit -qm b",
        ):
            subprocess.run(command.split(), cwd=root, check=True)
        time.sleep(2.5)
        await measure(root, place / "git-home", "git")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    asyncio.run(main())
