"""A session has one conversation: two agents never speak in it at the same time."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handaxe import Agent, Session, SetupError
from handaxe.contract.faults.session import SessionBusy
from handaxe.contract.messages import TokenUsage, UserMessage
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelRequest,
    TextDelta,
)


class Echo(Model):
    """Says how many messages it was sent."""

    name = "echo"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        yield TextDelta(f"I was sent {len(request.messages)}.")
        yield MessageEnded("end_turn", TokenUsage())


async def test_a_second_agent_is_refused_while_the_first_one_works(session: Session):
    first, second = Agent(Echo(), session), Agent(Echo(), session)
    events = first.run("One.")
    await anext(events)
    with pytest.raises(SessionBusy) as refused:
        await second.ask("Two.")
    assert refused.value.code == "session.busy"
    with pytest.raises(SessionBusy) as refused:
        await second.compact()
    assert refused.value.code == "session.busy"
    assert [event async for event in events]
    assert (await second.ask("Two.")).result == "I was sent 3."


async def test_agents_in_turn_share_one_conversation_and_resuming_finds_it(project: Path):
    async with Session(project) as session:
        agents = [Agent(Echo(), session, memory=False) for _ in range(3)]
        for number, which in enumerate([0, 1, 0, 2, 1]):
            final = await agents[which].ask(f"Number {number}.")
            assert final.result == f"I was sent {2 * number + 1}."
        late = Agent(Echo(), session, memory=False)
        said = late.messages
        assert len([m for m in said if isinstance(m, UserMessage)]) == 5
    async with Session(project, session_id=session.id) as again:
        assert Agent(Echo(), again, memory=False).messages == said


async def test_a_run_that_could_not_begin_keeps_nobody_away(session: Session):
    first, second = Agent(Echo(), session), Agent(Echo(), session)
    with pytest.raises(SetupError):
        await first.ask("  ")
    assert (await second.ask("Two.")).result == "I was sent 1."
    events = second.run("Three.")
    await anext(events)
    await events.aclose()
    assert (await first.ask("Four.")).subtype == "success"


async def test_agents_of_two_processes_in_a_shared_session_take_turns(project: Path):
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from handaxe import Agent, Session
from test_one_conversation import Echo

async def main():
    async with Session({str(project)!r}, session_id="s", shared=True) as session:
        agent = Agent(Echo(), session, memory=False)
        events = agent.run("From elsewhere.")
        await anext(events)
        print(flush=True)
        await asyncio.to_thread(input)
        async for event in events:
            pass
        print(flush=True)
        await asyncio.to_thread(input)

asyncio.run(main())
"""
    async with Session(project, session_id="s", shared=True) as session:
        agent = Agent(Echo(), session, memory=False)
        assert (await agent.ask("One.")).result == "I was sent 1."
        with subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            other.stdout.readline()
            with pytest.raises(SessionBusy) as refused:
                await agent.ask("Two.")
            assert refused.value.code == "session.busy"
            other.stdin.write(b"\n")
            other.stdin.flush()
            other.stdout.readline()
            assert (await agent.ask("Two.")).result == "I was sent 5."
            other.kill()
