"""Commands that a sub-agent leaves in the background: who is told, and how long they live."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from players import Player, calls, says
from tests.waiting import until

from handaxe import Agent, Session
from handaxe.contract.events import Event, JobEnded
from handaxe.contract.ports.model import ModelRequest

LONG = "while [ ! -e go ]; do sleep 0.02; done; echo over"


@pytest.fixture
async def free(project: Path):
    async with Session(project, permission_mode="bypassPermissions") as opened:
        yield opened


def task(**more: Any) -> tuple[str, str, dict[str, Any]]:
    return ("t1", "Agent", {"description": "A task", "prompt": "Do it.", **more})


def background(command: str) -> tuple[str, str, dict[str, Any]]:
    return ("b1", "Bash", {"command": command, "run_in_background": True})


def is_agents(request: ModelRequest) -> bool:
    return "Do it." in str(request.messages[0])


def heard(model: Player, *, by_agent: bool) -> list[str]:
    """What the agent, or the session's own, was told of commands, in its last request."""
    requests = [request for request in model.requests if is_agents(request) == by_agent]
    texts = [
        getattr(block, "text", "") for message in requests[-1].messages for block in message.content
    ]
    return [text for text in texts if "<task-notification>" in text]


def ends_of(session: Session) -> asyncio.Event:
    over = asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, JobEnded) and event.job.kind == "shell":
            over.set()

    session.subscribe(hear)
    return over


async def test_the_agent_that_started_a_command_is_told_of_its_end(free: Session):
    over = ends_of(free)
    model = Player(
        calls(task(run_in_background=False)),
        calls(background("echo made")),
        [over, *calls(("g1", "Glob", {"pattern": "*"}))],
        says("It ended."),
        says("Good."),
    )
    final = await Agent(model, free).ask("Go.")
    assert final.result == "Good."
    (told,) = heard(model, by_agent=True)
    assert "completed (exit code 0)" in told
    assert heard(model, by_agent=False) == []
    assert free.jobs.take_notices() == ()


async def test_an_agent_that_is_waited_for_takes_its_commands_along(free: Session, project: Path):
    over = ends_of(free)
    model = Player(
        calls(task(run_in_background=False)),
        calls(background(LONG)),
        says("Started."),
        [over, *calls(("g1", "Glob", {"pattern": "*"}))],
        says("Good."),
    )
    await Agent(model, free).ask("Go.")
    (state,) = [state for state in free.jobs.listed() if state.kind == "shell"]
    assert (state.status, state.ended_by) == ("killed", "stopped")
    (told,) = heard(model, by_agent=False)
    assert "was stopped" in told


async def test_commands_of_an_agent_in_the_background_outlive_it(free: Session, project: Path):
    over = ends_of(free)

    def answer(request: ModelRequest) -> Any:
        if is_agents(request):
            is_started = "running in background" in str(request.messages)
            return says("Started.") if is_started else calls(background(LONG))
        if "<result>Started." not in str(request.messages):
            return says("I wait.")
        if "exit code 0" in str(request.messages):
            return says("All of it is over.")
        (project / "go").touch()
        return [over, *calls(("g1", "Glob", {"pattern": "*"}))]

    model = Player(calls(task(run_in_background=True)), *[answer] * 6)
    final = await Agent(model, free).ask("Go.")
    assert final.result == "All of it is over."
    assert heard(model, by_agent=True) == []


async def test_an_agent_is_told_of_the_agents_it_started(free: Session):
    inner = {"description": "A part", "prompt": "Find it.", "run_in_background": True}

    def answer(request: ModelRequest) -> Any:
        if "Find it." in str(request.messages[0]):
            return says("Found.")
        if not is_agents(request):
            return says("Done.")
        if "<result>Found." in str(request.messages):
            return says("My agent found it.")
        return [0.05, *calls((f"g{len(request.messages)}", "Glob", {"pattern": "*"}))]

    model = Player(
        calls(task(run_in_background=False)), calls(("i1", "Agent", inner)), *[answer] * 200
    )
    final = await Agent(model, free).ask("Go.")
    assert final.result == "Done."
    assert any("Found." in text for text in heard(model, by_agent=True))
    await until(lambda: not free.jobs.running())
    assert free.jobs.take_notices() == ()
