"""A command whose handaxe is killed in the middle of it: the next one who looks can undo it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.undo import commanding
from tests.undo.commanding import open_session, run, whole_tree

from handaxe.app.undo_commands import find_past_sessions
from handaxe.contract.ports.undo import UndoRequest
from handaxe.undo.prune import prune

COMMAND = (
    "rm -rf deep a.txt; echo new > new.txt; mv empty full; sed -i s/h/H/ .hidden; kill -9 $HOST_PID"
)


def killed(root: Path, home: Path, commands: list[str]) -> None:
    """Run commands in a session of another process, the last of which kills that process."""
    done = subprocess.run(
        [sys.executable, commanding.__file__, str(root), str(home), *commands],
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.proves("SH-8", "SS-4")
async def test_a_command_that_was_cut_off_is_undone_by_the_resumed_session(tree, tmp_path):
    before = whole_tree(tree)
    killed(tree, tmp_path / "home", [COMMAND])
    assert whole_tree(tree) != before
    async with open_session(tree, tmp_path / "home", "crashed") as session:
        [call] = session.history()
        assert call.cut_off
        undone = await session.undo()
        assert undone.ok, undone.text
        assert whole_tree(tree) == before
    [store] = (tmp_path / "home/snapshots").iterdir()
    assert not list(store.glob("*.manifest"))


async def test_it_is_undone_from_the_shell_without_the_session(tree, tmp_path):
    before = whole_tree(tree)
    killed(tree, tmp_path / "home", ["echo first > first.txt", COMMAND])
    [session] = find_past_sessions(tmp_path / "home", root=tree)
    assert [call.cut_off for call in session.calls()] == [False, True]
    for _ in range(2):
        [session] = find_past_sessions(tmp_path / "home", root=tree)
        assert (await session.undo(UndoRequest())).ok
    assert whole_tree(tree) == before


async def test_a_crashed_session_keeps_what_it_needs_while_others_come_and_go(tree, tmp_path):
    before = whole_tree(tree)
    killed(tree, tmp_path / "home", ["cp big.bin copy.bin", COMMAND])
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, "true")
    async with open_session(tree, tmp_path / "home", "crashed") as session:
        assert (await session.undo()).ok
        assert (await session.undo()).ok
    assert whole_tree(tree) == before


async def test_pruning_keeps_no_journal_of_a_crashed_session_open(tree, tmp_path):
    home = tmp_path / "home"
    killed(tree, home, [COMMAND])
    prune(home, max_bytes=1 << 30, retention_days=30)
    open_files = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.exists()]
    assert not [path for path in open_files if path.startswith(str(home))]
    async with open_session(tree, home, "crashed") as session:
        assert (await session.undo()).ok


async def test_a_lost_baseline_is_no_reason_to_fail(tree, tmp_path):
    killed(tree, tmp_path / "home", [COMMAND])
    for manifest in (tmp_path / "home/snapshots").rglob("*.manifest"):
        manifest.write_bytes(b"damaged")
    async with open_session(tree, tmp_path / "home", "crashed") as session:
        assert session.history() == []
        assert (await session.undo()).code == "undo.nothing"
