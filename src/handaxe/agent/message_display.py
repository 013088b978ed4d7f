"""Hooks for displayed answers: `MessageDisplay`.

Only the display changes. The conversation, the log and the model keep the original answer.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import uuid4

import msgspec

from handaxe.agent.events import AgentEvent, MessageAdded, RunFinished, ToolCalled
from handaxe.contract.content import TextBlock
from handaxe.contract.events import AssistantSaid
from handaxe.contract.messages import AssistantBlock, AssistantMessage
from handaxe.contract.ports.model import TextDelta
from handaxe.hooks.notify import fire_hooks
from handaxe.pipeline.context import PipelineContext

Events = AsyncGenerator[AgentEvent, None]


async def display_events(context: PipelineContext, events: Events, *, by_lines: bool) -> Events:
    """The displayed events of a run: line by line on a screen, otherwise complete answers."""
    async with aclosing(events):
        if not context.hooks.watches("MessageDisplay"):
            async for event in events:
                yield event
            return
        display = _LineDisplay(context) if by_lines else _WholeMessageDisplay(context)
        async for event in events:
            async for shown in display.show(event):
                yield shown


class _Display:
    """The display of one run with hooks."""

    def __init__(self, context: PipelineContext) -> None:
        self._context = context
        self._turn_id = str(uuid4())
        self._message_id = str(uuid4())
        self._index = 0

    async def _replaced(self, delta: str, *, final: bool) -> str:
        """The text to show instead of a piece; the piece itself if no hook changes it."""
        outcome = await fire_hooks(
            self._context,
            "MessageDisplay",
            turn_id=self._turn_id,
            message_id=self._message_id,
            index=self._index,
            final=final,
            delta=delta,
        )
        self._index += 1
        if final:
            self._message_id, self._index = str(uuid4()), 0
        shown = outcome.extra.get("displayContent")
        return shown if isinstance(shown, str) else delta


class _LineDisplay(_Display):
    """Complete lines as they come; the rest at the end of the answer, or before its first call."""

    def __init__(self, context: PipelineContext) -> None:
        super().__init__(context)
        self._rest = ""
        self._is_open = False

    async def show(self, event: AgentEvent) -> Events:
        """The display of an event."""
        if isinstance(event, TextDelta):
            self._is_open = True
            lines, newline, self._rest = (self._rest + event.text).rpartition("\n")
            if newline:
                yield TextDelta(await self._replaced(lines + newline, final=False))
            return
        is_over = isinstance(event, ToolCalled) or (
            isinstance(event, MessageAdded) and isinstance(event.message, AssistantMessage)
        )
        if is_over and self._is_open:
            rest, self._rest, self._is_open = self._rest, "", False
            if text := await self._replaced(rest, final=True):
                yield TextDelta(text)
        yield event


class _WholeMessageDisplay(_Display):
    """Each answer when it is complete."""

    def __init__(self, context: PipelineContext) -> None:
        super().__init__(context)
        self._last = ("", "")

    async def show(self, event: AgentEvent) -> Events:
        """The display of an event."""
        if isinstance(event, AssistantSaid):
            content = await self._content(event.content)
            event = msgspec.structs.replace(event, content=content)
        elif isinstance(event, RunFinished) and event.result == self._last[0]:
            event = msgspec.structs.replace(event, result=self._last[1])
        yield event

    async def _content(self, blocks: tuple[AssistantBlock, ...]) -> tuple[AssistantBlock, ...]:
        text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
        if not text:
            return blocks
        shown = await self._replaced(text, final=True)
        self._last = (text, shown)
        first = next(at for at, block in enumerate(blocks) if isinstance(block, TextBlock))
        kept = [block for block in blocks if not isinstance(block, TextBlock)]
        return (*blocks[:first], TextBlock(shown), *kept[first:])
