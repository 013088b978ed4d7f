"""Which sessions keep their roots ahead of the first command, and which have no reason to."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.undo.commanding import is_preparing
from tests.waiting import blocked_until, until

import handaxe
from handaxe import Effects, Session, tool
from handaxe.app.services import session_services as ready_tree
from handaxe.app.services.session_services import SnapshotPrewarm
from handaxe.app.session import get_parts

QUIET = {
    "no tool that runs anything": {"tools": ["Read", "Edit", "Grep"]},
    "a rule that forbids it": {"tools": ["Read", "Bash"], "deny": "Bash"},
    "a setting against it": {"settings": {"undo": {"shell_ahead": False}}},
    "no undo of commands": {"settings": {"undo": {"shell_max_files": 0}}},
}


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(ready_tree, "START_S", 0)


def snapshots() -> Path:
    return Path(os.environ["HANDAXE_HOME"]) / "snapshots"


@handaxe.tool
async def anything() -> str:
    """Do what nobody knows."""
    return "done"


@pytest.mark.proves("SH-8")
@pytest.mark.parametrize("tools", [None, ["Read", "Bash"], ["Read", anything]])
async def test_a_session_that_may_run_commands_keeps_its_roots_ahead(project, at_once, tools):
    (project / "a.txt").write_text("one\n")
    options = {"permission_mode": "bypassPermissions", "tools": tools}
    async with Session(project, **options) as session:
        await until(lambda: list(snapshots().glob("*/*.prepared")))
        await until(lambda: not is_preparing())
        [prepared] = snapshots().glob("*/*.prepared")
        if tools is None:
            result = await session.call("Bash", command="eval rm a.txt")
            assert result.ok, result.text
            assert not prepared.exists()
            assert (await session.undo()).ok
    assert (project / "a.txt").read_text() == "one\n"
    assert [path.name for path in snapshots().glob("*/index")] == ["index"]
    assert not list(snapshots().glob("*/*.prepared"))


@pytest.mark.parametrize("options", QUIET.values(), ids=QUIET)
async def test_a_session_that_has_no_use_for_it_keeps_nothing(project, at_once, options):
    async with Session(project, **options) as session:
        await session.call("Read", file_path=str(project))
        await asyncio.sleep(0.05)
        assert not is_preparing()
    assert not snapshots().exists()


async def test_calls_that_follow_each_other_come_first(project, monkeypatch):
    monkeypatch.setattr(ready_tree, "START_S", 3600)
    (project / "a.txt").write_text("one\n")
    async with Session(project) as session:
        ready = next(
            c for c in get_parts(session).services.members if isinstance(c, SnapshotPrewarm)
        )
        for _ in range(3):
            await session.call("Read", file_path=str(project / "a.txt"))
            ready.begin_if_idle(get_parts(session).catalog)
            await asyncio.sleep(0.05)
            assert not snapshots().exists()
        ready.begin_if_idle(get_parts(session).catalog)
        await until(lambda: list(snapshots().glob("*/*.prepared")))


async def test_a_call_that_still_runs_comes_first(project, monkeypatch):
    monkeypatch.setattr(ready_tree, "START_S", 3600)
    goes_on = asyncio.Event()

    @tool(effects=Effects.none())
    async def look() -> str:
        """Look for long."""
        await goes_on.wait()
        return "seen"

    async with Session(project, tools=["Bash", look]) as session:
        ready = next(
            c for c in get_parts(session).services.members if isinstance(c, SnapshotPrewarm)
        )
        running = asyncio.ensure_future(session.call("look"))
        await asyncio.sleep(0.05)
        for _ in range(2):
            ready.begin_if_idle(get_parts(session).catalog)
            await asyncio.sleep(0.05)
            assert not snapshots().exists()
        goes_on.set()
        await running
        ready.begin_if_idle(get_parts(session).catalog)
        await until(lambda: list(snapshots().glob("*/*.prepared")))


async def test_a_session_that_closes_at_once_begins_nothing(project):
    async with Session(project) as session:
        await session.call("Read", file_path=str(project))
    assert not is_preparing()
    assert not snapshots().exists()


def test_one_call_of_the_command_keeps_nothing_ahead(project):
    words = ["call", "Bash", f"command=sleep {ready_tree.START_S + 0.3}", "--root", str(project)]
    done = subprocess.run(
        [sys.executable, "-m", "handaxe", *words], check=False, timeout=60, capture_output=True
    )
    assert done.returncode == 0, done.stdout
    assert not snapshots().exists()


def test_a_server_keeps_its_roots_ahead_and_leaves_nothing_running(project):
    (project / "a.txt").write_text("one\n")
    server = subprocess.Popen(
        [sys.executable, "-m", "handaxe", "mcp", "--root", str(project)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    server.stdin.write(json.dumps(asked).encode() + b"\n")
    server.stdin.flush()
    assert b"serverInfo" in server.stdout.readline()
    blocked_until(lambda: list(snapshots().glob("*/*.prepared")))
    server.stdin.close()
    assert server.wait(60) == 0
    server.stdout.close()
    assert not list(snapshots().glob("*/*.prepared"))


def test_a_session_behind_ordinary_functions_does_the_same(project, at_once):
    (project / "a.txt").write_text("one\n")
    with handaxe.connect(project, permission_mode="bypassPermissions") as connection:
        assert connection.call("Read", file_path=str(project / "a.txt")).ok
        blocked_until(lambda: list(snapshots().glob("*/*.prepared")) and not is_preparing())
        assert connection.call("Bash", command="echo two > a.txt").ok
    assert not is_preparing()
