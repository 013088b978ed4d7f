"""A journal that lost its end, or everything, is told apart from one that never had more."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from tests.undo import commanding
from tests.undo.test_undo_damage import lines_of, write, write_lines
from tests.undo.undoable import in_a_process

from handaxe import Session
from handaxe.app.undo_commands import choose_session_to_undo, find_past_sessions
from handaxe.contract.faults.undo import DamagedRecord
from handaxe.contract.ports.undo import UndoRequest
from handaxe.frontends.cli.main import run
from handaxe.storage.sessions import fork_session, list_sessions
from handaxe.undo.journal_files.journal_scan import find_damage
from handaxe.undo.prune import prune


def journal_of(home: Path) -> Path:
    return home / "sessions/S/journal.jsonl"


def cut_last_call(home: Path) -> None:
    """Take whole lines away, from the record that the last call began with."""
    lines = lines_of(home)
    begun = [at for at, line in enumerate(lines) if b'"before"' in line or b'"tracked"' in line]
    write_lines(home, lines[: begun[-1]])


def cut_in_mid_record(home: Path) -> None:
    """Leave half of the record that the last call began with."""
    lines = lines_of(home)
    cut_last_call(home)
    kept = len(lines_of(home))
    write_lines(home, [*lines[:kept], lines[kept][:-20]])


def empty(home: Path) -> None:
    os.truncate(journal_of(home), 0)


def remove(home: Path) -> None:
    journal_of(home).unlink()


HARMS = (cut_last_call, cut_in_mid_record, empty, remove)


@pytest.mark.proves("SS-4")
@pytest.mark.parametrize("harm", HARMS)
async def test_undo_refuses_where_the_last_call_was_taken_from_the_record(project, tmp_path, harm):
    home = tmp_path / "data"
    await write(project, home, "old.txt", session_id="old")
    first, second = await write(project, home, "a.txt", "b.txt")
    harm(home)
    for _ in range(2):
        chosen = choose_session_to_undo(find_past_sessions(home, root=project), UndoRequest())
        assert chosen.session_id == "S"
        refused = await chosen.undo(UndoRequest())
        assert refused.code == DamagedRecord.code, refused.text
        is_first_left = harm in (cut_last_call, cut_in_mid_record)
        assert refused.data["call_id"] == (first if is_first_left else None)
        assert any(second in told for told in refused.data["damage"])
    assert all((project / name).exists() for name in ("old.txt", "a.txt", "b.txt"))


@pytest.mark.parametrize("harm", HARMS)
def test_what_was_taken_from_the_record_is_told_wherever_somebody_looks(
    project, tmp_path, monkeypatch, capsys, harm
):
    home = tmp_path / "data"
    monkeypatch.setenv("HANDAXE_HOME", str(home))
    _, second = asyncio.run(write(project, home, "a.txt", "b.txt"))
    harm(home)
    sentence = f"the record of the call {second} "
    assert [told for told in Session(project, home=home, session_id="S").warnings if second in told]
    assert [told for told in list_sessions(home, find_damage)[0].damage if sentence in told]

    def command(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        return code, *capsys.readouterr()

    at = ("--root", str(project))
    assert sentence in command("history", *at)[2]
    assert sentence in command("sessions", "show", "S")[2]
    assert "(damaged: " in command("sessions")[1]
    found = json.loads(command("doctor", "--json")[1])["disk.undo_records"]
    assert (found["standing"], found["value"]) == ("weak", "damaged: S")


@pytest.mark.parametrize("kept", [0, 1])
async def test_a_command_whose_changes_were_taken_from_the_record_is_not_passed_over(
    project, tmp_path, kept
):
    home = tmp_path / "data"
    await write(project, home, "a.txt")
    async with commanding.open_session(project, home, "S") as session:
        await commanding.run(session, project, "for name in x y; do echo $name > $name.txt; done")
    lines = lines_of(home)
    begun = max(at for at, line in enumerate(lines) if b'"tracked"' in line)
    write_lines(home, lines[: begun + kept])
    async with Session(project, home=home, session_id="S") as session:
        await session.undo()
    assert (project / "a.txt").exists()


async def test_what_was_lost_stays_known_when_the_session_goes_on(project, tmp_path):
    home = tmp_path / "data"
    await write(project, home, "a.txt", "b.txt")
    cut_last_call(home)
    [third] = await write(project, home, "c.txt")
    async with Session(project, home=home, session_id="S") as session:
        undone = await session.undo()
        assert undone.ok, undone.text
        assert undone.data["calls"] == [third]
        assert (await session.undo()).code == DamagedRecord.code
    assert (project / "a.txt").exists()


async def test_a_fork_misses_nothing(project, tmp_path):
    home = tmp_path / "data"
    await write(project, home, "a.txt")
    fork_session(home, "S", "F")
    await write(project, home, "b.txt", session_id="F")
    assert [one.damage for one in list_sessions(home, find_damage)] == [(), ()]


async def test_a_session_of_an_earlier_version_misses_nothing(project, tmp_path):
    home = tmp_path / "data"
    await write(project, home, "a.txt", "b.txt")
    (home / "sessions/S/journal.ended").unlink()
    await write(project, home, "c.txt")
    assert list_sessions(home, find_damage)[0].damage == ()


@pytest.mark.parametrize("max_bytes", [0, 1_500])
async def test_calls_that_were_pruned_are_not_missing(project, tmp_path, max_bytes):
    home = tmp_path / "data"
    await write(project, home, "a.txt", "b.txt", "c.txt")
    assert prune(home, max_bytes=max_bytes, retention_days=30).calls
    await write(project, home, "d.txt")
    assert list_sessions(home, find_damage)[0].damage == ()


async def test_what_was_lost_is_forgotten_with_newer_calls_that_are_pruned(project, tmp_path):
    home = tmp_path / "data"
    await write(project, home, "a.txt")
    empty(home)
    await write(project, home, "b.txt")
    assert list_sessions(home, find_damage)[0].damage
    prune(home, max_bytes=0, retention_days=30)
    assert list_sessions(home, find_damage)[0].damage == ()


async def test_calls_that_changed_nothing_are_not_missing(project, tmp_path):
    home = tmp_path / "data"
    async with Session(
        project, home=home, session_id="S", permission_mode="bypassPermissions"
    ) as session:
        await session.call("Bash", command="python3 -c 'pass'")
        await session.call("Edit", file_path="none.txt", old_string="a", new_string="b")
        await session.call("Write", file_path="a.txt", content="a\n")
    async with Session(project, home=home, session_id="S") as session:
        assert (await session.undo()).ok
    assert list_sessions(home, find_damage)[0].damage == ()


@pytest.mark.parametrize("kill_at", range(2, 42, 4))
def test_a_killed_session_misses_nothing(project, tmp_path, kill_at):
    home = tmp_path / "data"
    calls = [("Write", {"file_path": f"{n}.txt", "content": "x\n"}) for n in range(3)]
    in_a_process(project, home, calls, kill_at)
    (project / "0.txt").unlink(missing_ok=True)

    async def look() -> None:
        async with Session(project, home=home, session_id="undoable") as session:
            assert not [told for told in session.warnings if "missing" in told]

    asyncio.run(look())
    assert not [
        told for one in list_sessions(home, find_damage) for told in one.damage if "missing" in told
    ]
