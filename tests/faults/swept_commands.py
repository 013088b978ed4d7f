"""Whole commands of the program for the fault sweep, each in a place prepared for it."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import crash_operations
from crash_checks import Expected
from crash_operations import Tree

if TYPE_CHECKING:
    from handaxe import Session

MODE = crash_operations.MODE
CLOSE = ("close",)
"""Not typed: a program that ends its session."""
_SESSION = "swept"
_OTHER: Tree = {"other": b"left alone\n"}
_TREE: Tree = {f"tree/{n % 4}/file-{n}": b"content %d\n" % n for n in range(24)}
_SIZES = {"edit-10k": 10 << 10, "edit-100k": 100 << 10, "edit-5m": 5 << 20}


def sized(size: int, version: int) -> bytes:
    """So many bytes of text, the last line of which tells the version."""
    return b"one of the lines\n" * (size // 17) + b"version %d\n" % version


def _notebook(source: str) -> bytes:
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "first",
        "metadata": {},
        "outputs": [],
        "source": [source],
    }
    whole = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(whole, indent=1) + "\n").encode()


class Command(NamedTuple):
    """One command, what it finds and what it makes of it."""

    before: Tree
    words: tuple[str, ...]
    """What is typed after `handaxe`."""
    expected: Expected
    prepare: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Calls of an earlier session, which the command may resume."""
    undone: bool = False
    """What they changed was undone."""
    is_dead: bool = False
    """That session was not closed, and its last call broke off."""


def _forward(*versions: Tree, **more: Any) -> Expected:
    return Expected(versions, versions, **more)


def _call(tool: str, **given: object) -> tuple[str, ...]:
    words = ("call", tool, json.dumps(given), "--json", "--permission-mode", "bypassPermissions")
    return (*words, "--session-id", _SESSION)


def _edit(name: str = "file", version: int = 0) -> dict[str, object]:
    return {
        "file_path": name,
        "old_string": f"version {version}",
        "new_string": f"version {version + 1}",
    }


def _read(*names: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple(("Read", {"file_path": name, "offset": -1}) for name in names)


def _edit_of(size: int) -> Command:
    before = {**_OTHER, "file": sized(size, 0)}
    after = {**_OTHER, "file": sized(size, 1)}
    return Command(before, _call("Edit", **_edit()), _forward(before, after), _read("file"))


_BEFORE_PATCH: Tree = {**_OTHER, "a": sized(4000, 0), "b": sized(90_000, 0), "c": b"gone\n"}
_AFTER_PATCH: Tree = {**_OTHER, "a": sized(4000, 1), "b": sized(90_000, 1)}
_PATCH = {
    "input": "*** Begin Patch\n*** Update File: a\n@@\n-version 0\n+version 1\n"
    "*** Update File: b\n@@\n-version 0\n+version 1\n*** Delete File: c\n*** End Patch"
}
_PATCHED = (*_read("a", "b", "c"), ("ApplyPatch", _PATCH))
_EDITS = tuple(
    call
    for version in range(3)
    for call in (*_read("file"), ("Edit", _edit(version=version)))
)  # fmt: skip
_FILE = {version: {**_OTHER, "file": sized(90_000, version)} for version in range(5)}
_NOTEBOOK: dict[str, object] = {
    "notebook_path": "n.ipynb",
    "cell_id": "first",
    "new_source": "second = 2",
}

COMMANDS: dict[str, Command] = {
    **{name: _edit_of(size) for name, size in _SIZES.items()},
    "patch": Command(
        _BEFORE_PATCH,
        _call("ApplyPatch", **_PATCH),
        _forward(_BEFORE_PATCH, _AFTER_PATCH),
        _read("a", "b", "c"),
    ),
    "notebook": Command(
        {**_OTHER, "n.ipynb": _notebook("first = 1")},
        _call("NotebookEdit", **_NOTEBOOK),
        _forward(
            {**_OTHER, "n.ipynb": _notebook("first = 1")},
            {**_OTHER, "n.ipynb": _notebook("second = 2")},
        ),
        _read("n.ipynb"),
    ),
    "rm": Command(
        {**_OTHER, **_TREE},
        _call("Bash", command="rm -rf tree"),
        _forward({**_OTHER, **_TREE}, _OTHER, by_command=True),
    ),
    "undo": Command(
        _BEFORE_PATCH,
        ("undo", "--json"),
        Expected((_AFTER_PATCH, _BEFORE_PATCH), (_BEFORE_PATCH, _AFTER_PATCH)),
        _PATCHED,
    ),
    "redo": Command(
        _BEFORE_PATCH,
        ("undo", "--redo", "--json"),
        _forward(_BEFORE_PATCH, _AFTER_PATCH, redoes=True),
        _PATCHED,
        undone=True,
    ),
    "gc": Command(
        _FILE[0],
        ("gc", "--json", "--settings", '{"undo": {"max_bytes": 100000}}'),
        Expected((_FILE[3],), tuple(_FILE.values()), may_be_pruned=True),
        _EDITS,
    ),
    "resume": Command(
        _FILE[0],
        _call("Edit", **_edit(version=3)),
        Expected((_FILE[3], _FILE[4]), tuple(_FILE.values())),
        (*_EDITS, *_read("file")),
        is_dead=True,
    ),
    "close": Command(_FILE[0], CLOSE, Expected((_FILE[3],), tuple(_FILE.values())), _EDITS),
}


def prepare(command: Command, place: Path) -> None:
    """The files, and what was called before."""
    (place / "user").mkdir()
    for name, content in command.before.items():
        path = place / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(MODE)
    if command.prepare and command.words != CLOSE:
        asyncio.run(_call_all(command, place / "project"))


async def _call_all(command: Command, project: Path) -> "Session":
    from handaxe import Session

    session = Session(project, permission_mode="bypassPermissions", session_id=_SESSION)
    for tool, given in command.prepare:
        result = await session.call(tool, given)
        assert result.ok, result.text
    if command.undone:
        assert (await session.undo()).ok
    if not command.is_dead and command.words != CLOSE:
        await session.close()
    return session


def start(command: Command, place: Path, told: int) -> Callable[[], int]:
    """What the program does to run the command, its output to a descriptor; gives the exit code."""
    from handaxe.frontends.cli.main import run as run_program

    os.chdir(place / "project")
    os.dup2(told, 1)
    os.dup2(told, 2)
    if command.words != CLOSE:
        return lambda: run_program(list(command.words))
    loop = asyncio.new_event_loop()
    session = loop.run_until_complete(_call_all(command, place / "project"))

    def close() -> int:
        loop.run_until_complete(session.close())
        return 0

    return close
