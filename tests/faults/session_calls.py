"""The order of a session's own syncs, from the system-call trace of whole calls.

    uv run python tests/faults/session_calls.py

What is needed to undo a change is durable before anything in the project changes; the new name
is durable before the result stands in the event log.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CALLS = ("create", "create below", "edit", "edit large")
_LINE = re.compile(r"(?P<thread>\d+) +(?P<text>.*)")


class Step(NamedTuple):
    """One system call of any thread: when it began, when it ended, what it said."""

    name: str
    text: str
    began: int
    ended: int


def trace(call: str, place: Path) -> list[Step]:
    """The system calls of one call in a fresh session, with the paths of descriptors."""
    out = place / "trace"
    strace = ["strace", "-f", "-y", "-qq", "-s", "120", "-o", str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [*strace, sys.executable, __file__, "--victim", call, str(place)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    steps = list(_steps(out.read_text(errors="replace").splitlines()))
    marks = [step.began for step in steps if step.name == "sched_yield"]
    return [step for step in steps if marks[0] < step.began < marks[1]]


def _steps(lines: list[str]) -> Iterator[Step]:
    waiting: dict[str, tuple[int, str]] = {}
    for at, line in enumerate(lines):
        found = _LINE.match(line)
        if found is None:
            continue
        thread, text = found["thread"], found["text"]
        if text.endswith("<unfinished ...>"):
            waiting[thread] = at, text
        elif text.startswith("<... ") and thread in waiting:
            began, head = waiting.pop(thread)
            yield Step(head.partition("(")[0], head + text, began, at)
        elif "(" in text:
            yield Step(text.partition("(")[0], text, at, at)


def problems(steps: list[Step], place: Path) -> list[str]:
    """What is wrong with the order of the calls."""
    project = str(place / "project")
    changes = [s for s in steps if s.name.startswith("rename") and ".handaxe-" in s.text]
    if len(changes) != 1:
        return [f"there are {len(changes)} renames of a temporary file"]
    first = min((s for s in steps if s.name.startswith("mkdir") and project in s.text),
                default=changes[0], key=lambda s: s.began)  # fmt: skip
    wrong: list[str] = []
    if not _is_synced(steps, r"write\(\d+<[^>]*journal\.jsonl>.*before", "journal.jsonl", first):
        wrong.append("the undo record is not durable before the first change")
    pinned = any(s.name.startswith("link") and "/pins/" in s.text for s in steps)
    if pinned and not _is_synced(steps, r"link(at)?\(.*/pins/", "/pins", first):
        wrong.append("the kept old content is not durable before the first change")
    told = [s for s in steps if re.match(r"write\(\d+<[^>]*events\.jsonl>", s.text)]
    parent = re.search(r"<([^>]*)>", changes[0].text)
    if not (told and parent) or not _is_synced(
        steps, r"rename", parent[1], told[-1], begun_after=changes[0]
    ):
        wrong.append("the new name is not durable before the result is told")
    return wrong


def _is_synced(
    steps: list[Step], written: str, file: str, before: Step, *, begun_after: Step | None = None
) -> bool:
    """Whether what was last written is followed by a sync of the file that ends in time."""
    writes = [s for s in steps if re.match(written, s.text) and s.ended <= before.began]
    after = begun_after or (writes[-1] if writes else None)
    return after is not None and any(
        s.name in {"fsync", "fdatasync"}
        and re.search(rf"{re.escape(file)}[^>/]*>", s.text.partition("\n")[0])
        and s.text.rstrip().endswith("= 0")
        and after.ended < s.began
        and s.ended < before.began
        for s in steps
    )


async def _victim(call: str, place: Path) -> None:
    from handaxe import Session

    project = place / "project"
    size = 200_000 if call == "edit large" else 2_000
    (project / "old.txt").write_text("".join(f"line {n}\n" for n in range(size // 8)))
    async with Session(project, permission_mode="acceptEdits") as session:
        # Everything lazy happens now, so that the trace between the marks is one call alone.
        assert (await session.call("Read", file_path="old.txt")).ok
        assert (await session.call("Write", file_path="warm.txt", content="x")).ok
        os.sched_yield()
        if call.startswith("create"):
            name = "a/b/new.txt" if call == "create below" else "new.txt"
            result = await session.call("Write", file_path=name, content="new\n" * 2_500)
        else:
            result = await session.call(
                "Edit", file_path="old.txt", old_string="line 7\n", new_string="changed\n"
            )
        os.sched_yield()
        assert result.ok, result.text


def check(call: str) -> list[str]:
    """What is wrong with one call."""
    with tempfile.TemporaryDirectory(prefix="handaxe-faults-") as directory:
        place = Path(os.path.realpath(directory))
        (place / "project").mkdir()
        os.environ["HANDAXE_HOME"] = str(place / "home")
        return problems(trace(call, place), place)


def main() -> int:
    wrong = {call: check(call) for call in CALLS}
    print(wrong)
    return any(wrong.values())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--victim"]:
        asyncio.run(_victim(sys.argv[2], Path(sys.argv[3])))
    else:
        sys.exit(main())
