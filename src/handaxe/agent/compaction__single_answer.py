"""One question to a model, of whose answer only the words count."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from handaxe.agent.limits import Meter
from handaxe.contract.ports.model import MessageEnded, Model, ModelEvent, ModelRequest, TextDelta


async def request_text(model: Model, request: ModelRequest, meter: Meter) -> str:
    """All that the model says; what it cost is counted."""
    said: list[str] = []
    stream = cast("AsyncGenerator[ModelEvent, None]", model.stream(request))
    async with aclosing(stream) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                said.append(event.text)
            elif isinstance(event, MessageEnded):
                meter.add(event.model or model.name, event.usage, asked=model.name)
    return "".join(said)
