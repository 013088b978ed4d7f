"""A model that plays prepared turns, for tests of whoever talks to a model."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from handaxe.contract.messages import TokenUsage
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelFailed,
    ModelRequest,
    TextDelta,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
)

Step = ModelEvent | ModelFailed | asyncio.Event | float
Turn = Sequence[Step] | Callable[[ModelRequest], Sequence[Step]]


class Player(Model):
    """Plays one list of steps for each request; waits at events, raises failures."""

    def __init__(self, *turns: Turn, name: str = "player", context_tokens: int = 200_000) -> None:
        self.name = name
        self.context_tokens = context_tokens
        self._turns = list(turns)
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next turn."""
        self.requests.append(request)
        if not self._turns:
            raise ModelFailed("script_ended", "There are no more turns.")
        turn = self._turns.pop(0)
        for step in turn(request) if callable(turn) else turn:
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, int | float):
                await asyncio.sleep(step)
            elif isinstance(step, ModelFailed):
                raise step
            else:
                yield step


def says(*texts: str, stop: Any = "end_turn", tokens: int = 0) -> list[Step]:
    """An answer of words only."""
    return [*(TextDelta(text) for text in texts), ended(stop, tokens)]


def calls(*asked: tuple[str, str, dict[str, Any]], text: str = "", tokens: int = 0) -> list[Step]:
    """An answer that asks for calls: id, tool, input."""
    steps: list[Step] = [TextDelta(text)] if text else []
    for call_id, tool, call_input in asked:
        steps += call(call_id, tool, call_input)
    return [*steps, ended("tool_use", tokens)]


def call(call_id: str, tool: str, call_input: Any, broken: str | None = None) -> list[Step]:
    """The events of one call."""
    return [
        ToolStarted(call_id, tool),
        ToolInputDelta(call_id, broken or "{}"),
        ToolEnded(call_id, tool, call_input, broken),
    ]


def ended(stop: Any = "end_turn", tokens: int = 0) -> MessageEnded:
    """The last event of an answer."""
    usage = TokenUsage(input_tokens=tokens, output_tokens=min(tokens, 10))
    return MessageEnded(stop, usage, "player", "m")
