"""Glob and Grep against raw ripgrep on a generated tree: prints ratios, never judges.

`python bench/search.py [files] [megabytes] [rounds]` makes the tree in a temporary directory,
measures every line with its contenders in turn, and removes the tree again. A directory given
as HANDAXE_BENCH_TREE is measured as well and left alone.
"""

import asyncio
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from handaxe import Session
from handaxe.search.rg.rg_binary import find_ripgrep

WORDS = """
    the value of index name self return import from class def if else for while try except config
    parser token result buffer stream handler request response client server message error raise
    assert yield lambda async await data path file line count total
"""
ENDINGS = (".py", ".js", ".ts", ".md", ".txt", ".json", ".c", ".h", ".rs", ".go")
RG = find_ripgrep(()) or "rg"
NEEDLE = "needle_in_haystack_42"
NOWHERE = "".join(("in_no_", "file_at_", "all_42"))
PLAIN = (RG, "--no-config", "--color=never", "--hidden", "--no-require-git")

Contender = Callable[[], Awaitable[object]]


def grow(root: Path, files: int, megabytes: int) -> None:
    dice = random.Random(7)
    words = WORDS.split()
    pool = [
        "    " * dice.randint(0, 3) + " ".join(dice.choices(words, k=dice.randint(2, 12)))
        for _ in range(20_000)
    ]
    mean = megabytes * 1_000_000 / files
    for number in range(files):
        folder = number // 25
        path = root / f"pkg{folder % 40:02}/mod{folder // 40 % 10}/sub{folder // 400}"
        if not number % 25:
            path.mkdir(parents=True, exist_ok=True)
        lines = dice.choices(pool, k=1 + int(dice.expovariate(1 / mean) / 47))
        if not number % 2500:
            lines.insert(len(lines) // 2, NEEDLE)
        name = f"file_{number}{ENDINGS[number % len(ENDINGS)]}"
        (path / name).write_text("\n".join(lines) + "\n")


def rare_word(root: Path) -> str:
    """A long word of some file that is in few others."""

    def listed(*arguments: str) -> list[str]:
        command = [*PLAIN, *arguments, "./"]
        run = subprocess.run(command, cwd=root, capture_output=True, check=False)
        return os.fsdecode(run.stdout).splitlines()

    if listed("-l", "-e", NEEDLE):
        return NEEDLE
    files = listed("--files", "--sort=path", "--glob=*.{py,md,txt,c,js,go,rs}")
    for name in files[:: max(1, len(files) // 50)]:
        words = re.findall(r"[A-Za-z_]{16,40}", (root / name).read_text("utf-8", "replace"))
        for word in sorted(set(words), key=len)[-3:]:
            if len(listed("-l", "-e", word)) < 20:
                return word
    return NEEDLE


def captured(root: Path, *arguments: str) -> Contender:
    async def run() -> None:
        subprocess.run([*PLAIN, *arguments, "./"], cwd=root, capture_output=True, check=False)

    return run


def stopped(root: Path, lines: int, *arguments: str) -> Contender:
    async def run() -> None:
        with subprocess.Popen(
            [*PLAIN, *arguments, "./"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            for _ in range(lines):
                if not process.stdout.readline():
                    break
            process.kill()

    return run


def listed_and_sorted(root: Path, ending: str) -> Contender:
    """The least that a Glob can do: list the files with ripgrep, then stat and sort the matches."""

    async def run() -> None:
        command = [*PLAIN, "--files", "--null", f"--glob=*{ending}", "./"]
        listed = subprocess.run(command, cwd=root, capture_output=True, check=False).stdout
        paths = [os.path.join(os.fsencode(root), path) for path in listed.split(b"\0")[:-1]]
        found = sorted((-os.stat(path).st_mtime_ns, path) for path in paths)
        _ = found[:100]

    return run


def program(root: Path, *command: str) -> Contender:
    async def run() -> None:
        subprocess.run(command, cwd=root, capture_output=True, check=False)

    return run


def tool(session: Session, name: str, **call_input: object) -> Contender:
    async def run() -> None:
        result = await session.call(name, call_input)
        assert result.ok, result.text

    return run


async def compare(title: str, rounds: int, contenders: dict[str, Contender]) -> None:
    """Every contender in turn, several times; the first is the floor."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    worked: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, contender in contenders.items():
            began, work = time.perf_counter(), cpu_s()
            await contender()
            if turn:
                taken[name].append((time.perf_counter() - began) * 1000)
                worked[name].append((cpu_s() - work) * 1000)
    floor, *others = contenders
    wall, work = statistics.median(taken[floor]), statistics.median(worked[floor])
    shown = f"{floor} {wall:.1f} ms"
    for name in others:
        shown += f"   {name} x{statistics.median(taken[name]) / wall:.2f}"
        shown += f" (best x{min(taken[name]) / min(taken[floor]):.2f}"
        # A short line may cost less processor time than the system's clock can tell.
        shown += f", processor time x{statistics.median(worked[name]) / work:.2f})" if work else ")"
    print(f"{title:40} {shown}", flush=True)


def cpu_s() -> float:
    """Processor time so far, also of children: less troubled by neighbours than the clock."""
    return sum(os.times()[:4])


async def measure(root: Path, rounds: int, home: Path) -> None:
    async with Session(root, home=home) as session:

        def grep(pattern: str, **more: object) -> Contender:
            return tool(session, "Grep", pattern=pattern, **more)

        content = {"output_mode": "content"}
        rare, regex = rare_word(root), r"\w+ import \w+"
        lines = ("-n", "--heading")
        finders = {"fd": shutil.which("fd") or shutil.which("fdfind")}
        rivals = {
            name: program(root, path, "--glob", "*.py") for name, path in finders.items() if path
        }
        for title, contenders in (
            (
                "Glob **/*.py newest first, 100 shown",
                {
                    "rg, stat, sort": listed_and_sorted(root, ".py"),
                    "handaxe": tool(session, "Glob", pattern="**/*.py"),
                    **rivals,
                },
            ),
            (
                "Grep rare literal, files",
                {"rg": captured(root, "-l", "-e", rare), "handaxe": grep(rare)},
            ),
            (
                "Grep what is nowhere, files",
                {"rg": captured(root, "-l", "-e", NOWHERE), "handaxe": grep(NOWHERE)},
            ),
            (
                "Grep common word, files",
                {"rg": captured(root, "-l", "-e", "return"), "handaxe": grep("return")},
            ),
            (
                "Grep rare literal, content",
                {"rg": captured(root, *lines, "-e", rare), "handaxe": grep(rare, **content)},
            ),
            (
                "Grep regex, content, everything",
                {
                    "rg": captured(root, *lines, "-e", "config parser"),
                    "handaxe": grep("config parser", head_limit=0, **content),
                },
            ),
            (
                "Grep regex, count",
                {
                    "rg": captured(root, "-c", "-e", "config parser"),
                    "handaxe": grep("config parser", output_mode="count"),
                },
            ),
            (
                "Grep word, content, first 250",
                {
                    "rg": stopped(root, 250, *lines, "-w", "-e", "return"),
                    "handaxe": grep(r"\breturn\b", **content),
                },
            ),
            (
                "Grep common regex, content, first 250",
                {
                    "rg": stopped(root, 250, *lines, "-e", regex),
                    "handaxe": grep(regex, **content),
                },
            ),
            (
                "Grep with context, first 50",
                {
                    "rg": stopped(root, 50, *lines, "-C2", "-e", "return"),
                    "handaxe": grep("return", head_limit=50, **{"-C": 2}, **content),
                },
            ),
        ):
            await compare(title, rounds, contenders)


async def ten_million(folder: Path, home: Path) -> None:
    """How much memory a page of ten million matches costs."""
    folder.mkdir()
    with (folder / "big.txt").open("w") as file:
        for _ in range(100):
            file.write("a line with a match in it\n" * 100_000)
    async with Session(folder, home=home) as session:
        await session.call("Grep", pattern="no such thing")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for more in ({}, {"offset": 9_000_000}, {"-C": 3}):
            began = time.perf_counter()
            result = await session.call("Grep", pattern="match", output_mode="content", **more)
            took = (time.perf_counter() - began) * 1000
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            lines = result.data["numLines"]
            print(f"10 million matches {more!s:22} {lines} lines, {took:.0f} ms, +{grown:.1f} MB")


async def main() -> None:
    numbers = [int(argument) for argument in sys.argv[1:]]
    files, megabytes, rounds = (*numbers, *(50_000, 500, 5)[len(numbers) :])
    with tempfile.TemporaryDirectory(prefix="handaxe-bench-") as folder:
        root, home = Path(folder, "tree"), Path(folder, "home")
        grow(root, files, megabytes)
        print(f"{files:,} files, {megabytes:,} MB, {rounds} rounds, medians")
        # Peaks of memory only ever grow, so this comes before whatever takes more.
        await ten_million(Path(folder, "big"), home)
        await measure(root, rounds, home)
        if real := os.environ.get("HANDAXE_BENCH_TREE"):
            print(f"\n{real}")
            await measure(Path(real), rounds, home)


if __name__ == "__main__":
    asyncio.run(main())
