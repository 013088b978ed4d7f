"""What has to hold of a project after a crash, checked by going on to work in it."""

import asyncio
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from crash_operations import BY_COMMAND, MODE, VERSIONS, Tree

from handaxe.contract.faults import SetupError
from handaxe.contract.ports.undo import UndoRequest


class Problem(NamedTuple):
    """One thing that does not hold after a crash."""

    kind: str
    """torn, lost, next, undo, unsaid, leftover or died."""
    text: str


_REFUSED = {"undo.conflict", "undo.ambiguous"}
_NAMED = re.compile(r"the call '(\w+)'")
_DOUBT = "a crash interrupted the call, and the file was written long after"
SCRIPTS = {"change.sh", "again.sh"}
_MAY_BE_PRUNED = {"undo.pruned", "undo.nothing", "undo.conflict", "setup"}
"""A record between two others may be the one that is gone: then the older one is in conflict."""


class Expected(NamedTuple):
    """What may be found, and where undo leads."""

    passed: Sequence[Tree]
    """The versions that the operation goes through, one for every acknowledged call."""
    versions: Sequence[Tree]
    """Those that undo leads through, the oldest first."""
    by_command: bool = False
    """Nobody syncs what a command of the user's writes: it may be torn, and is still undone."""
    may_be_pruned: bool = False
    undoes: bool = False
    redoes: bool = False
    mode: int = MODE


def check(
    expected: Expected, place: Path, said: int, unknown: Collection[str], *, undo_first: bool
) -> Iterator[Problem]:
    """What is wrong after a crash, when so many calls had been acknowledged.

    `unknown` are temporary files of which no record had reached the device.
    """
    project = place / "project"
    yield from _whole(expected, project, said)
    if undo_first:
        yield from _go_back(expected, place)
        yield from _redo(expected, place) if expected.undoes and said else ()
    yield from _next_session(expected, place)
    if not undo_first:
        yield from _go_back(expected, place)
    yield from _tidy(expected, project, unknown)


def expected_of(operation: str) -> Expected:
    """What holds for one of the recorded operations."""
    versions = VERSIONS[operation]
    if operation == "undo":
        return Expected(versions[::-1], versions, undoes=True)
    if operation == "prune":
        return Expected(versions[-1:], versions, may_be_pruned=True)
    return Expected(versions, versions, by_command=operation in BY_COMMAND)


def read_project(project: Path) -> Tree:
    """The files of the project, without ours and those of the test."""
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in sorted(project.rglob("*"))
        if path.is_file() and path.name not in SCRIPTS and not _is_ours(path.name)
    }


def _is_ours(name: str) -> bool:
    return name.startswith(".handaxe-")


def _whole(expected: Expected, project: Path, said: int) -> Iterator[Problem]:
    """Every file is old or new, and what was acknowledged is there."""
    if expected.by_command:
        return
    passed = expected.passed
    now = read_project(project)
    had, coming = (passed[min(at, len(passed) - 1)] for at in (said, said + 1))
    for name in sorted({*now, *had, *coming}):
        content = now.get(name)
        if content in (had.get(name), coming.get(name)):
            continue
        is_older = any(content == version.get(name) for version in passed)
        yield Problem("lost" if is_older else "torn", f"{name}: {_shown(content)}, {said} said")


def _shown(content: bytes | None) -> str:
    return "absent" if content is None else f"{len(content)} bytes, ends {content[-12:]!r}"


def _next_session(expected: Expected, place: Path) -> Iterator[Problem]:
    """A new session reads and edits what the operation was about, and undoes that."""
    project = place / "project"
    before = read_project(project)
    versions = expected.versions
    about = [name for name in before if any(v.get(name) != versions[0].get(name) for v in versions)]
    wrong = asyncio.run(_edit_all(project, [*about, "other"]))
    yield from (Problem("next", text) for text in wrong)
    if read_project(project) != before:
        yield Problem("next", f"undone edits left {_difference(read_project(project), before)}")


