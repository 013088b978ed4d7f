"""How much memory Grep takes for a file with one very long line, ripgrep included.

`python bench/grep_memory.py [megabytes ...]` (4 and 500 if left out) makes the files in a
temporary directory, runs every kind of search in a process of its own, and prints the highest
resident memory of that process and its children above what it had when the session was idle.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Self

from handaxe import Session

LOOK_S = 0.0005
LIMIT_MB = 40
PATTERNS = (".", "a", "a+", "^.*$", "in_no_file_at_all", r"\bxyz\b")
MODES: dict[str, dict[str, object]] = {
    "files": {},
    "count": {"output_mode": "count"},
    "content": {"output_mode": "content"},
    "content -C 2": {"output_mode": "content", "-C": 2},
    "content -o": {"output_mode": "content", "-o": True},
    "content multiline": {"output_mode": "content", "multiline": True},
    "count multiline": {"output_mode": "count", "multiline": True},
    "content, the file": {"output_mode": "content", "path": "long.txt"},
    "content, everything": {"output_mode": "content", "head_limit": 0},
}


def resident_mb(pid: int) -> float:
    """What a process has in memory, mapped files included; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def children(pid: int) -> list[int]:
    """Its children; one that is about to become ripgrep still has the memory of its parent."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        pass
    return [child for child in found if program(child) != program(pid)]


def program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


class Peak:
    """Looks at a process and its children all the time."""

    def __init__(self, pid: int, idle_mb: float) -> None:
        self._pid = pid
        self._idle_mb = idle_mb
        self._is_over = threading.Event()
        self.above_mb = 0.0
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.is_set():
            children_mb = sum(map(resident_mb, children(self._pid)))
            above = resident_mb(self._pid) - self._idle_mb + children_mb
            self.above_mb = max(self.above_mb, above)
            time.sleep(LOOK_S)


async def search(folder: str, mode: str, pattern: str) -> None:
    """One search in this process, after a signal that the session is idle."""
    async with Session(Path(folder, "tree"), home=Path(folder, "home")) as session:
        print("idle", flush=True)
        sys.stdin.readline()
        began = time.perf_counter()
        result = await session.call("Grep", {"pattern": pattern, **MODES[mode]})
        took_s = time.perf_counter() - began
        data: dict[str, Any] = result.data if result.ok else {}
        shown = data.get("numMatches", data.get("totalFiles", 0))
        is_complete = "" if data.get("isComplete", True) else " (out of time)"
        print(f"{took_s:7.2f} s  {shown} found{is_complete}" if result.ok else result.text)


def measure(folder: str, mode: str, pattern: str) -> float:
    command = [sys.executable, __file__, "search", folder, mode, pattern]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        idle_mb = resident_mb(process.pid)
        with Peak(process.pid, idle_mb) as peak:
            process.stdin.write("\n")
            process.stdin.flush()
            said = process.stdout.readline().rstrip()
    mark = "  <-- too much" if peak.above_mb > LIMIT_MB else ""
    print(
        f"{mode:20} {pattern:18} idle {idle_mb:5.1f} MB  +{peak.above_mb:6.1f} MB {said}{mark}",
        flush=True,
    )
    return peak.above_mb


def main() -> None:
    if sys.argv[1:2] == ["search"]:
        asyncio.run(search(*sys.argv[2:]))
        return
    for megabytes in [int(argument) for argument in sys.argv[1:]] or [4, 500]:
        with tempfile.TemporaryDirectory(prefix="handaxe-bench-") as folder:
            tree = Path(folder, "tree")
            tree.mkdir()
            (tree / "other.txt").write_text("a\nxyz\n")
            with (tree / "long.txt").open("wb") as file:
                file.write(b"first line\n")
                for _ in range(megabytes):
                    file.write(b"abcdefgh xyz 123" * (1 << 16))
                file.write(b"\nlast line\n")
            print(f"a line of {megabytes} MB")
            most = max(measure(folder, mode, pattern) for mode in MODES for pattern in PATTERNS)
            print(f"at most {most:.1f} MB above an idle session; {LIMIT_MB} MB are allowed\n")


if __name__ == "__main__":
    main()
