"""The undo record stays within its budget, and says what it gave up."""

import os
import time
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.storage.undo.pruning import GRACE_S, prune, prune_if_due, usage

LARGE = "0123456789abcdef" * 10_000
GIB = 1 << 30


async def changed(project: Path, home: Path, session_id: str, content: str) -> str:
    """One session that writes one large file; the call's id."""
    file = project / f"{session_id}.txt"
    file.write_text(LARGE)
    async with Session(
        project, permission_mode="acceptEdits", home=home, session_id=session_id
    ) as session:
        await session.call("Read", file_path=str(file), limit=2)
        result = await session.call(
            "Edit", file_path=str(file), old_string="0123", new_string=content, replace_all=True
        )
        assert result.ok, result.text
        return result.id


def age(home: Path, session_id: str, days: float) -> None:
    then = time.time() - days * 24 * 3600
    for path in (home / "sessions" / session_id).glob("journal*.jsonl"):
        os.utime(path, (then, then))


async def test_a_pruned_call_says_so_when_it_is_to_be_undone(project, tmp_path):
    home = tmp_path / "home"
    old = await changed(project, home, "old", "x")
    await changed(project, home, "new", "y")
    age(home, "old", 31)
    pruned = prune(home, max_bytes=GIB, retention_days=30)
    assert (pruned.journal_parts, pruned.calls, pruned.contents) == (1, 1, 1)
    assert pruned.freed_bytes >= len(LARGE)
    async with Session(
        project, permission_mode="acceptEdits", home=home, session_id="old"
    ) as session:
        [call] = session.history()
        assert (call.call_id, call.pruned) == (old, True)
        assert (await session.undo(old)).code == "undo.pruned"
        assert (await session.undo()).code == "undo.nothing"
    async with Session(
        project, permission_mode="acceptEdits", home=home, session_id="new"
    ) as session:
        assert (await session.undo()).ok
    assert (project / "new.txt").read_text() == LARGE


async def test_the_oldest_goes_first_until_the_rest_fits(project, tmp_path):
    home = tmp_path / "home"
    for number, name in enumerate(["first", "second", "third"]):
        await changed(project, home, name, "x")
        age(home, name, 3 - number)
    prune(home, max_bytes=2 * len(LARGE) + 20_000, retention_days=30)
    left = {path.parent.name for path in (home / "sessions").glob("*/journal.jsonl")}
    assert left == {"second", "third"}


async def test_a_dry_run_removes_nothing_and_tells_the_same(project, tmp_path):
    home = tmp_path / "home"
    await changed(project, home, "old", "x")
    age(home, "old", 31)
    before = usage(home)
    told = prune(home, max_bytes=GIB, retention_days=30, dry_run=True)
    assert usage(home) == before
    assert told == prune(home, max_bytes=GIB, retention_days=30)
    assert usage(home).checkpoints < before.checkpoints


async def test_contents_nobody_refers_to_go_unless_they_are_young(project, tmp_path, monkeypatch):
    home = tmp_path / "home"
    await changed(project, home, "s", "x")
    loose = home / "blobs" / "ab" / ("ab" * 32)
    loose.parent.mkdir(parents=True)
    loose.write_text("left by a crash")
    assert prune(home, max_bytes=GIB, retention_days=30).contents == 0
    later = time.time() + GRACE_S + 60
    monkeypatch.setattr(time, "time", lambda: later)
    assert prune(home, max_bytes=GIB, retention_days=30).contents == 1
    assert not loose.exists()
    assert len(os.listdir(home / "pins")) == 1


async def test_nothing_of_a_running_call_is_pruned(project, tmp_path):
    home = tmp_path / "home"
    told = []

    async def look(event):
        told.append(prune(home, max_bytes=0, retention_days=30).journal_parts)

    async with Session(
        project, permission_mode="acceptEdits", home=home, hooks={"PostToolUse": [look]}
    ) as session:
        result = await session.call("Write", file_path=str(project / "a.txt"), content="x")
        assert result.ok, result.text
        assert told == [0]
        assert (await session.undo()).ok


async def test_a_session_goes_on_after_its_journal_was_pruned(project, tmp_path):
    home = tmp_path / "home"
    async with Session(project, permission_mode="acceptEdits", home=home) as session:
        await session.call("Write", file_path=str(project / "a.txt"), content="x")
        assert prune(home, max_bytes=0, retention_days=30).calls == 1
        await session.call("Write", file_path=str(project / "b.txt"), content="x")
        assert (await session.undo()).ok
        assert [call.pruned for call in session.history()] == [True, False, False]
    assert ((project / "a.txt").exists(), (project / "b.txt").exists()) == (True, False)


async def test_pruning_by_itself_happens_once_a_day(project, tmp_path):
    home = tmp_path / "home"
    await changed(project, home, "old", "x")
    age(home, "old", 31)
    assert prune_if_due(home, max_bytes=GIB, retention_days=30) is None
    stamp = home / ".undo-pruned"
    os.utime(stamp, (1, 1))
    pruned = prune_if_due(home, max_bytes=GIB, retention_days=30)
    assert pruned is not None
    assert pruned.calls == 1


async def test_usage_is_told_by_kind(project, tmp_path):
    home = tmp_path / "home"
    await changed(project, home, "s", "x")
    found = usage(home)
    assert found.events > 0
    assert found.checkpoints > len(LARGE)
    assert found.sessions == 1
    assert found.total == sum(p.lstat().st_size for p in home.rglob("*") if p.is_file())


@pytest.mark.parametrize("options", [{"max_bytes": -1}, {"retention_days": 0}])
def test_a_budget_that_makes_no_sense_is_refused(project, options):
    from handaxe.contract.faults import SetupError

    with pytest.raises(SetupError):
        Session(project, settings={"undo": options})
