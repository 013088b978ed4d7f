"""The model hears before its next request which files its user has put back."""

import asyncio
import sys
from pathlib import Path

import pytest
from players import Player, calls, says
from tests.agent.memory.test_nested_memory import texts

from handaxe import Agent, Session
from handaxe.undo import journal

WRITE = ("w1", "Write", {"file_path": "new.txt", "content": "mine\n"})
TOLD = "The user took back changes by undo or redo"


def open_session(project: Path, session_id: str | None = None) -> Session:
    return Session(project, permission_mode="acceptEdits", session_id=session_id)


async def undo_from_a_shell(project: Path) -> None:
    argv = (sys.executable, "-m", "handaxe", "undo")
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=project, stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0


@pytest.mark.proves("SS-4")
async def test_an_undo_of_the_owner_is_told_once_with_its_files(project: Path):
    async with open_session(project) as session:
        model = Player(calls(WRITE), says("Done."), says("I see."), says("Yes."), says("Again."))
        agent = Agent(model, session)
        await agent.ask("Go.")
        assert (await session.undo()).ok
        await agent.ask("And now?")
        [before, _, after] = model.requests
        assert TOLD not in texts(before)
        said = texts(after).rpartition("<system-reminder>")[2]
        assert TOLD in said
        assert "(w1)" in said
        assert f"- {project}/new.txt" in said
        await agent.ask("Sure?")
        assert texts(model.requests[-1]).count(TOLD) == 1
        assert (await session.undo(redo=True)).ok
        await agent.ask("And?")
        assert texts(model.requests[-1]).count(TOLD) == 2


async def test_an_undo_by_another_process_is_told_while_the_session_runs(project: Path):
    async with open_session(project) as session:
        model = Player(calls(WRITE), says("Done."), says("I see."))
        agent = Agent(model, session)
        await agent.ask("Go.")
        await undo_from_a_shell(project)
        assert not (project / "new.txt").exists()
        await agent.ask("And now?")
    assert f"- {project}/new.txt" in texts(model.requests[-1])


async def test_an_undo_between_two_runs_of_a_session_is_told_once(project: Path):
    async with open_session(project) as session:
        await Agent(Player(calls(WRITE), says("Done.")), session).ask("Go.")
        session_id = session.id
    await undo_from_a_shell(project)
    for count in (1, 1):
        async with open_session(project, session_id) as session:
            model = Player(says("I see."))
            await Agent(model, session).ask("And now?")
        assert texts(model.requests[-1]).count(TOLD) == count


async def test_what_the_model_undid_itself_it_knows(project: Path):
    async with open_session(project) as session:
        model = Player(calls(WRITE), calls(("u1", "Undo", {})), says("Done."))
        await Agent(model, session).ask("Go.")
        assert not (project / "new.txt").exists()
    assert TOLD not in texts(model.requests[-1])


async def test_a_full_part_of_the_journal_hides_no_undo(project: Path, monkeypatch):
    monkeypatch.setattr(journal, "PART_BYTES", 1)
    async with open_session(project) as session:
        model = Player(calls(WRITE), says("Done."), says("I see."))
        agent = Agent(model, session)
        await agent.ask("Go.")
        assert (await session.undo()).ok
        assert (await session.call("Write", file_path="other", content="x")).ok
        await agent.ask("And now?")
    assert f"- {project}/new.txt" in texts(model.requests[-1])
