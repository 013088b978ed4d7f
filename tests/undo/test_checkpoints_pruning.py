"""The undo record stays within its budget, and says what it gave up."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.main import run
from handaxe.undo.journal_files import journal_scan as journal_rewrite
from handaxe.undo.prune import GRACE_S, measure_usage, prune, prune_if_due

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
    before = measure_usage(home)
    told = prune(home, max_bytes=GIB, retention_days=30, dry_run=True)
    assert measure_usage(home) == before
    assert told == prune(home, max_bytes=GIB, retention_days=30)
    assert measure_usage(home).checkpoints < before.checkpoints


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


async def test_undo_after_pruning_restores_what_the_later_call_found(project, tmp_path):
    home, file = tmp_path / "home", project / "a.txt"
    async with Session(project, permission_mode="acceptEdits", home=home) as session:
        for found in ("first", "other"):
            file.write_text(found)
            await session.call("Read", file_path=str(file))
            assert (await session.call("Write", file_path=str(file), content="ours")).ok
            assert (await session.undo()).ok
            assert file.read_text() == found
            # The next record lies where this one lay.
            prune(home, max_bytes=0, retention_days=30)


async def test_the_call_before_goes_first_also_if_the_clock_was_set_back(
    project, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    async with Session(project, permission_mode="acceptEdits", home=home) as session:
        ids = []
        for name in ("before.txt", "after.txt"):
            (project / name).write_text(LARGE)
            await session.call("Read", file_path=str(project / name), limit=2)
            result = await session.call("Write", file_path=str(project / name), content=name)
            assert result.ok, result.text
            ids.append(result.id)
            earlier = time.time() - 3600
            monkeypatch.setattr(time, "time", lambda earlier=earlier: earlier)
        prune(home, max_bytes=len(LARGE) + 20_000, retention_days=30)
        assert [(call.call_id, call.pruned) for call in session.history()] == [
            (ids[0], True),
            (ids[1], False),
        ]
        assert (await session.undo()).ok
    assert (project / "after.txt").read_text() == LARGE


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
    found = measure_usage(home)
    assert found.events > 0
    assert found.checkpoints > len(LARGE)
    assert found.sessions == 1
    assert found.total == sum(p.lstat().st_size for p in home.rglob("*") if p.is_file())


@pytest.mark.parametrize("options", [{"max_bytes": -1}, {"retention_days": 0}])
def test_a_budget_that_makes_no_sense_is_refused(project, options):
    from handaxe.contract.faults import SetupError

    with pytest.raises(SetupError):
        Session(project, settings={"undo": options})


async def edit(session: Session, file: Path, number: int) -> ToolResult:
    """Change the first line of a file."""
    result = await session.call(
        "Edit", file_path=str(file), old_string=f"n={number}\n", new_string=f"n={number + 1}\n"
    )
    assert result.ok, result.text
    return result


@pytest.mark.proves("SS-4")
@pytest.mark.parametrize("size_bytes", [20_000, 200_000])
async def test_the_oldest_calls_of_a_session_go_and_the_newest_stay(project, tmp_path, size_bytes):
    home, file = tmp_path / "home", project / "a.txt"
    file.write_text("n=0\n" + "0123456789abcde\n" * (size_bytes // 16))
    # Contents up to 64 KB stand in the journal, as base64.
    room = 4 * (size_bytes if size_bytes > 64 << 10 else size_bytes * 4 // 3) + 4 * 2000
    options = {"undo": {"max_bytes": room}}
    async with Session(
        project, permission_mode="acceptEdits", home=home, session_id="S", settings=options
    ) as session:
        await session.call("Read", file_path=str(file), limit=2)
        made = [await edit(session, file, number) for number in range(12)]
        told = [any("can no longer be undone" in note for note in one.notes) for one in made]
        assert told[:4] == [False] * 4
        assert all(told[5:])
        assert any("can no longer be undone" in warning for warning in session.warnings)
        assert measure_usage(home).checkpoints <= room + 2000
        listed = session.history()
        assert [call.call_id for call in listed] == [one.id for one in made]
        assert [call.pruned for call in listed] == [True] * 8 + [False] * 4
        assert (await session.undo(made[7].id)).code == "undo.pruned"
        assert (await session.undo(made[8].id)).ok
    assert file.read_text().startswith("n=8\n")


def test_a_project_whose_calls_are_all_pruned_still_lists_them(
    project, tmp_path, monkeypatch, capsys
):
    home = tmp_path / "home"
    monkeypatch.setenv("HANDAXE_HOME", str(home))
    call_id = asyncio.run(changed(project, home, "old", "x"))
    assert prune(home, max_bytes=0, retention_days=30).young_calls == 1
    assert run(["history", "--root", str(project)]) == 0
    told = capsys.readouterr().out
    assert f"{call_id}  Edit  (pruned: cannot be undone)" in told
    assert run(["undo", call_id, "--root", str(project)]) != 0
    assert "are no longer saved" in capsys.readouterr().err


async def test_what_a_pruning_leaves_is_undone_and_added_to(project, tmp_path):
    home, file = tmp_path / "home", project / "a.txt"
    file.write_text("n=0\n" + "text\n" * 4000)
    async with Session(
        project, permission_mode="acceptEdits", home=home, session_id="S"
    ) as session:
        await session.call("Read", file_path=str(file), limit=2)
        made = [await edit(session, file, number) for number in range(3)]
        journal = home / "sessions/S/journal.jsonl"
        room = journal.stat().st_size - 20_000
        assert prune(home, max_bytes=room, retention_days=30).calls == 1
        assert journal.stat().st_size <= room
        made.append(await edit(session, file, 3))
        assert [call.pruned for call in session.history(diffs=True)] == [True, False, False, False]
        for number in (3, 2, 1):
            undone = await session.undo()
            assert undone.ok, undone.text
            assert file.read_text() == f"n={number}\n" + "text\n" * 4000
        refused = await session.undo()
        assert refused.code == "undo.nothing"
        assert "1 older call can no longer be undone" in refused.text
        assert not session.warnings


async def test_a_pruning_that_a_crash_ended_counts_no_call_twice(project, tmp_path, monkeypatch):
    home, file = tmp_path / "home", project / "a.txt"
    file.write_text("n=0\n")
    async with Session(
        project, permission_mode="acceptEdits", home=home, session_id="S"
    ) as session:
        await session.call("Read", file_path=str(file))
        made = [await edit(session, file, number) for number in range(2)]

        def crash(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as crashing:
            crashing.setattr(journal_rewrite, "sync_file", crash)
            with pytest.raises(KeyboardInterrupt):
                prune(home, max_bytes=0, retention_days=30)
        assert [(call.call_id, call.pruned) for call in session.history()] == [
            (one.id, False) for one in made
        ]
        assert (await session.undo()).ok
        assert prune(home, max_bytes=0, retention_days=30).calls == 3
        assert [call.call_id for call in session.history()][:2] == [one.id for one in made]
        assert not (home / "sessions/S/.journal.new").exists()


async def test_damage_behind_the_calls_that_go_stays_to_be_told(project, tmp_path):
    home, file = tmp_path / "home", project / "a.txt"
    file.write_text("n=0\n")
    async with Session(
        project, permission_mode="acceptEdits", home=home, session_id="S"
    ) as session:
        await session.call("Read", file_path=str(file))
        for number in range(3):
            await edit(session, file, number)
    journal = home / "sessions/S/journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[-2] = lines[-2].replace(b'"crc":"', b'"crc":"x')
    journal.write_bytes(b"".join(lines))
    assert prune(home, max_bytes=0, retention_days=30).calls == 2
    async with Session(project, home=home, session_id="S") as session:
        assert (await session.undo()).code == "undo.damaged"
        assert [told for told in session.warnings if "journal.jsonl: the line is not" in told]


async def test_a_redo_is_not_taken_back_when_the_undo_before_it_was_pruned(project, tmp_path):
    home = tmp_path / "home"
    async with Session(project, permission_mode="acceptEdits", home=home) as session:
        await session.call("Write", file_path="a", content="one\n")
        await session.undo()
        assert (await session.redo()).ok
        session_id = session.id
    for budget in range(6_000, -1, -250):
        prune(home, max_bytes=budget, retention_days=30)
        async with Session(
            project, permission_mode="acceptEdits", home=home, session_id=session_id
        ) as session:
            flags = [(call.tool, call.pruned) for call in session.history()]
            result = await session.redo()
        assert not result.ok, (budget, flags)
        assert (project / "a").read_text() == "one\n"
