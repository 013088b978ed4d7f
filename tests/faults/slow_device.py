"""Calls on a device whose syncs last until a file is made: the event loop goes on meanwhile.

Run under `slow_syncs.c`. Only this program makes that file, from its event loop; a loop that waits
for a sync waits for ever.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from handaxe import Session, ToolCall
from handaxe.contract.decision import Allow, PermissionRequest
from handaxe.contract.ports.mcp_servers import McpLogin
from handaxe.contract.result import ToolResult
from handaxe.storage.mcp_logins import DiskMcpLogins

GATE = Path(os.environ["SYNC_GATE"])
WAITING = Path(f"{GATE}.waiting")
ON_LOOP = Path(f"{GATE}.on_loop")
LARGE = "line\n" * 40_000


async def stuck(work: Coroutine[Any, Any, Any]) -> "asyncio.Future[Any]":
    """Begin work, and return when it waits for the device."""
    GATE.unlink(missing_ok=True)
    WAITING.unlink(missing_ok=True)
    task = asyncio.ensure_future(work)
    while not WAITING.exists():
        assert not task.done(), task.result()
        await asyncio.sleep(0.001)
    return task


def told(result: ToolResult) -> list[Any]:
    return [result.ok, result.code, result.text]


async def go_on(project: Path) -> object:
    """Change files in every way; meanwhile another session answers."""
    (project / "large.txt").write_text(LARGE + "end\n")
    (project / "old.txt").write_text("old\n")
    patch = "*** Begin Patch\n*** Delete File: old.txt\n*** Add File: new.txt\n+n\n*** End Patch"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Write", {"file_path": "deep/a.txt", "content": "a\n"}),
        ("Write", {"file_path": "deep/a.txt", "content": "b\n"}),
        ("Edit", {"file_path": "deep/a.txt", "old_string": "b", "new_string": "c"}),
        ("Edit", {"file_path": "large.txt", "old_string": "end", "new_string": "END"}),
        ("ApplyPatch", {"input": patch}),
        ("Undo", {}),
    ]
    answers: list[list[Any]] = []
    async with Session(project) as other:
        session = Session(project, permission_mode="bypassPermissions", tools="full")
        for name in ("large.txt", "old.txt"):
            GATE.touch()
            await session.call("Read", file_path=name)
        for tool, given in calls:
            task = await stuck(session.call(tool, given))
            beside = await other.call("Read", file_path="large.txt", limit=1)
            GATE.touch()
            answers.append([tool, beside.ok, *told(await task)])
        closing = await stuck(session.close())
        GATE.touch()
        await closing
    return answers


async def agree(_: PermissionRequest) -> Allow:
    return Allow()


async def find_syncs_on_loop(project: Path) -> object:
    """What the event loop itself waits for the device for, of all that a session does."""
    (project / "a.txt").write_text("a\n")
    (project / "large.txt").write_text(LARGE)
    patch = "*** Begin Patch\n*** Delete File: a.txt\n*** Add File: new.txt\n+n\n*** End Patch"
    script = f"{sys.executable} -c \"open('made', 'w')\""
    GATE.touch()
    session = Session(project, permission_mode="bypassPermissions", tools="full")
    steps: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
        (tool, partial(session.call, tool, given))
        for tool, given in (
            ("Write", {"file_path": "deep/w.txt", "content": "a\n"}),
            ("Write", {"file_path": "w.txt", "content": "b\n"}),
            ("Read", {"file_path": "large.txt"}),
            ("Edit", {"file_path": "large.txt", "old_string": "line", "new_string": "x",
                      "replace_all": True}),
            ("Bash", {"command": "rm w.txt"}),
            ("Bash", {"command": script}),
            ("Read", {"file_path": "a.txt"}),
            ("ApplyPatch", {"input": patch}),
            ("Undo", {}),
            ("TaskCreate", {"subject": "s", "description": "d"}),
            ("TaskUpdate", {"taskId": "1", "status": "completed"}),
        )
    ]  # fmt: skip
    for redo in (False, False, True, False, False, False):
        steps.append((f"undo, redo={redo}", partial(session.undo, redo=redo)))
    steps.append(("close", session.close))
    planning = Session(
        project, permission_mode="plan", settings={"plansDirectory": "plans"},
        on_ask=agree, tools="full",
    )  # fmt: skip
    steps.append(("ExitPlanMode", partial(planning.call, "ExitPlanMode", {"plan": "# A plan"})))
    steps.append(("close", planning.close))
    logins = DiskMcpLogins(project.parent / "data")
    steps.append(("MCP login", partial(logins.write, "key", McpLogin())))
    answers: list[list[Any]] = []
    for name, step in steps:
        ON_LOOP.unlink(missing_ok=True)
        given = await step()
        answers.append([name, ON_LOOP.exists(), *(told(given) if given else [True])])
    return answers


async def cancel_early(project: Path) -> object:
    """Cancel a call before its record is durable."""
    async with Session(project, permission_mode="acceptEdits") as session:
        call = ToolCall("early", "Write", {"file_path": "a.txt", "content": "a\n"})
        task = await stuck(session.run(call))
        session.cancel("early")
        answer = told(await task)
        GATE.touch()
        again = await session.call("Write", file_path="a.txt", content="b\n")
        calls = [call.call_id for call in session.history()]
    return [answer, again.ok, len(calls), "early" in calls]


async def cancel_late(project: Path) -> object:
    """Cancel a call while the new content is synced."""
    async with Session(project, permission_mode="acceptEdits") as session:
        GATE.touch()
        await session.call("Write", file_path="a.txt", content="a\n")
        call = ToolCall("late", "Write", {"file_path": "a.txt", "content": "b\n"})
        task = await stuck(session.run(call))
        while not [*project.glob(".handaxe-*.tmp")]:
            await asyncio.sleep(0.001)
        session.cancel("late")
        answer = told(await task)
        before = (project / "a.txt").read_text()
        GATE.touch()
    # The session is closed, so what went on is over and on record.
    after = (project / "a.txt").read_text()
    async with Session(project, session_id=session.id) as later:
        calls = [call.call_id for call in later.history()]
        undone = await later.undo("late")
    return [answer, before, after, calls[-1], undone.ok, (project / "a.txt").read_text()]


async def cancel_command(project: Path) -> object:
    """Cancel a command before its record is durable, while a cancelled Write still goes on."""
    script = f"{sys.executable} -c \"open('made', 'w')\""
    async with Session(project, permission_mode="bypassPermissions") as session:
        GATE.touch()
        await session.call("Write", file_path="a.txt", content="a\n")
        # Now the record has everything that has to be made but once.
        await session.call("Bash", command=script)
        write = ToolCall("write", "Write", {"file_path": "a.txt", "content": "b\n"})
        task = await stuck(session.run(write))
        while not [*project.glob(".handaxe-*.tmp")]:
            await asyncio.sleep(0.001)
        session.cancel("write")
        await task
        (project / "theirs.txt").write_text("not kept yet\n")
        task = await stuck(session.run(ToolCall("command", "Bash", {"command": script})))
        (project / "theirs.txt").write_text("changed meanwhile\n")
        session.cancel("command")
        answer = told(await task)
        GATE.touch()
    async with Session(project, session_id=session.id) as later:
        calls = [call.call_id for call in later.history()]
        undone = await later.undo()
    return [answer, calls[1:], undone.ok, undone.text, (project / "a.txt").read_text()]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(globals()[sys.argv[1]](Path(sys.argv[2])))))
