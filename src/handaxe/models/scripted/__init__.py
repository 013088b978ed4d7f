"""A scripted model for tests, demos and work without a network.

Belongs here: the script format, the position in a script, streaming its turns.
Does not: recordings of real models (`models.recording`).
May import: the other modules of `models`, and what `models` may import.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path

import msgspec

from handaxe.contract.messages import StopReason
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
)
from handaxe.models.response_json import read_input
from handaxe.models.scripted.script import (
    ModelScript,
    ScriptedFailure,
    ScriptedTurn,
    load_script,
    parse_script,
)
from handaxe.models.scripted.script_position import ScriptedConversations, ScriptedStep

__all__ = ["ModelScript", "ScriptedModel", "load_script", "parse_script"]


class ScriptedModel(Model):
    """A model that follows a script: the same requests give the same events."""

    def __init__(self, script: ModelScript | Path | str) -> None:
        self._script = script if isinstance(script, ModelScript) else load_script(Path(script))
        self.name = self._script.name
        self.context_tokens = self._script.context_tokens
        self._conversations = ScriptedConversations(self._script)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next turn of the script for this conversation."""
        return self._stream(request)

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        step = self._conversations.step(request)
        turn = step.turn
        trouble = _read_failure(turn)
        if trouble is not None and trouble.retries:
            for retry in _build_retries(trouble):
                yield retry
                await asyncio.sleep(retry.delay_s)
            trouble = None
        delay_ms = self._script.delay_ms if turn.delay_ms is None else turn.delay_ms
        pieces = [*_stream_step(step, self._script.chunk_chars)]
        for number, event in enumerate(pieces):
            if trouble is not None and number >= trouble.after:
                raise _build_model_failure(trouble)
            if delay_ms:
                await asyncio.sleep(delay_ms / 1000)
            yield event
        if trouble is not None:
            raise _build_model_failure(trouble)
        step.done()
        yield MessageEnded(_stop_reason(turn), step.usage, self.name, step.message_id)


def _stream_step(step: ScriptedStep, chunk_chars: int) -> Iterator[ModelEvent]:
    turn = step.turn
    for piece in _cut(turn.thinking, chunk_chars):
        yield ThinkingDelta(piece)
    if turn.thinking or turn.signature:
        yield ThinkingDelta("", turn.signature or "scripted")
    for piece in _cut(turn.text, chunk_chars):
        yield TextDelta(piece)
    for number, call in enumerate(turn.call, 1):
        id = call.id or step.call_id(number)  # noqa: A001 - what the ecosystem calls it
        yield ToolStarted(id, call.tool)
        raw = msgspec.json.encode(call.input).decode() if call.raw is None else call.raw
        for piece in _cut(raw, chunk_chars):
            yield ToolInputDelta(id, piece)
        read = read_input(raw)
        yield ToolEnded(id, call.tool, read.value, read.broken)


def _cut(text: str, size: int) -> Iterator[str]:
    for at in range(0, len(text), size):
        yield text[at : at + size]


def _stop_reason(turn: ScriptedTurn) -> StopReason:
    return turn.stop_reason or ("tool_use" if turn.call else "end_turn")


def _read_failure(turn: ScriptedTurn) -> ScriptedFailure | None:
    return ScriptedFailure(turn.fail) if isinstance(turn.fail, str) else turn.fail


def _build_retries(trouble: ScriptedFailure) -> Iterator[Retrying]:
    for attempt in range(1, trouble.retries + 1):
        yield Retrying(
            attempt=attempt,
            delay_s=trouble.delay_ms / 1000,
            status=trouble.status,
            sentence=trouble.sentence or f"The script says: {trouble.how}.",
        )


def _build_model_failure(trouble: ScriptedFailure) -> ModelFailed:
    sentence = trouble.sentence or f"The script says: {trouble.how}."
    return ModelFailed(trouble.how, sentence, status=trouble.status)
