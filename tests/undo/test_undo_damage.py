"""Damage in the undo record is told wherever somebody looks, and undo guesses nothing."""

import asyncio
import json
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.app.undo_commands import choose_session_to_undo, find_past_sessions
from handaxe.contract.ports.undo import UndoRequest
from handaxe.frontends.cli.main import run
from handaxe.storage.sessions import list_sessions
from handaxe.undo.journal_files.journal_scan import find_damage


async def write(project: Path, home: Path, *names: str, session_id: str = "S") -> list[str]:
    """Create files, each by a call; the calls' ids."""
    made = []
    async with Session(
        project, home=home, session_id=session_id, permission_mode="acceptEdits"
    ) as session:
        for name in names:
            result = await session.call("Write", file_path=name, content=f"{name}\n")
            assert result.ok, result.text
            made.append(result.id)
    return made


def lines_of(home: Path, session_id: str = "S") -> list[bytes]:
    journal = home / f"sessions/{session_id}/journal.jsonl"
    return journal.read_bytes().splitlines(keepends=True)


def write_lines(home: Path, lines: list[bytes], session_id: str = "S") -> None:
    (home / f"sessions/{session_id}/journal.jsonl").write_bytes(b"".join(lines))


def spoil(home: Path, at: int, session_id: str = "S") -> None:
    """Change one byte in the middle of a record."""
    lines = lines_of(home, session_id)
    line = bytearray(lines[at])
    line[len(line) // 2] ^= 1
    lines[at] = bytes(line)
    write_lines(home, lines, session_id)


def find_record(home: Path, kind: str, call_id: str) -> int:
    """The last record of a kind that a call has."""
    wanted = f'"event":{{"record":"{kind}","call_id":"{call_id}"'.encode()
    return max(at for at, line in enumerate(lines_of(home)) if wanted in line)


@pytest.mark.proves("SS-4")
@pytest.mark.parametrize("spoilt", ["before", "after", "both"])
async def test_undo_refuses_where_the_newest_record_is_damaged(project, tmp_path, spoilt):
    home = tmp_path / "data"
    first, second = await write(project, home, "a.txt", "b.txt")
    kinds = ("before", "after") if spoilt == "both" else (spoilt,)
    for at in [find_record(home, kind, second) for kind in kinds]:
        spoil(home, at)
    instead = second if spoilt == "after" else first
    async with Session(project, home=home, session_id="S") as session:
        refused = await session.undo()
        assert refused.code == "undo.damaged", refused.text
        assert refused.data["call_id"] == instead
        assert f"handaxe undo {instead} --only" in refused.text
        assert (project / "a.txt").exists()
        assert (project / "b.txt").exists()
        undone = await session.undo(instead, only=True)
        assert undone.ok, undone.text
        assert any("journal.jsonl: the checksum" in note for note in undone.notes)
    assert (project / "a.txt").exists() == (spoilt == "after")
    assert (project / "b.txt").exists() == (spoilt != "after")


async def test_damage_before_the_last_change_stops_no_undo_of_it(project, tmp_path):
    home = tmp_path / "data"
    first, _, _ = await write(project, home, "a.txt", "b.txt", "c.txt")
    spoil(home, find_record(home, "before", first))
    async with Session(project, home=home, session_id="S") as session:
        for name in ("c.txt", "b.txt"):
            undone = await session.undo()
            assert undone.ok, undone.text
            assert not (project / name).exists()
        refused = await session.undo()
    assert refused.code == "undo.damaged"
    assert "No other change is left" in refused.text


@pytest.mark.parametrize("kind", ["before", "after"])
async def test_a_record_that_was_never_finished_is_told_and_hides_no_call(project, tmp_path, kind):
    home = tmp_path / "data"
    _, second = await write(project, home, "a.txt", "b.txt")
    at = find_record(home, kind, second)
    lines = lines_of(home)
    write_lines(home, [*lines[:at], lines[at][:120]])
    # Who is killed in the middle of a record has noted no end of the call.
    (home / "sessions/S/journal.ended").unlink()
    async with Session(project, home=home, session_id="S", permission_mode="acceptEdits") as one:
        assert [told for told in one.warnings if "journal.jsonl" in told]
        undone = await one.undo()
        assert undone.ok, undone.text
        assert [note for note in undone.notes if "journal.jsonl" in note]
        assert (project / "a.txt").exists() == (kind == "after")
        assert (project / "b.txt").exists() == (kind == "before")
    # The next writer has cut it off; it is told all the same.
    [listed] = list_sessions(home, find_damage)
    assert [told for told in listed.damage if told.startswith("journal.jsonl.torn-1")]


async def test_spoilt_records_before_an_unfinished_one_count(project, tmp_path):
    home = tmp_path / "data"
    first, second = await write(project, home, "a.txt", "b.txt")
    spoil(home, find_record(home, "before", second))
    lines = lines_of(home)
    write_lines(home, [*lines[:-1], lines[-1][:50]])
    async with Session(project, home=home, session_id="S") as session:
        refused = await session.undo()
    assert refused.code == "undo.damaged"
    assert refused.data["call_id"] == first


async def test_a_damaged_session_is_not_passed_over_for_an_older_one(project, tmp_path):
    home = tmp_path / "data"
    await write(project, home, "old.txt", session_id="old")
    [made] = await write(project, home, "a.txt")
    spoil(home, find_record(home, "before", made))
    sessions = find_past_sessions(home, root=project)
    chosen = choose_session_to_undo(sessions, UndoRequest())
    assert chosen.session_id == "S"
    assert (await chosen.undo(UndoRequest())).code == "undo.damaged"
    assert (project / "old.txt").exists()


def test_damage_is_told_wherever_somebody_looks(project, tmp_path, monkeypatch, capsys):
    home = tmp_path / "data"
    monkeypatch.setenv("HANDAXE_HOME", str(home))
    _, second = asyncio.run(write(project, home, "a.txt", "b.txt"))
    spoil(home, find_record(home, "before", second))
    warnings = Session(project, home=home, session_id="S").warnings
    assert [told for told in warnings if "undo record" in told and "journal.jsonl" in told]
    [listed] = list_sessions(home, find_damage)
    assert "journal.jsonl: the checksum does not fit the payload" in listed.damage

    def command(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        return code, *capsys.readouterr()

    at = ("--root", str(project))
    assert "The undo record of this session is damaged: journal.jsonl" in command("history", *at)[2]
    told = json.loads(command("history", *at, "--json")[1])
    assert "journal.jsonl" in told["sessions"][0]["damage"][0]
    assert "(damaged: 1 place)" in command("sessions")[1]
    assert "the undo record is damaged: journal.jsonl" in command("sessions", "show", "S")[2]
    found = json.loads(command("doctor", "--json")[1])["disk.undo_records"]
    assert (found["standing"], found["value"]) == ("weak", "damaged: S")
    code, _, refused = command("undo", *at)
    assert code != 0
    assert "The undo record is damaged" in refused
