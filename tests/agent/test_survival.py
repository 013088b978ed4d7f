"""However work ends, the conversation that is left can be sent to any provider."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pairing import complaints
from players import Player, call, calls, ended, says

from handaxe import Agent, Session
from handaxe.agent.conversation import AgentConversation
from handaxe.contract.ports.model import TextDelta, ThinkingDelta
from handaxe.storage.event_log import EventLog
from handaxe.storage.home import get_session_directory
from handaxe.storage.sessions import LOG_NAME, fork_session, read_history

HERE = Path(__file__).parent


def script():
    """Words, thoughts, calls side by side, a broken one, a change, an unknown tool."""
    return (
        [
            ThinkingDelta("Hm"),
            ThinkingDelta(".", "signed"),
            TextDelta("Let me look."),
            *call("a1", "Read", {"file_path": "a.txt"}),
            *call("a2", "Glob", {"pattern": "*"}),
            ended("tool_use"),
        ],
        [*call("b1", "Read", None, '{"file_'), *call("b2", "Nope", {"x": 1}), ended("tool_use")],
        [
            TextDelta("Now the change."),
            *call("c1", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
            *call("c2", "Read", {"file_path": "a.txt"}),
            TextDelta("Both."),
            ended("tool_use"),
        ],
        says("Done."),
    )


def replayed(log: Path) -> AgentConversation:
    history = read_history(log)
    events = EventLog(log)
    for call_id, offset in history.results.items():
        events.replay(call_id, offset)
    return AgentConversation.from_events(history.said, events.result_of)


def home() -> Path:
    return Path(os.environ["HANDAXE_HOME"])


@pytest.fixture
async def worked(project: Path) -> Session:
    (project / "a.txt").write_text("one\n")
    async with Session(project, permission_mode="acceptEdits") as session:
        final = await Agent(Player(*script()), session).ask("Change it.")
        assert final.result == "Done."
    return session


@pytest.mark.proves("SS-3")
async def test_a_log_cut_after_any_byte_gives_a_conversation_that_can_be_sent(
    worked: Session, tmp_path: Path
):
    whole = (get_session_directory(home(), worked.id) / LOG_NAME).read_bytes()
    cut = tmp_path / "cut.jsonl"
    lengths: set[int] = set()
    for size in [*range(0, len(whole), 13), len(whole)]:
        cut.write_bytes(whole[:size])
        messages = replayed(cut).messages
        assert complaints(messages) == [], size
        lengths.add(len(messages))
    assert lengths == set(range(max(lengths) + 1)) - {2, 4, 6}
    assert max(lengths) == 8


async def test_a_session_cut_after_any_line_goes_on(worked: Session, project: Path):
    whole = (get_session_directory(home(), worked.id) / LOG_NAME).read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for number, end in enumerate(ends):
        place = get_session_directory(home(), f"cut{number}")
        place.mkdir(parents=True)
        (place / LOG_NAME).write_bytes(whole[:end])
        async with Session(project, session_id=f"cut{number}") as session:
            model = Player(says("On we go."))
            agent = Agent(model, session, memory=False)
            assert (await agent.ask("Go on.")).result == "On we go."
            assert complaints(model.requests[0].messages) == []
            expected = agent.messages
        async with Session(project, session_id=f"cut{number}") as again:
            assert Agent(Player(), again, memory=False).messages == expected
        shutil.rmtree(place)


@pytest.mark.parametrize("seed", range(4))
async def test_a_killed_process_leaves_a_conversation_that_goes_on(
    project: Path, seed: int, monkeypatch: pytest.MonkeyPatch
):
    """Kill the whole process at any moment; nothing that ran is missing from the conversation."""
    chance = random.Random(seed)
    process = subprocess.Popen(
        [sys.executable, str(HERE / "killed_agent.py"), str(project), "victim"],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    for _ in range(chance.randrange(1, 60)):
        assert process.stdout.read(1) == b"."
    await asyncio.sleep(chance.random() / 200)
    process.kill()
    process.wait()
    process.stdout.close()
    async with Session(project, session_id="victim") as session:
        model = Player(says("On we go."))
        agent = Agent(model, session, memory=False)
        await agent.ask("Go on.")
    assert complaints(model.requests[0].messages) == []
    told = str(model.requests[0].messages)
    for path in project.glob("new*.txt"):
        assert path.name in told


async def test_an_interrupt_at_any_event_leaves_a_conversation_that_goes_on(project: Path):
    async def play(stop_at: int | None) -> int:
        (project / "a.txt").write_text("one\n")
        async with Session(project, permission_mode="acceptEdits") as session:
            model = Player(*script(), says("Again."), says("And again."))
            agent = Agent(model, session, memory=False)
            count = 0
            async for _ in agent.run("Change it."):
                count += 1
                if count == stop_at:
                    agent.interrupt()
            assert complaints(agent.messages) == []
            live = agent.messages
            model = Player(says("Hello."))
        async with Session(project, session_id=session.id) as again:
            agent = Agent(model, again, memory=False)
            assert agent.messages == live
            assert (await agent.ask("Hi.")).result == "Hello."
            assert complaints(model.requests[0].messages) == []
        return count

    total = await play(None)
    assert total > 30
    for stop_at in range(1, total - 1):
        await play(stop_at)


async def test_a_fork_has_the_same_past_and_its_own_future(worked: Session, project: Path):
    fork_session(home(), worked.id, "twin")
    async with (
        Session(project, session_id="twin") as twin,
        Session(project, session_id=worked.id) as original,
    ):
        one, other = Agent(Player(says("A.")), twin), Agent(Player(says("B.")), original)
        assert one.messages == other.messages
        await one.ask("Go left.")
        await other.ask("Go right.")
    assert "Go left." not in str(other.messages)
    assert complaints(one.messages) == complaints(other.messages) == []


async def test_a_consumer_that_walks_away_leaves_everything_tidy(project: Path):
    (project / "a.txt").write_text("one\n")
    async with Session(project) as session:
        model = Player(calls(("a1", "Read", {"file_path": "a.txt"})), says("Done."))
        agent = Agent(model, session)
        stream = agent.run("Look.")
        async for event in stream:
            if type(event).__name__ == "ToolCalled":
                break
        await stream.aclose()
        assert not agent.loop.is_running
        assert complaints(agent.messages) == []
