"""What making commands undoable costs in a project of 50,000 files.

Run it with `python bench/shell_undo.py [DIRECTORY] [FILES]`. The floor is the same command through
the same session with the tracking switched off; contenders are interleaved, medians are printed.

A first command is measured as users meet it: of the first session ever or of a later one; at once,
or after what is kept ahead in the background is ready; outside of git, in a repository with an
object per file, and in one whose objects are packed. Small commands, whose words tell what they
write, are measured as the very first call of a new session of a new user. The last lines are whole
processes: one command that could do anything, and one whose words tell.
"""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from handaxe import Effects, Session, tool
from handaxe.app.services.session_services import START_S

GOAL_MS = 150
GIT = ("git", "-c", "gc.auto=0", "-c", "user.name=b", "-c", "user.email=b@b")
ROUNDS = 3
SMALL = {
    "touch": "touch small/new",
    "echo > f": "echo hi > small/f0.py",
    "sed -i": "sed -i s/0/1/ small/f1.py",
    "rm": "rm small/f2.py",
    "mv": "mv small/f3.py small/moved.py",
    "rm -r of 20 files": "rm -r small/d",
}
"""Commands that write what their words name."""


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


def calling(session: Session, root: Path, name: str, command: str) -> Callable[[], Awaitable[Any]]:
    return lambda: session.call(name, command=command, cwd=str(root))


async def first_commands(root: Path, home: Path, label: str) -> None:
    """First commands, before and after the background has done its work."""
    found: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        for name, is_ready in (("at once", False), ("after the head start", True)):
            place = home / f"{label}-{number}-{is_ready}"
            for kind in ("first ever", "first of a session"):
                taken = await first_command(root, place, is_ready=is_ready)
                found.setdefault(f"{kind}, {name}", []).append(taken)
            shutil.rmtree(place)
    floor = await first_command(root, home / "floor", is_ready=False, tracked=False)
    for name in sorted(found):
        goal = f"goal {GOAL_MS} ms on top" if name.endswith("start") else ""
        line(f"{label}: {name}", statistics.median(found[name]), floor, goal)


async def first_command(root: Path, home: Path, *, is_ready: bool, tracked: bool = True) -> float:
    async with open_session(root, home, tracked=tracked) as session:
        if is_ready:
            await asyncio.sleep(START_S + 0.2)
            while any(thread.name == "handaxe-preparing" for thread in threading.enumerate()):
                await asyncio.sleep(0.05)
        return await timed(calling(session, root, "sh", "echo x >> part0/d0/f0.py"))


async def small_commands(root: Path, home: Path, label: str) -> None:
    """Small commands through Bash, each of them at once in a session of its own."""
    for name, command in SMALL.items():
        times: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(3 * ROUNDS):
            for tracked in (False, True):
                make_small(root)
                settings = None if tracked else {"undo": {"shell_max_files": 0}}
                async with Session(
                    root, permission_mode="bypassPermissions", home=home, settings=settings
                ) as session:
                    times[tracked].append(
                        await timed(lambda: session.call("Bash", command=command))  # noqa: B023
                    )
        middle = {who: statistics.median(taken) for who, taken in times.items()}
        goal = f"goal {GOAL_MS} ms on top"
        line(f"{label}: first, {name}, at once", middle[True], middle[False], goal)
        shutil.rmtree(home)
    shutil.rmtree(root / "small")


def make_small(root: Path) -> None:
    """A directory for small commands, as they found it the last time."""
    shutil.rmtree(root / "small", ignore_errors=True)
    (root / "small/d").mkdir(parents=True)
    for number in range(20):
        (root / f"small/f{number}.py").write_text(f"{number}\n" * 150)
        (root / f"small/d/f{number}.py").write_text(f"{number}\n" * 150)


def processes(root: Path, home: Path, label: str) -> None:
    """`handaxe call` runs one command and ends: nothing can be got ready for it."""
    for name, command in (("Bash", "eval touch touched"), ("a small Bash", "touch touched")):
        times: dict[str, list[float]] = {"ours": [], "floor": []}
        for _ in range(ROUNDS):
            for who, settings in (("floor", '{"undo": {"shell_max_files": 0}}'), ("ours", "{}")):
                began = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-m", "handaxe", "call", "--permission-mode",
                     "bypassPermissions", "--settings", settings, "--root", str(root), "Bash",
                     f"command={command}"],
                    env={**os.environ, "HANDAXE_HOME": str(home / name)}, capture_output=True,
                    check=False,
                )  # fmt: skip
                assert done.returncode == 0, done.stderr
                times[who].append((time.perf_counter() - began) * 1e3)
        later, floor = statistics.median(times["ours"][1:]), statistics.median(times["floor"])
        line(f"{label}: handaxe call {name}, later ones", later, floor)
        line(f"{label}: handaxe call {name}, first ever", times["ours"][0], times["floor"][0])


async def later_commands(root: Path, home: Path, label: str) -> None:
    async with (
        open_session(root, home, tracked=True) as ours,
        open_session(root, home / "floor", tracked=False) as floor,
    ):
        for session in (ours, floor):
            await timed(calling(session, root, "sh", "true"))
        for name, tool_name, command, rounds in (
            ("nothing changes", "sh", "true", 20),
            ("one file changes", "sh", "echo x >> part0/d0/f0.py", 20),
            ("a directory moves", "sh", "mv part1 moved && mv moved part1", 5),
            ("50 files are touched", "sh", "touch part2/d*/f1.py", 5),
            ("proved read-only", "look", "true", 20),
        ):
            times: dict[str, list[float]] = {"ours": [], "floor": []}
            for _ in range(rounds):
                times["floor"].append(await timed(calling(floor, root, tool_name, command)))
                times["ours"].append(await timed(calling(ours, root, tool_name, command)))
            middle = {who: statistics.median(taken) for who, taken in times.items()}
            line(f"{label}: {name}", middle["ours"], middle["floor"], f"goal {GOAL_MS} ms on top")
        removed = await timed(calling(ours, root, "sh", "rm -rf part0 part1 part2 part3"))
        print(f"{label}: rm -rf of 4,000 files {removed:26.1f} ms")
        undone = await timed(ours.undo)
        print(f"{label}: undo of that {undone:35.1f} ms")
    kept = sum(p.lstat().st_size for p in (home / "snapshots").rglob("*") if p.is_file())
    print(f"{label}: kept of the tree {kept:31,} bytes")


async def measure(root: Path, place: Path, label: str) -> None:
    await first_commands(root, place / "firsts", label)
    await small_commands(root, place / "small-home", label)
    processes(root, place / f"{label}-processes", label)
    await later_commands(root, place / f"{label}-home", label)


async def main() -> None:
    place = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None))
    files = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    root = place / "project"
    try:
        make_project(root, files)
        time.sleep(2.5)
        await measure(root, place, "plain")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "b")):
            subprocess.run([*GIT, *words], cwd=root, check=True)
        time.sleep(2.5)
        await measure(root, place, "git, loose")
        subprocess.run([*GIT, "gc", "-q"], cwd=root, check=True)
        time.sleep(2.5)
        await measure(root, place, "git, packed")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    asyncio.run(main())
