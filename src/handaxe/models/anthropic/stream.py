"""The stream of the Messages API, event by event."""

from collections.abc import Iterator
from typing import Any, cast

from handaxe.contract.messages import StopReason, Usage
from handaxe.contract.ports.model import (
    MessageEnded,
    ModelEvent,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
)
from handaxe.models.anthropic.request import REDACTED
from handaxe.models.failures import Server, refusal_in_stream
from handaxe.models.tool_input import read_input

Json = dict[str, Any]

_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
}


class MessageReader:
    """What the stream has said so far; events that are not known are passed over."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._calls: dict[int, _Call] = {}
        self._usage: dict[str, int] = {}
        self._model = ""
        self._message_id = ""
        self._stop_reason = ""
        self._has_calls = False
        self.is_done = False

    @property
    def is_complete(self) -> bool:
        """Whether the stream may end here."""
        return self.is_done or bool(self._stop_reason)

    def read(self, event: Json) -> Iterator[ModelEvent]:
        """The events that follow from one event of the server."""
        kind = event.get("type")
        if kind == "content_block_delta":
            yield from self._delta(event.get("index", 0), _dict(event.get("delta")))
        elif kind == "content_block_start":
            yield from self._block(event.get("index", 0), _dict(event.get("content_block")))
        elif kind == "content_block_stop":
            call = self._calls.pop(event.get("index", 0), None)
            if call is not None:
                yield call.ended()
        elif kind in ("message_start", "message"):
            yield from self._start(_dict(event.get("message")) if "message" in event else event)
        elif kind == "message_delta":
            self._stop_reason = _dict(event.get("delta")).get("stop_reason") or self._stop_reason
            self._count(_dict(event.get("usage")))
        elif kind == "message_stop":
            self.is_done = True
        elif kind == "error":
            raise refusal_in_stream(self._server, event)

    def end(self) -> Iterator[ModelEvent]:
        """What is left when the stream is over: a call that was cut off, and the end."""
        for call in self._calls.values():
            yield call.ended()
        self._calls = {}
        reason = _STOP_REASONS.get(self._stop_reason, "end_turn")
        yield MessageEnded(
            "tool_use" if self._has_calls and reason == "end_turn" else reason,
            Usage(
                input_tokens=self._usage.get("input_tokens", 0),
                output_tokens=self._usage.get("output_tokens", 0),
                cache_read_tokens=self._usage.get("cache_read_input_tokens", 0),
                cache_write_tokens=self._usage.get("cache_creation_input_tokens", 0),
            ),
            self._model,
            self._message_id,
        )

    def _start(self, message: Json) -> Iterator[ModelEvent]:
        self._model = str(message.get("model") or "")
        self._message_id = str(message.get("id") or "")
        self._count(_dict(message.get("usage")))
        # A server that does not stream sends the whole message at once.
        for index, block in enumerate(message.get("content") or ()):
            yield from self._block(index, _dict(block))
            call = self._calls.pop(index, None)
            if call is not None:
                yield call.ended()
        self._stop_reason = message.get("stop_reason") or ""

    def _block(self, index: int, block: Json) -> Iterator[ModelEvent]:
        kind = block.get("type")
        if kind == "tool_use":
            call = _Call(str(block.get("id") or ""), str(block.get("name") or ""), block)
            self._calls[index] = call
            self._has_calls = True
            yield ToolStarted(call.id, call.name)
        elif kind == "redacted_thinking":
            yield ThinkingDelta("", REDACTED + str(block.get("data") or ""))
        elif kind == "text" and block.get("text"):
            yield TextDelta(block["text"])
        elif kind == "thinking" and (block.get("thinking") or block.get("signature")):
            yield ThinkingDelta(block.get("thinking") or "", block.get("signature") or "")

    def _delta(self, index: int, delta: Json) -> Iterator[ModelEvent]:
        kind = delta.get("type")
        if kind == "text_delta" and delta.get("text"):
            yield TextDelta(delta["text"])
        elif kind == "input_json_delta" and delta.get("partial_json"):
            call = self._calls.get(index)
            if call is not None:
                call.pieces.append(delta["partial_json"])
                yield ToolInputDelta(call.id, delta["partial_json"])
        elif kind == "thinking_delta" and delta.get("thinking"):
            yield ThinkingDelta(delta["thinking"])
        elif kind == "signature_delta" and delta.get("signature"):
            yield ThinkingDelta("", delta["signature"])

    def _count(self, usage: Json) -> None:
        # Numbers are cumulative: a later one replaces an earlier one.
        self._usage |= {key: value for key, value in usage.items() if isinstance(value, int)}


class _Call:
    def __init__(self, id: str, name: str, block: Json) -> None:
        self.id = id
        self.name = name
        self.pieces: list[str] = []
        self._given = block.get("input")
        """Some servers send the whole input with the start of the call."""

    def ended(self) -> ToolEnded:
        if not self.pieces and self._given:
            return ToolEnded(self.id, self.name, self._given)
        read = read_input("".join(self.pieces))
        return ToolEnded(self.id, self.name, read.value, read.broken)


def _dict(value: Any) -> Json:  # noqa: ANN401 - a part of decoded JSON
    return cast("Json", value) if isinstance(value, dict) else {}
