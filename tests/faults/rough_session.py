"""One session at work under hard conditions, and what must hold after it.

Run as a script it works in a project and prints the code of every call as JSON. Imported, it
prepares the project, runs the script, and looks whether the next session can go on.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SESSION = "rough-session"
SMALL = [f"{word} beginning\n" + "line\n" * 2_000 for word in ("old", "new", "newer")]
LARGE = [f"{word} beginning\n" + "line\n" * 20_000 for word in ("old", "new")]
"""Above what the undo record holds itself: kept by a second name."""
WHOLE: dict[str, list[str | None]] = {
    "small.txt": [*SMALL],
    "large.txt": [*LARGE],
    "gone.txt": ["still there\n", None],
    "created.txt": [None, "created\n"],
    "patched.txt": [None, "patched\n"],
    # Not written by us: bash creates it before it has something to write.
    "made.txt": [None, "", "made\n"],
}
PATCH = """*** Begin Patch
*** Update File: small.txt
@@
-new beginning
+newer beginning
*** Add File: patched.txt
+patched
*** End Patch
"""
EDIT = {"old_string": "old beginning", "new_string": "new beginning"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("Read", {"file_path": "small.txt"}),
    ("Edit", {"file_path": "small.txt", **EDIT}),
    ("Read", {"file_path": "large.txt", "limit": 3}),
    ("Edit", {"file_path": "large.txt", **EDIT}),
    ("Write", {"file_path": "created.txt", "content": "created\n"}),
    ("ApplyPatch", {"input": PATCH}),
    ("Grep", {"pattern": "newer", "path": "small.txt"}),
    ("Bash", {"command": "rm gone.txt; echo made > made.txt"}),
    ("Undo", {}),
]
REFUSALS = frozenset({"undo.nothing", "undo.conflict", "undo.unknown_call", "undo.pruned"})


@contextmanager
def prepared() -> Generator[tuple[Path, Path]]:
    """A project and a data directory."""
    with tempfile.TemporaryDirectory(prefix="handaxe-rough-") as place:
        project, home = (Path(os.path.realpath(place)) / name for name in ("project", "home"))
        project.mkdir()
        for name in ("small.txt", "large.txt", "gone.txt"):
            (project / name).write_text(WHOLE[name][0] or "")
        yield project, home


def start(
    project: Path,
    home: Path,
    strain: str = "",
    *,
    before: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> "subprocess.Popen[str]":
    """Begin the work in a process of its own, under a strain or behind another program."""
    environment = {**os.environ, "HANDAXE_HOME": str(home), **(variables or {})}
    command = [*before, sys.executable, __file__, str(project), str(home), strain]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def answers(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """What the work came to: codes of calls, the exit status, and what was said beside."""
    said, beside = process.communicate(timeout=120)
    codes = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    return {"codes": codes, "status": process.returncode, "beside": beside[-2000:]}


def without_processes(allowed: int) -> list[str]:
    """A program before the work under which no more than so many processes and threads start.

    The limit of `ulimit -u` does not hold for root, so the calls themselves fail as it makes them.
    """
    calls = "clone,clone3,fork,vfork"
    failing = f"inject={calls}:error=EAGAIN:when={allowed + 1}+"
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", failing]


def problems_after(project: Path, home: Path) -> list[str]:
    """What is wrong after the work ended in whatever way; the next session sets to work."""
    found = [
        f"{name} is torn: {content!r:.80}"
        for name, wholes in WHOLE.items()
        if (content := _text(project / name)) not in wholes
    ]
    return [*found, *asyncio.run(_go_on(project, home)), *_left_behind(project)]


async def _go_on(project: Path, home: Path) -> list[str]:
    """Read, edit and undo in a new session, then undo in the old one."""
    from handaxe import Session

    wrong: list[str] = []
    before = _contents(project)
    async with Session(project, permission_mode="bypassPermissions", home=home) as session:
        edit = {"old_string": "beginning", "new_string": "ending"}
        for name in ("small.txt", "large.txt"):
            for tool, call_input in (("Read", {"limit": 5}), ("Edit", edit), ("Undo", {})):
                named = {} if tool == "Undo" else {"file_path": name}
                result = await session.call(tool, {**call_input, **named})
                if not result.ok:
                    wrong.append(f"next session: {tool} {name}: {result.code} {result.text[:300]}")
        await session.call("Bash", command="echo more > more.txt")
        undone = await session.call("Undo")
        if not undone.ok or _contents(project) != before:
            wrong.append(f"next session left another tree: {undone.text[:300]}")
    return [*wrong, *await _undo_all(project, home)]


async def _undo_all(project: Path, home: Path) -> list[str]:
    """Take back what the strained session did; each step puts whole contents back or says why not."""
    from handaxe import Session

    if not (home / "sessions" / SESSION).is_dir():
        return []
    async with Session(
        project, permission_mode="bypassPermissions", home=home, session_id=SESSION
    ) as session:
        for _ in range(10):
            result = await session.call("Undo")
            torn = [name for name, text in _contents(project).items() if text not in WHOLE[name]]
            if torn or (not result.ok and result.code not in REFUSALS):
                return [f"undo of the old session: {torn} {result.code} {result.text[:300]}"]
            if not result.ok:
                break
    return []


def _contents(project: Path) -> dict[str, str | None]:
    return {name: _text(project / name) for name in WHOLE}


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def _left_behind(project: Path) -> list[str]:
    return [f"left behind: {name}" for name in os.listdir(project) if name not in WHOLE]


def _strain(name: str) -> None:
    """Make this process short of something."""
    kind, _, number = name.partition("=")
    if kind == "files":
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(number), int(number)))
    elif kind == "memory":
        size_pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = size_pages * resource.getpagesize() + int(number)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    elif kind == "allocation":
        import _testcapi

        _testcapi.set_nomemory(int(number), int(number) + 1)


async def _work(project: str, home: str, strain: str) -> None:
    from handaxe import Session

    if strain.startswith("files"):
        _strain(strain)
    async with Session(
        project, permission_mode="bypassPermissions", home=home, session_id=SESSION
    ) as session:
        print("[]", flush=True)
        if not strain.startswith("files"):
            # From here on: a process that cannot even start has nothing to lose.
            _strain(strain)
        for tool, call_input in CALLS:
            result = await session.call(tool, dict(call_input))
            print(json.dumps([tool, result.code]), flush=True)


if __name__ == "__main__":
    asyncio.run(_work(*sys.argv[1:]))
