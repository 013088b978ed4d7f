"""Searches while a link changes places with a file: `scripts/check --long search_races [tries]`.

Prints how many of so many calls of Grep and Glob showed something from outside; 0 is expected.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "search"))

from link_swapper import swapping

from handaxe import Session

CALLS: list[tuple[str, dict[str, object]]] = [
    ("Grep", {"pattern": "secret", "output_mode": "content"}),
    ("Grep", {"pattern": "secret"}),
    ("Grep", {"pattern": "secret", "output_mode": "count"}),
    ("Grep", {"pattern": "s.cret", "output_mode": "content", "-o": True}),
    ("Grep", {"pattern": "s.cret", "output_mode": "content", "multiline": True}),
    ("Grep", {"pattern": "s.cret", "output_mode": "content", "-C": 1}),
    ("Grep", {"pattern": "s.cret|ours", "output_mode": "content", "head_limit": 2, "offset": 1}),
    ("Grep", {"pattern": "s.cret", "ignored": True, "output_mode": "count"}),
    ("Glob", {"pattern": "**/only_outside*"}),
    ("Glob", {"pattern": "d1/**", "ignored": True}),
]
NAMES = {"file": "d1/deep/file", "directory": "d1/deep", "ancestor": "d1"}


def plant(place: Path, swapped: str) -> tuple[Path, Path, Path]:
    """A project, and two names in it to be swapped, one of them a link that leads outside."""
    project, outside = place / "project", place / "outside"
    for top in (outside, outside / "deep"):
        top.mkdir(exist_ok=True)
        (top / "file").write_text("secret\n" * 3)
        (top / "only_outside.txt").write_text("secret\n")
    for number in range(20):
        (project / f"d{number}/deep").mkdir(parents=True)
        (project / f"d{number}/deep/file").write_text("ours\n")
    targets = {"file": "deep/file", "directory": "deep", "ancestor": ""}
    link = project / "link"
    link.symlink_to(outside / targets[swapped])
    return project, project / NAMES[swapped], link


async def race(place: Path, swapped: str, tries: int) -> int:
    project, name, link = plant(place, swapped)
    leaks = 0
    async with Session(project, home=place / "home") as session:
        with swapping(name, link):
            for number in range(tries):
                tool, options = CALLS[number % len(CALLS)]
                result = await session.call(tool, dict(options))
                shown = result.text + str(result.data)
                is_leak = "secret\n" in shown or "only_outside" in shown or "secret'" in shown
                is_counted = (
                    bool(result.ok)
                    and options["pattern"] == "secret"
                    and bool(result.data["numFiles"] or result.data["elsewhere"])
                )
                leaks += is_leak or is_counted
    return leaks


def main(arguments: list[str]) -> int:
    """Run every race; 1 if anything leaked."""
    tries = int(arguments[0]) if arguments else 400
    total = 0
    for swapped in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            leaks = asyncio.run(race(Path(os.path.realpath(folder)), swapped, tries))
        print(f"{swapped:10} swapped: {leaks} of {tries} calls showed something from outside")
        total += leaks
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