async def _edit_all(project: Path, names: list[str]) -> list[str]:
    from handaxe import Session

    wrong: list[str] = []
    first: str | None = None
    async with Session(project, permission_mode="acceptEdits") as session:
        for name in names:
            content = (project / name).read_bytes()
            read = await session.call("Read", {"file_path": name, "offset": -1})
            if not read.ok and content and b"\0" not in content:
                wrong.append(f"Read {name}: {read.code} {read.text[:200]}")
            last = content.decode(errors="replace").splitlines()[-1:]
            if not last or "\0" in last[0] or content.count(last[0].encode()) != 1:
                continue
            edit = {"file_path": name, "old_string": last[0], "new_string": "edited"}
            result = await session.call("Edit", edit)
            if result.ok:
                first = first or result.id
            else:
                wrong.append(f"Edit {name}: {result.code} {result.text[:200]}")
        if first:
            undone = await session.undo(first)
            if not undone.ok:
                wrong.append(f"undo of its own edits: {undone.code} {undone.text[:200]}")
    return wrong


def _go_back(expected: Expected, place: Path) -> Iterator[Problem]:
    """Undo until nothing is left: every step restores exactly, or says why it cannot."""
    project = place / "project"
    old = expected.versions[0]
    is_told = False
    for _ in range(len(expected.versions) + 1):
        now = read_project(project)
        if now == old:
            break
        code, text = _undo_as_told(expected, place)
        is_told |= "ambiguous, not restored" in text
        if code == "undo.nothing" and expected.by_command:
            code, text = asyncio.run(_undo(place, UndoRequest(force=True)))
            if not is_told:
                yield Problem("unsaid", f"undone only by force: {_difference(now, old)}")
        if code in _MAY_BE_PRUNED and expected.may_be_pruned and now in expected.versions:
            return
        if code:
            yield Problem("undo", f"{code}: {text[:300]}; now {_difference(now, old)}")
            return
    now = read_project(project)
    if now != old:
        yield Problem("undo", f"undone, but {_difference(now, old)}")
        return
    changed = [n for n in now if (project / n).stat().st_mode & 0o7777 != expected.mode]
    if changed:
        yield Problem("undo", f"undone, but the modes of {changed} are others")


def _undo_as_told(expected: Expected, place: Path) -> tuple[str, str]:
    """Undo, doing what a refusal says where it is right to refuse."""
    wanted = UndoRequest()
    code, text = asyncio.run(_undo(place, wanted))
    if code == "undo.nothing" and expected.redoes:
        # A redo that broke off is finished first.
        asyncio.run(_undo(place, UndoRequest(redo=True)))
        code, text = asyncio.run(_undo(place, wanted))
    if code == "undo.damaged" and (named := _NAMED.search(text)):
        # An unfinished record is all that a crash left of its last bytes.
        wanted = UndoRequest(call_id=named[1], only=True)
        code, text = asyncio.run(_undo(place, wanted))
    if code in _REFUSED and (expected.by_command or _DOUBT in text):
        # Nobody synced what the command wrote, or a later session wrote the file before anybody
        # looked what the crashed call had done.
        forced = msgspec.structs.replace(wanted, force=True)
        code, text = asyncio.run(_undo(place, forced))
    return code, text


def _redo(expected: Expected, place: Path) -> Iterator[Problem]:
    code, text = asyncio.run(_undo(place, UndoRequest(redo=True)))
    now, wanted = read_project(place / "project"), expected.versions[-1]
    if code or now != wanted:
        yield Problem("undo", f"redo: {code} {text[:300]} {_difference(now, wanted)}")
    else:
        yield from _go_back(expected, place)


async def _undo(place: Path, wanted: UndoRequest) -> tuple[str, str]:
    from handaxe.app.undo_commands import choose_session_to_undo, find_past_sessions

    try:
        sessions = find_past_sessions(place / "home", root=place / "project")
    except SetupError as error:
        return "setup", str(error)
    result = await choose_session_to_undo(sessions, wanted).undo(wanted)
    return ("" if result.ok else str(result.code)), result.text


def _tidy(expected: Expected, project: Path, unknown: Collection[str]) -> Iterator[Problem]:
    """Nothing is left that `git status` would show."""
    known = {name for version in expected.versions for name in version} | SCRIPTS
    files = (path for path in project.rglob("*") if not path.is_dir() and path.name not in unknown)
    there = {str(path.relative_to(project)) for path in files}
    if there - known:
        yield Problem("leftover", f"{sorted(there - known)}")


def _difference(now: Tree, wanted: Tree) -> str:
    names = sorted(name for name in {*now, *wanted} if now.get(name) != wanted.get(name))
    return ", ".join(f"{name} ({_shown(now.get(name))})" for name in names)
