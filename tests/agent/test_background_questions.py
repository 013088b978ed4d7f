"""Questions of agents in the background: they have a deadline and hold nobody up."""

import asyncio
from pathlib import Path

import pytest
from players import Player, calls, says
from tests.waiting import until

from handaxe import Agent, Allow, PermissionRequest, Session
from handaxe.permission.prompts import PromptQueue

pytestmark = pytest.mark.proves("PM-4")


def write(name: str):
    return name, "Write", {"file_path": f"{name}.txt", "content": "x"}


def task(**more: object):
    return "t1", "Agent", {"description": "A task", "prompt": "Do it.", **more}


async def test_a_question_that_nobody_answers_is_refused_and_the_parent_told(project: Path):
    asked: list[PermissionRequest] = []

    async def on_ask(request: PermissionRequest) -> Allow:
        asked.append(request)
        if request.agent_id is not None:
            await asyncio.Event().wait()
        return Allow()

    def answer(request):
        words = str(request.messages)
        if "Do it." in words and "A task" not in words:
            return says("Could not.") if "No answer within" in words else calls(write("agents"))
        if "Refused because of missing permission" in words:
            return says("The agent was refused.")
        return calls(write("mine")) if len(asked) == 1 else says("I wait.")

    settings = {"agents": {"question_deadline_s": 0.3}}
    async with Session(project, on_ask=on_ask, settings=settings) as session:
        model = Player(calls(task(run_in_background=True)), *[answer] * 8)
        final = await Agent(model, session).ask("Go.")
    assert final.result == "The agent was refused."
    told = str(model.requests[-1].messages)
    assert "Write: The call was refused. No answer within 0.3 seconds" in told
    assert not (project / "agents.txt").exists()


async def test_nobody_hurries_a_person_that_an_agent_in_the_foreground_asks(project: Path):
    standing = asyncio.Event()

    async def on_ask(request: PermissionRequest) -> Allow:
        # Many deadlines long, as far as any clock is concerned.
        for _ in range(50):
            await asyncio.sleep(0.002)
        standing.set()
        return Allow()

    settings = {"agents": {"question_deadline_s": 0.01}}
    async with Session(project, on_ask=on_ask, settings=settings) as session:
        model = Player(calls(task()), calls(write("agents")), says("Done."), says("Done."))
        await Agent(model, session).ask("Go.")
    assert standing.is_set()
    assert (project / "agents.txt").exists()


async def test_what_somebody_waits_for_comes_first():
    turns, order = PromptQueue(), []
    begin = asyncio.Event()

    async def take(name: str, *, in_background: bool) -> None:
        async with turns.turn(in_background=in_background):
            order.append(name)
            await begin.wait()

    tasks = [
        asyncio.ensure_future(take(name, in_background=name.startswith("b")))
        for name in ("b0", "b1", "f1", "b2", "f2", "gone")
    ]
    await until(lambda: len(order) == 1)
    tasks[-1].cancel()
    begin.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["b0", "f1", "f2", "b1", "b2"]


async def test_whoever_goes_away_when_called_passes_the_turn_on():
    turns, order = PromptQueue(), []
    first = asyncio.Event()

    async def take(name: str) -> None:
        async with turns.turn(in_background=False):
            order.append(name)
            await first.wait()

    tasks = [asyncio.ensure_future(take(name)) for name in "abc"]
    await until(lambda: order == ["a"])
    # Both in the same turn of the event loop: b is called and cancelled at once.
    first.set()
    tasks[0].add_done_callback(lambda _: tasks[1].cancel())
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order in (["a", "c"], ["a", "b", "c"])
    async with turns.turn(in_background=False):
        order.append("d")
    assert order[-1] == "d"
