"""Operations of the product whose crashes are simulated, each with what has to hold afterwards.

`run` acknowledges every call when its result is there, which is the promise that the call lasts.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from disk_model import ACK

Tree = dict[str, bytes]
_SMALL_LINES, _LARGE_LINES = 500, 8_000
MODE = 0o640
_PRUNED_SESSIONS = 8


def small(version: int) -> bytes:
    """A file whose old content fits into the undo record."""
    return b"a small line\n" * _SMALL_LINES + b"version %d\n" % version


def large(version: int) -> bytes:
    """One whose old content is kept by a second name."""
    return b"one of many lines\n" * _LARGE_LINES + b"version %d\n" % version


BEFORE: Tree = {
    "small": small(0),
    "large": large(0),
    "gone": b"to be deleted\n",
    "other": b"left alone\n",
    "deep/er/file": b"far down\n",
}
_PATCHED: Tree = {"small": small(1), "large": large(1), "x/y/added": b"added\n"}
_PATCH = """*** Begin Patch
*** Update File: small
@@
-version 0
+version 1
*** Add File: x/y/added
+added
*** Delete File: gone
*** Update File: large
@@
-version 0
+version 1
*** End Patch"""
_COMMAND = """\
rm gone
echo version 1 > small
rm -r deep
mkdir "$PWD/made"
echo made > made/file
"""
_SECOND_COMMAND = """\
echo version 2 > small
echo more >> made/file
"""


def _without(tree: Tree, *names: str) -> Tree:
    return {name: content for name, content in tree.items() if name not in names}


_AFTER_PATCH = {**_without(BEFORE, "gone"), **_PATCHED}
_AFTER_COMMAND = {
    **_without(BEFORE, "gone", "deep/er/file"),
    "small": b"version 1\n",
    "made/file": b"made\n",
}
VERSIONS: dict[str, list[Tree]] = {
    "replace": [BEFORE, {**BEFORE, "small": small(1)}, {**BEFORE, "small": small(1), "large": large(1)}],
    "create": [BEFORE, {**BEFORE, "x/y/new": b"new\n"}, {**BEFORE, "x/y/new": b"new\n", "top": large(7)}],
    "patch": [BEFORE, _AFTER_PATCH],
    "append": [{**BEFORE, "small": small(version)} for version in range(5)],
    "packs": [
        BEFORE,
        _AFTER_COMMAND,
        {**_AFTER_COMMAND, "small": b"version 2\n", "made/file": b"made\nmore\n"},
    ],
    "prune": [{**BEFORE, "large": large(version)} for version in range(_PRUNED_SESSIONS + 1)],
    "undo": [BEFORE, _AFTER_PATCH],
}  # fmt: skip
"""The files of the project after every change that was ever made, in order."""

BY_COMMAND = {"packs"}
"""Where a command of the user's writes the files."""


def environment(place: Path) -> dict[str, str]:
    """Everything of ours and of the user's lies in the place."""
    return {
        "HOME": str(place / "user"),
        "HANDAXE_HOME": str(place / "home"),
    }


def prepare(operation: str, place: Path) -> None:
    """Files, and the sessions that came before."""
    (place / "user").mkdir()
    project = place / "project"
    for name, content in BEFORE.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(MODE)
    (project / "change.sh").write_text(_COMMAND)
    (project / "again.sh").write_text(_SECOND_COMMAND)
    if operation == "prune":
        for version in range(_PRUNED_SESSIONS):
            asyncio.run(_in_session(place, lambda call, v=version: _edit(call, "large", v)))
    if operation == "undo":
        asyncio.run(_in_session(place, lambda call: _patch(call, acknowledge=False)))
    if operation == "append":
        # A session that was there before and is resumed.
        asyncio.run(_in_session(place, _look, session_id="resumed"))


_Caller = Callable[..., Awaitable[None]]


async def _in_session(
    place: Path, work: Callable[[_Caller], Awaitable[None]], **given: Any
) -> None:
    from handaxe import Session

    project = place / "project"
    async with Session(project, permission_mode="bypassPermissions", **given) as session:

        async def call(tool: str, **arguments: object) -> None:
            result = await session.call(tool, arguments)
            assert result.ok, result.text

        await work(call)


def _acknowledge(what: str) -> None:
    with open(os.devnull, "wb", buffering=0) as nowhere:
        nowhere.write(ACK + what.encode())


async def _look(call: _Caller) -> None:
    await call("Read", file_path="other")


async def _edit(call: _Caller, name: str, version: int) -> None:
    if not version or name == "large":
        await call("Read", file_path=name, offset=-1)
    await call(
        "Edit", file_path=name, old_string=f"version {version}", new_string=f"version {version + 1}"
    )


async def _replace(call: _Caller) -> None:
    for name in ("small", "large"):
        await _edit(call, name, 0)
        _acknowledge(name)


async def _create(call: _Caller) -> None:
    await call("Write", file_path="x/y/new", content="new\n")
    _acknowledge("new")
    await call("Write", file_path="top", content=large(7).decode())
    _acknowledge("top")


async def _patch(call: _Caller, *, acknowledge: bool = True) -> None:
    for name in ("small", "large", "gone"):
        await call("Read", file_path=name, offset=-1)
    await call("ApplyPatch", input=_PATCH)
    if acknowledge:
        _acknowledge("patch")


async def _append(call: _Caller) -> None:
    for version in range(4):
        await _edit(call, "small", version)
        _acknowledge(str(version + 1))


async def _packs(call: _Caller) -> None:
    await call("Bash", command="sh ./change.sh")
    _acknowledge("command")
    await call("Bash", command="sh ./again.sh")
    _acknowledge("second command")


def _prune(place: Path) -> None:
    from handaxe.undo.prune import prune

    size = sum(p.lstat().st_size for p in (place / "home").rglob("*") if p.is_file())
    prune(place / "home", max_bytes=size // 3, retention_days=30)
    _acknowledge("pruned")


async def _undo(place: Path) -> None:
    from handaxe.app.undo_commands import choose_session_to_undo, find_past_sessions
    from handaxe.contract.ports.undo import UndoRequest

    sessions = find_past_sessions(place / "home", root=place / "project")
    result = await choose_session_to_undo(sessions, UndoRequest()).undo(UndoRequest())
    assert result.ok, result.text
    _acknowledge("undone")


def run(operation: str, place: Path) -> None:
    """The operation itself."""
    if operation == "prune":
        _prune(place)
    elif operation == "undo":
        asyncio.run(_undo(place))
    else:
        work = {
            "replace": _replace,
            "create": _create,
            "patch": _patch,
            "append": _append,
            "packs": _packs,
        }[operation]
        given = {"session_id": "resumed"} if operation == "append" else {}
        asyncio.run(_in_session(place, work, **given))
