"""A byte of our own records goes bad: nothing is restored wrongly, and work goes on.

uv run python tests/faults/damaged_bytes.py 200        so many positions in each kind of file
uv run python tests/faults/damaged_bytes.py 200 7      from another seed
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from handaxe import Session, ToolCall
from handaxe.contract.faults import SetupError

SESSION = "damaged"
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
KINDS = {
    "log": f"sessions/{SESSION}/events.jsonl",
    "journal": f"sessions/{SESSION}/journal.jsonl",
    "pack": "snapshots/*/*.pack",
    "manifest": "snapshots/*/*.manifest",
    "pin": "pins/*",
}
SMALL = [f"{word} beginning\n" + "line\n" * 100 for word in ("old", "new")]
LARGE = [f"{word} beginning\n" + "line\n" * 20_000 for word in ("old", "new")]
FIRST: dict[str, str | None] = {
    "small": SMALL[0], "large": LARGE[0], "gone": "gone\n", "late": None,
}  # fmt: skip
STEPS: list[dict[str, str | None]] = [
    {"small": SMALL[1]},
    {"large": LARGE[1]},
    {"small": "rewritten\n", "gone": None},
    {"late": "late\n", "large": "late\n"},
]
"""What each call changes: two edits, a command, and a command that is killed with its session."""
_PYTHON = 'python3 -c "import os, time; {}"'
COMMANDS = (
    _PYTHON.format("os.remove('gone'); open('small', 'w').write('rewritten\\n')"),
    _PYTHON.format(
        "[open(name, 'w').write('late\\n') for name in ('late', 'large')];"
        "open('../ready', 'w'); time.sleep(600)"
    ),
)
"""Nobody sees in their words what they write: the whole tree is kept for them."""


class Scene(NamedTuple):
    """A project with a session's records, kept so that it can be had again."""

    place: Path
    calls: tuple[str, ...]

    @property
    def project(self) -> Path:
        return self.place / "project"

    @property
    def home(self) -> Path:
        return self.place / "home"

    def reset(self) -> None:
        """Everything as it was before the damage."""
        for name in ("project", "home"):
            shutil.rmtree(self.place / name)
            shutil.copytree(self.place / f"{name}-kept", self.place / name, symlinks=True)

    def contents(self) -> dict[str, str | None]:
        return {name: _text(self.project / name) for name in FIRST}


@contextmanager
def scene() -> Generator[Scene]:
    """Let a session work and be killed, so that it leaves records of every kind."""
    with tempfile.TemporaryDirectory(prefix="handaxe-damage-", dir=IN_MEMORY) as temporary:
        place = Path(os.path.realpath(temporary))
        (place / "project").mkdir()
        for name, text in FIRST.items():
            if text is not None:
                (place / "project" / name).write_text(text)
        with subprocess.Popen([sys.executable, __file__, "work", place]) as process:
            while not (place / "ready").exists():
                assert process.poll() is None, "the session ended before it was killed"
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)
        for name in ("project", "home"):
            shutil.copytree(place / name, place / f"{name}-kept", symlinks=True)
        calls = tuple((place / "calls").read_text().split())
        yield Scene(place, calls)


def find_files(home: Path, kind: str) -> list[Path]:
    return sorted(path for path in home.glob(KINDS[kind]) if path.stat().st_size)


def damage(path: Path, chance: random.Random) -> str:
    """Change one byte of a file; gives where and how."""
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    before, data[at] = data[at], data[at] ^ (1 << chance.randrange(8))
    mode = path.stat().st_mode
    path.chmod(0o600)
    path.write_bytes(data)
    path.chmod(mode)
    return f"byte {at:,} of {len(data):,}: {before:#x} became {data[at]:#x}"


async def problems_after(damaged: Scene, seen: Counter[str]) -> list[str]:
    """Undo call by call in the damaged session, then work in a new one."""
    wrong: list[str] = []
    try:
        async with Session(
            damaged.project,
            permission_mode="bypassPermissions",
            home=damaged.home,
            session_id=SESSION,
        ) as session:
            session.history()
            for number in reversed(range(len(damaged.calls))):
                before = damaged.contents()
                result = await session.undo(damaged.calls[number], only=True)
                seen[result.code or "undone"] += 1
                wrong += _compare(damaged, number, before, is_undone=result.ok)
    except SetupError as refusal:
        seen[type(refusal).__name__] += 1
    async with Session(
        damaged.project, permission_mode="bypassPermissions", home=damaged.home
    ) as session:
        before = damaged.contents()
        word = "late" if before["large"] == "late\n" else "beginning"
        edit = {"old_string": word, "new_string": "ending"}
        for tool, call_input in (
            ("Read", {"file_path": "large", "limit": 2}),
            ("Edit", {"file_path": "large", **edit}),
            ("Undo", {}),
            ("Bash", {"command": "echo more >> large; echo made > made"}),
            ("Undo", {}),
        ):
            result = await session.call(tool, call_input)
            if not result.ok:
                wrong.append(f"the next session: {tool}: {result.code}: {result.text[:300]}")
        if damaged.contents() != before:
            wrong.append("the next session did not come back to what it found")
    left = set(os.listdir(damaged.project)) - set(FIRST)
    return [*wrong, *(f"left behind: {name}" for name in left)]


def _compare(
    damaged: Scene, number: int, before: dict[str, str | None], *, is_undone: bool
) -> list[str]:
    """An undo puts back exactly what the call changed, or nothing at all."""
    expected = dict(before)
    if is_undone:
        for name in STEPS[number]:
            expected[name] = _content_before(number, name)
    found = damaged.contents()
    return [
        f"undo of step {number} (ok: {is_undone}): {name} is {found[name]!r:.60}"
        for name in expected
        if found[name] != expected[name]
    ]


def _content_before(number: int, name: str) -> str | None:
    for step in reversed(STEPS[:number]):
        if name in step:
            return step[name]
    return FIRST[name]


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return None


async def _work(place: Path) -> None:
    async with Session(
        place / "project",
        permission_mode="bypassPermissions",
        home=place / "home",
        session_id=SESSION,
    ) as session:
        edit = {"old_string": "old beginning", "new_string": "new beginning"}
        for name in ("small", "large"):
            await session.call("Read", file_path=name, limit=2)
            assert (await session.call("Edit", {"file_path": name, **edit})).ok
        assert (await session.call("Bash", command=COMMANDS[0])).ok
        calls = [changed.call_id for changed in session.history()]
        (place / "calls").write_text(" ".join([*calls, "killed"]))
        await session.run(ToolCall("killed", "Bash", {"command": COMMANDS[1]}))


def run(positions: int, seed: int = 1) -> Iterator[tuple[str, Counter[str]]]:
    """Damage so many bytes of each kind of file; raises on the first wrong outcome."""
    chance = random.Random(seed)
    with scene() as damaged:
        for kind in KINDS:
            seen: Counter[str] = Counter()
            for _ in range(positions):
                damaged.reset()
                files = find_files(damaged.home, kind)
                assert files, f"there is no {kind}"
                file = chance.choice(files)
                how = damage(file, chance)
                wrong = asyncio.run(problems_after(damaged, seen))
                assert not wrong, f"{kind} {file.name}, seed {seed}, {how}: {wrong}"
            yield kind, seen


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["work"]:
        asyncio.run(_work(Path(arguments[1])))
        return
    positions, seed = (int(argument) for argument in [*arguments, "50", "1"][:2])
    for kind, seen in run(positions, seed):
        print(f"{kind}: {positions} positions, {dict(seen)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
