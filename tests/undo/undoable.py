"""A project whose changes are made by calls, each in a process of its own that may be killed."""

import asyncio
import atexit
import gc
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

from handaxe import Effects, Session, tool
from handaxe.contract.decision import Allow, PermissionRequest
from handaxe.disk import temp_files as renames

KILLING_CALLS = (
    "chmod", "close", "fchmod", "fdatasync", "fsync", "link", "mkdir", "open", "rename", "replace",
    "rmdir", "symlink", "unlink", "write", "writev", "rename_new",
)  # fmt: skip
"""All are of `os`, but the last."""
RENAMES = ("rename", "replace", "rename_new")
TEMPORARY = (".handaxe-",)
UNDO = "(undo)"
"""Names an undo by the owner of the session among calls."""
NOTEBOOK = """{
 "cells": [{"cell_type": "code", "id": "c", "metadata": {}, "source": [], "outputs": [],
            "execution_count": null}],
 "metadata": {}, "nbformat": 4, "nbformat_minor": 5
}
"""
_now = time.time


@tool(effects=lambda args: Effects.on(args.path))
async def set_mode(path: Annotated[str, "Where."], mode: Annotated[int, "Bits."]) -> str:
    """Change permission bits."""
    os.chmod(path, mode)
    return "done"


@tool(effects=lambda args: Effects.on(args.path))
async def remove(path: Annotated[str, "Where."]) -> str:
    """Delete a file."""
    os.unlink(path)
    return "done"


@tool(effects=lambda args: Effects.on(args.path))
async def overwrite(path: Annotated[str, "Where."], content: Annotated[str, "What."]) -> str:
    """Write into a file where it stands, as careless programs do."""
    Path(path).write_text(content)
    return "done"


@tool(effects=lambda args: Effects.on(args.path))
async def make_link(path: Annotated[str, "Where."], target: Annotated[str, "To what."]) -> str:
    """Put a symbolic link in the place of whatever is there."""
    Path(path).unlink(missing_ok=True)
    os.symlink(target, path)
    return "done"


@tool(effects=lambda args: Effects.on(args.path, args.to))
async def move(path: Annotated[str, "From."], to: Annotated[str, "To."]) -> str:
    """Rename a file."""
    os.rename(path, to)
    return "done"


@tool(effects=lambda args: Effects.on(args.path))
async def shake(path: Annotated[str, "A directory."]) -> str:
    """Change a whole tree: one file goes, one comes, one changes."""
    files = sorted(p for p in Path(path).rglob("*") if p.is_file() and not p.is_symlink())
    if files:
        files[0].unlink()
    if len(files) > 1:
        files[1].write_text("shaken\n")
    (Path(path) / "fresh" / "deep").mkdir(parents=True, exist_ok=True)
    (Path(path) / "fresh" / "deep" / "new.txt").write_text("new\n")
    return "done"


OWN_TOOLS = [set_mode, remove, overwrite, make_link, move, shake]


async def _agree(request: PermissionRequest) -> Allow:
    """Removing what lies below /dev always asks, and the projects here lie in memory."""
    return Allow("a test")


def open_session(root: Path, home: Path, session_id: str = "undoable") -> Session:
    return Session(
        root,
        permission_mode="bypassPermissions",
        tools=["Read", "Write", "Edit", "NotebookEdit", "ApplyPatch", "Bash", "Undo", *OWN_TOOLS],
        home=home,
        session_id=session_id,
        settings={"undo": {"shell_ahead": False}},
        on_ask=_agree,
    )


def tree(root: Path) -> dict[str, tuple]:
    """All that is below a directory: bytes, modes, links, directories."""
    found: dict[str, tuple] = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        name = str(path.relative_to(root))
        if path.name.startswith(TEMPORARY):
            continue
        if stat.S_ISLNK(info.st_mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISDIR(info.st_mode):
            found[name] = ("directory",)
        else:
            found[name] = ("file", stat.S_IMODE(info.st_mode), path.read_bytes())
    return found


def in_a_process(
    root: Path,
    home: Path,
    calls: list[tuple[str, dict]],
    kill_at: int | None,
    killing: Sequence[str] = KILLING_CALLS,
    *,
    from_start: bool = False,
    session_id: str = "undoable",
    clock_s: float = 0,
) -> bool:
    """Make calls in a process that is killed at its n-th change of the disk; whether it lived.

    Changes count from the last call on, or `from_start`: from the opening of the session on.
    `clock_s` is how wrong its clock is.
    """
    request = {
        "root": str(root),
        "home": str(home),
        "calls": calls,
        "kill_at": kill_at,
        "killing": list(killing),
        "from_start": from_start,
        "session_id": session_id,
        "clock_s": clock_s,
        "environment": dict(os.environ),
    }
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline().strip()
    assert answer in {"lived", "killed"}, answer
    return answer == "lived"


@cache
def _server() -> subprocess.Popen[str]:
    """A process without threads, so that it can fork, which has imported everything already."""
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def stop() -> None:
        for pipe in (server.stdin, server.stdout):
            if pipe is not None:
                pipe.close()
        server.wait()

    atexit.register(stop)
    return server


def warm_up() -> None:
    """Import and build what calls need, so that no fork has to."""
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/file"
        calls = [
            ("Write", {"file_path": path, "content": "one"}),
            ("Bash", {"command": f"sh -c 'echo two >> {path}'"}),
            (UNDO, {}),
        ]
        request = {"root": place, "home": f"{place}/home", "calls": calls, "kill_at": None}
        asyncio.run(_make(request | {"session_id": "ahead", "from_start": False}))
    # Threads of the disk wait for work; a fork has none of them, and knows that.
    others = {thread.name for thread in threading.enumerate()} - {"handaxe-disk"}
    assert others == {threading.main_thread().name}
    gc.freeze()


def serve() -> None:
    """Answer one request per line, each in a fork."""
    warm_up()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                # Where the key of the records is differs from test to test.
                os.environ.update(request["environment"])
                shift_clock(request["clock_s"])
                asyncio.run(_make(request))
                code = 0
            except BaseException as error:  # noqa: BLE001 - a child that returns would serve as well
                sys.excepthook(type(error), error, error.__traceback__)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        lived = "lived" if os.WIFEXITED(status) and not os.WEXITSTATUS(status) else "failed"
        sys.stdout.write(("killed" if os.WIFSIGNALED(status) else lived) + "\n")
        sys.stdout.flush()


async def _make(request: dict[str, Any]) -> None:
    root, home, calls = Path(request["root"]), Path(request["home"]), request["calls"]
    if request["from_start"]:
        _die_at(request["kill_at"], request["killing"])
    async with open_session(root, home, request["session_id"]) as session:
        for name, call_input in calls[:-1]:
            await session.call(name, call_input)
        if request["kill_at"] is not None and not request["from_start"]:
            _die_at(request["kill_at"], request["killing"])
        name, call_input = calls[-1]
        if name == UNDO:
            await session.undo(**call_input)
        else:
            await session.call(name, call_input)


def shift_clock(seconds: float) -> None:
    """Make the time of day wrong for this process."""
    time.time = lambda: _now() + seconds


def _die_at(number: int, killing: list[str]) -> None:
    left = number

    def watched(real):
        def call(*args, **kwargs):
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    for name in killing:
        if name == "rename_new":
            exclusive = watched(renames._load_exclusive_rename())
            renames._load_exclusive_rename = partial(lambda real: real, exclusive)
        else:
            setattr(os, name, watched(getattr(os, name)))


if __name__ == "__main__":
    serve()
