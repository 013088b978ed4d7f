"""Glob and Grep where there is too much of everything: prints times, memory and what was said.

`python bench/search_large.py [files] [megabytes]` makes a tree of 500,000 files and files of 2 GB
(one sparse, one of lines, one of a single line) in a temporary directory, searches them through a
session, also with a deadline of one second, and removes them again.
"""

import asyncio
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from handaxe import Session

FILES_PER_DIRECTORY = 25


def grow(root: Path, files: int) -> None:
    text = b"def name(value):\n    return value\n"
    for number in range(files):
        folder = number // FILES_PER_DIRECTORY
        path = f"{root}/p{folder % 50:02}/m{folder // 50 % 20:02}/s{folder // 1000:03}"
        if not number % FILES_PER_DIRECTORY:
            os.makedirs(path, exist_ok=True)
        fd = os.open(f"{path}/f{number}.py", os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(fd, text if number % 100_000 else text + b"needle_in_haystack_42\n")
        os.close(fd)


def grow_large_files(root: Path, megabytes: int) -> None:
    root.mkdir()
    with (root / "sparse.bin").open("wb") as file:
        file.truncate(megabytes << 20)
    line = b"a line of the ordinary kind that nobody looks for\n"
    with (root / "lines.txt").open("wb") as file:
        for _ in range(megabytes):
            file.write(line * ((1 << 20) // len(line)))
        file.write(b"needle_in_haystack_42\n")
    with (root / "one_line.txt").open("wb") as file:
        for _ in range(megabytes):
            file.write(b"x" * (1 << 20))
        file.write(b"needle_in_haystack_42\n")


def peak_mb(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


async def show(session: Session, tool: str, **call_input: object) -> None:
    began = time.perf_counter()
    result = await session.call(tool, call_input)
    took_s = time.perf_counter() - began
    own, others = peak_mb(resource.RUSAGE_SELF), peak_mb(resource.RUSAGE_CHILDREN)
    print(f"{tool} {call_input}: {took_s:.2f} s, peak {own:.0f} MB, ripgrep's {others:.0f} MB")
    first, *_ = lines = result.text.split("\n")
    notes = [line for line in lines if line.startswith(("[", "("))]
    print(f"    {first[:100]} ... {' '.join(notes)[:300]}", flush=True)


async def measure(root: Path, home: Path) -> None:
    tree, large = root / "tree", root / "large"
    rare, content = "needle_in_haystack_42", {"output_mode": "content"}
    for timeout_s in (60, 1):
        print(f"\ndeadline {timeout_s} s")
        settings = {"search.timeout_s": timeout_s}
        async with Session(tree, home=home, settings=settings) as session:
            await show(session, "Glob", pattern="**/*.py")
            await show(session, "Grep", pattern=rare)
            await show(session, "Grep", pattern=rare, **content)
            await show(session, "Grep", pattern="return", **content)
            await show(session, "Grep", pattern="return", output_mode="count")
            await show(session, "Grep", pattern="no such text")
        async with Session(large, home=home, settings=settings) as session:
            await show(session, "Grep", pattern=rare)
            for name in ("sparse.bin", "lines.txt", "one_line.txt"):
                await show(session, "Grep", pattern=rare, path=name, **content)


async def main() -> None:
    numbers = [int(argument) for argument in sys.argv[1:]]
    files, megabytes = (*numbers, *(500_000, 2_048)[len(numbers) :])
    with tempfile.TemporaryDirectory(prefix="handaxe-bench-") as folder:
        root = Path(folder)
        grow(root / "tree", files)
        grow_large_files(root / "large", megabytes)
        print(f"{files:,} files; three files of {megabytes:,} MB")
        await measure(root, root / "home")


if __name__ == "__main__":
    asyncio.run(main())
