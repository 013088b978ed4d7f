"""An agent with a model of its own making: anything that streams events is a model."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import handaxe
from handaxe.events import RunFinished, ToolAnswered
from handaxe.models import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelRequest,
    TextDelta,
    TokenUsage,
    ToolEnded,
)


class Parrot(Model):
    """Reads a file, then says what it saw."""

    name = "parrot"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """One answer."""
        if len(request.messages) == 1:
            yield ToolEnded("call_1", "Read", {"file_path": "greeting.txt"})
            yield MessageEnded("tool_use", TokenUsage())
        else:
            yield TextDelta("It says hello.")
            yield MessageEnded("end_turn", TokenUsage())


async def main() -> None:
    """Ask once, and watch."""
    Path("greeting.txt").write_text("hello\n")  # noqa: ASYNC240 - an example
    async with handaxe.Agent(Parrot(), root=".", max_turns=5) as agent:
        async for event in agent.run("What does greeting.txt say?"):
            if isinstance(event, ToolAnswered):
                print(event.result.tool, "gave", event.result.text.strip())
            elif isinstance(event, RunFinished):
                print(event.subtype, "-", event.result)


asyncio.run(main())
