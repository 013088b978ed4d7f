"""The whole agent as a process, against a model server on loopback, beside whichever rivals are here.

    uv run python bench/agent_cli.py                      # 5 rounds, everybody who is installed
    uv run python bench/agent_cli.py --rounds 3 --files 2000 --only handaxe codex

A round runs each contender twice, in a small project and in the tree of search.py: the time from spawning
it to its first request, and from each answer with a call to the request that carries the result. The
model asks for every kind of call three times; the first of each kind stands in a row of its own, because
it also loads what the tool needs. Floors are taken in the same round: a Python that only imports asyncio,
and `rg` on the same trees. Memory is the most that the process and its children held at once, in the
small project. See rivals.py for who can take part.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conversation import ConversationFailed, converse
from rivals import LINES, SEARCH_LINES, Contender, Wanted, Work, contenders
from search import NEEDLE, RG, grow

PASSES = 3
FIRST = "spawn to first request"
GREP = "grep rare"
MEMORY = "resident memory, MB"
SMALL, LARGE = "small tree", "50,000 files, 500 MB"
GOALS = {
    FIRST: "1.2 x codex, 0.25 x others",
    "unknown tool": "5",
    "shell true": "12",
    "read 2,000 lines": "12",
    "write 10 KB": "10",
    "edit in 10 KB": "8",
    "grep rare, small tree": "1.15 x rg",
    GREP: "1.15 x rg",
    MEMORY: "80",
}
_LINE = "line of text %d, about fifty characters long, really\n"

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


async def one_round(contender: Contender, root: Path, large: Path, home: Path) -> Times:
    """Every line, in milliseconds; memory in MB.

    Raises:
        ConversationFailed: it did not do the work.
    """
    for left in root.glob("new-*.txt"):
        left.unlink()
    asked = works(root)
    talk = await converse(
        contender, [c for work in asked for c in contender.spell(work)], root, home
    )
    if problem := unfinished(asked, talk.heard):
        raise ConversationFailed(f"{contender.name}: {problem}. It said: {talk.said}")
    times: Times = {FIRST: [talk.first_ms], MEMORY: [talk.memory_mb]}
    for number, taken in enumerate(talk.calls_ms):
        line = LINES[number % len(LINES)]
        times.setdefault(line if number >= len(LINES) else f"{line}, first", []).append(taken)
    rare = contender.spell_search(Wanted(NEEDLE, "", ""))[SEARCH_LINES.index("rare files")]
    talk = await converse(contender, [rare] * PASSES, large, home)
    if b"file_2500." not in talk.heard:
        raise ConversationFailed(f"{contender.name}: {NEEDLE} was not found. It said: {talk.said}")
    times[GREP], times[f"{GREP}, first"] = talk.calls_ms[1:], talk.calls_ms[:1]
    return times


def unfinished(asked: list[Work], heard: bytes) -> str:
    """What was not done, as files and the model's own history show; empty if all was."""
    for number, work in enumerate(asked):
        path = Path(work.new)
        if not path.exists() or not path.read_text().endswith(work.replacement):
            return f"{path.name} is not what it should be"
        if b"rare-%d.py" % number not in heard:
            return f"{work.needle} was not found"
        if b"opening words of long-%d" % number not in heard:
            return f"{work.long} was not read"
    return ""


def floors(root: Path, large: Path) -> Times:
    """The same machine without any agent."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
    times = {"floor: python + asyncio": [(time.perf_counter() - began) * 1000]}
    for line, needle, place in (
        (f"floor: rg, {SMALL}", "needle_0_in_it", root),
        (f"floor: rg, {LARGE}", NEEDLE, large),
    ):
        began = time.perf_counter()
        subprocess.run([RG, "-l", needle, str(place)], check=False, capture_output=True)
        times[line] = [(time.perf_counter() - began) * 1000]
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


def measure(
    taking_part: list[Contender], root: Path, large: Path, homes: Path, rounds: int
) -> dict[str, Times]:
    """All rounds of all contenders, taken in turns; whoever fails is named and left out."""
    found: dict[str, Times] = {one.name: {} for one in taking_part}
    for number in range(rounds + 1):
        for one in [one for one in taking_part if one.name in found]:
            try:
                times = asyncio.run(one_round(one, root, large, homes / one.name))
            except ConversationFailed as error:
                print(error, file=sys.stderr)
                del found[one.name]
                continue
            # The first round only warms up.
            if number:
                for line, values in times.items():
                    found[one.name].setdefault(line, []).extend(values)
        if number:
            for line, values in floors(root, large).items():
                found.setdefault("floors", {}).setdefault(line, []).extend(values)
    return found


def show(found: dict[str, Times]) -> None:
    """Medians, the best in brackets."""
    floor = found.pop("floors")
    print(f"{'ms, median (best)':28}" + "".join(f"{name:>18}" for name in found) + "   goal")
    every = (GREP, *LINES)
    for line in (FIRST, *every, *(f"{line}, first" for line in every), MEMORY):
        row = "".join(f"{_cell(times[line]):>18}" for times in found.values())
        print(f"{line:28}{row}   {GOALS.get(line, '')}")
    for line, values in floor.items():
        print(f"{line:28}{_cell(values):>18}")


def _cell(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=2000, help="of the small tree")
    parser.add_argument("--only", nargs="+", default=None, help="names of contenders")
    given = parser.parse_args()
    taking_part = [one for one in contenders() if not given.only or one.name in given.only]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        root, large, homes = (Path(place, name) for name in ("project", "large", "homes"))
        root.mkdir()
        make_tree(root, given.files)
        grow(large, 50_000, 500)
        show(measure(taking_part, root, large, homes, given.rounds))


if __name__ == "__main__":
    main()
