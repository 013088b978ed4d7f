"""One answer of the model: its text is passed on at once, and its calls start while it streams."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, cast

import msgspec

from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import AgentEvent, MessageAdded, ToolAnswered, ToolCalled
from handaxe.agent.loop_context import LoopContext
from handaxe.contract.call import ToolCall
from handaxe.contract.content import TextBlock
from handaxe.contract.events import AssistantEnded, AssistantSaid
from handaxe.contract.faults import BadInput, ToolFault
from handaxe.contract.messages import (
    AssistantBlock,
    AssistantMessage,
    StopReason,
    ThinkingBlock,
    TokenUsage,
    ToolUseBlock,
    VendorBlock,
)
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelFailed,
    ModelRequest,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
    VendorBlockEnded,
)
from handaxe.contract.result import ToolResult
from handaxe.text.sanitize import escape_surrogates

_MAX_SHOWN_CHARS = 200
_ID_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class ModelTurn:
    """An answer being received, with its calls."""

    def __init__(
        self,
        workplace: LoopContext,
        conversation: AgentConversation,
        tell: Callable[[AgentEvent], None],
        message_id: str,
    ) -> None:
        self._workplace = workplace
        self._conversation = conversation
        self._tell = tell
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._untold: list[AssistantBlock] = []
        self._ids: dict[str, str] = {}
        self.message_id = message_id
        self.stream = workplace.open_stream(lambda result: tell(ToolAnswered(result)))
        self.calls: list[ToolCall] = []
        self.content: list[AssistantBlock] = []
        self.usage = TokenUsage()
        self.stop_reason: StopReason = "aborted"
        self.model = ""
        self.model_s = 0.0
        self.is_ended = False
        self._over = asyncio.Event()

    def resume_calls(self, calls: Sequence[ToolCall]) -> None:
        """Run the deferred calls instead of asking for an answer."""
        self._is_over("tool_use")
        for call in calls:
            self.calls.append(call)
            self._tell(ToolCalled(call))
            self.stream.add(call)

    async def is_only(self, call_id: str) -> bool:
        """Whether this is the only call of the complete answer."""
        if all(call.id != call_id for call in self.calls):
            return False
        await self._over.wait()
        return len(self.calls) == 1 and self.stop_reason != "aborted"

    @property
    def has_said_anything(self) -> bool:
        """Whether any of it was passed on."""
        return bool(self.content or self._text or self._thinking or self._ids)

    async def hear(self, model: Model, request: ModelRequest) -> None:
        """Receive the answer.

        Raises:
            ModelFailed: no answer, or it was interrupted.
        """
        began = time.perf_counter()
        self.model = model.name
        try:
            stream = cast("AsyncGenerator[ModelEvent, None]", model.stream(request))
            async with aclosing(stream) as events:
                async for event in events:
                    self._take(event)
                    if self.is_ended:
                        return
        finally:
            self.model_s = time.perf_counter() - began
        raise ModelFailed("broken_stream", "The model's answer ended unexpectedly.")

    def cut_off(self) -> None:
        """End the answer here, whatever else the model sends."""
        if not self.is_ended and self.has_said_anything:
            self._end("aborted")

    async def results(self) -> list[ToolResult]:
        """Wait for the calls, in the requested order."""
        return await self.stream.results() if self.calls else []

    def _take(self, event: ModelEvent) -> None:
        match event:
            case TextDelta():
                self._close_thinking()
                self._text.append(event.text)
                self._tell(event)
            case ThinkingDelta():
                self._close_text()
                self._thinking.append(event.thinking)
                if event.signature:
                    self._close_thinking(event.signature)
                self._tell(event)
            case ToolStarted():
                self._close_text()
                self._close_thinking()
                call_id = self._ids[event.id] = self._choose_call_id(event.id)
                self._tell(ToolStarted(call_id, event.name))
                self.stream.expect(event.name)
            case ToolInputDelta():
                self._tell(ToolInputDelta(self._ids.get(event.id, event.id), event.json))
            case ToolEnded():
                self._call(event)
            case VendorBlockEnded():
                self._keep_vendor_block(event)
            case MessageEnded():
                self.usage = event.usage
                self.model = event.model or self.model
                self._end(event.stop_reason)
            case Retrying():
                self._tell(event)

    def _call(self, event: ToolEnded) -> None:
        """Log the call, then start it, so that every started call is in the log."""
        self._close_text()
        self._close_thinking()
        call_id = self._ids.pop(event.id, None) or self._choose_call_id(event.id)
        broken, name = event.broken, _sanitize_name(event.name)
        given: object = event.input
        call_input: dict[str, Any] = {}
        if broken is None and isinstance(given, dict):
            call_input = cast("dict[str, Any]", given)
        elif broken is None:
            broken = msgspec.json.encode(given, enc_hook=str).decode()
        call = ToolCall(call_id, name, call_input)
        self._add(ToolUseBlock(call_id, name, call.input, broken))
        self._write()
        self.calls.append(call)
        self._tell(ToolCalled(call))
        self.stream.add(call, fault=None if broken is None else _make_input_fault(name, broken))

    def _keep_vendor_block(self, event: VendorBlockEnded) -> None:
        self._close_text()
        self._close_thinking()
        self._add(VendorBlock(event.vendor, event.data))
        deferral = self._workplace.pipeline_context.deferral
        if deferral is not None:
            deferral.load_found(event.found_tools)

    def _end(self, stop_reason: StopReason) -> None:
        self._close_text()
        self._close_thinking()
        self._write()
        self._is_over(stop_reason)
        ended = AssistantEnded(
            message_id=self.message_id, stop_reason=stop_reason, usage=self.usage, model=self.model
        )
        self._workplace.pipeline_context.emit(ended)
        self._conversation.take(ended)
        if self.content:
            message = AssistantMessage(
                tuple(self.content), self.model, self.message_id, stop_reason, self.usage
            )
            self._tell(MessageAdded(message, self.message_id))

    def _is_over(self, stop_reason: StopReason) -> None:
        self.is_ended = True
        self.stop_reason = stop_reason
        self._over.set()

    def _write(self) -> None:
        if self._untold:
            said = AssistantSaid(message_id=self.message_id, content=tuple(self._untold))
            self._untold = []
            self._workplace.pipeline_context.emit(said)
            self._conversation.take(said)
            self._tell(said)

    def _add(self, block: AssistantBlock) -> None:
        self.content.append(block)
        self._untold.append(block)

    def _close_text(self) -> None:
        if self._text:
            self._add(TextBlock(escape_surrogates("".join(self._text))))
            self._text = []

    def _close_thinking(self, signature: str = "") -> None:
        if self._thinking:
            self._add(ThinkingBlock(escape_surrogates("".join(self._thinking)), signature))
            self._thinking = []

    def _choose_call_id(self, call_id: str) -> str:
        """The model's id, or a new one if it is already used or invalid for providers."""
        is_fine = 0 < len(call_id) <= 64 and _ID_CHARS.issuperset(call_id)
        is_taken = call_id in self._ids.values() or call_id in self._conversation.call_ids
        if is_fine and not is_taken and not self.stream.is_taken(call_id):
            return call_id
        return self._workplace.new_call_id()


def _sanitize_name(name: str) -> str:
    """A tool name that can be sent back, even if the model invented it."""
    kept = "".join(char if char in _ID_CHARS else "_" for char in name[:64])
    return kept or "unnamed"


def _make_input_fault(tool: str, raw: str) -> ToolFault:
    """The fault for an input that is not one JSON object."""
    try:
        value: Any = msgspec.json.decode(raw)
    except (ValueError, RecursionError) as error:
        if "truncated" in str(error):
            problem = (
                f"The input ends unexpectedly after {len(raw):,} characters; nothing was "
                "run. Send the whole call again, with less in it if it was too long for "
                "one answer"
            )
        else:
            problem = f"The input is not JSON ({error}); nothing was run. Send it again"
    else:
        kind = "a list" if isinstance(value, list) else type(value).__name__
        problem = f"The input must be one JSON object, not {kind}; nothing was run. Send it again"
    shown = raw if len(raw) <= _MAX_SHOWN_CHARS else f"...{raw[-_MAX_SHOWN_CHARS:]}"
    return BadInput(tool, [f"{problem}. It ended with: {shown!r}"])
