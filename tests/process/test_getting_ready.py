"""What takes long to start starts when the model begins to ask, not when its input is whole."""

import os
from collections.abc import AsyncIterator

import pytest
from tests.expected_types import get_result_text

from handaxe import Agent, Session
from handaxe.contract.messages import TokenUsage
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolEnded,
    ToolStarted,
)
from handaxe.process.worker_pool import WORKERS


class Slow(Model):
    """Names a tool, looks who runs by then, and only then says what the tool is to do."""

    name = "slow"

    def __init__(self, tool: str, command: str) -> None:
        self._tool = tool
        self._command = command
        self.seen: list[int] = []
        self.answers: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """One call, then words."""
        if len(request.messages) > 1:
            self.answers = [get_result_text(block) for block in request.messages[-1].content]
            yield TextDelta("Done.")
            yield MessageEnded("end_turn", TokenUsage())
            return
        yield ToolStarted("c1", self._tool)
        self.seen.append(WORKERS.supervisor_pid)
        yield ToolEnded("c1", self._tool, {"command": self._command})
        yield MessageEnded("tool_use", TokenUsage())


@pytest.mark.proves("EX-2")
async def test_the_supervisor_of_commands_starts_while_the_input_of_the_first_call_still_comes(
    tmp_path,
):
    WORKERS.shut_down()
    before = WORKERS.supervisor_pid
    model = Slow("Bash", "echo hello")
    async with Session(tmp_path, settings={"permissions": {"allow": ["Bash"]}}) as session:
        await Agent(model, session, memory=False).ask("Go.")
    assert model.seen != [before]
    os.kill(model.seen[0], 0)
    assert WORKERS.supervisor_pid == model.seen[0]
    assert "hello" in model.answers[0]


async def test_a_tool_that_nobody_knows_makes_nothing_ready(tmp_path):
    WORKERS.shut_down()
    before = WORKERS.supervisor_pid
    model = Slow("Bsh", "echo hello")
    async with Session(tmp_path) as session:
        await Agent(model, session, memory=False).ask("Go.")
    assert model.seen == [before]
    assert "no tool" in model.answers[0].lower()
