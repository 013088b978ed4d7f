"""The stream of the Messages API, event by event."""

from collections.abc import Iterator

from handaxe.contract.messages import StopReason, TokenUsage
from handaxe.contract.ports.model import (
    MessageEnded,
    ModelEvent,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
    VendorBlockEnded,
)
from handaxe.models.anthropic.request import REDACTED, VENDOR
from handaxe.models.failures import ModelServer, make_stream_failure
from handaxe.models.response_json import Json, read_input, to_count, to_object, to_objects, to_text
from handaxe.schema.native_deferral import CALL, RESULT, list_found_tools

_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "stop_sequence": "stop_sequence",
    "pause_turn": "pause_turn",
    "refusal": "refusal",
}


_WHOLE = "whole"


class MessageReader:
    """Turns the events of the stream into model events; unknown ones are ignored."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._calls: dict[str, _Call] = {}
        self._searches: dict[str, _Search] = {}
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
        """The model events for one event of the server."""
        kind = event.get("type")
        if kind == "content_block_delta":
            yield from self._delta(_get_block_index(event), to_object(event.get("delta")))
        elif kind == "content_block_start":
            yield from self._block(_get_block_index(event), to_object(event.get("content_block")))
        elif kind == "content_block_stop":
            yield from self._stop(_get_block_index(event))
        elif kind in ("message_start", "message"):
            yield from self._start(to_object(event.get("message")) if "message" in event else event)
        elif kind == "message_delta":
            reason = to_text(to_object(event.get("delta")).get("stop_reason"))
            self._stop_reason = reason or self._stop_reason
            self._count(to_object(event.get("usage")))
        elif kind == "message_stop":
            self.is_done = True
        elif kind == "error":
            raise make_stream_failure(self._server, event)

    def end(self) -> Iterator[ModelEvent]:
        """The last model events: calls that were cut off, and the end."""
        for call in self._calls.values():
            yield call.ended()
        self._calls = {}
        reason = _STOP_REASONS.get(self._stop_reason, "end_turn")
        yield MessageEnded(
            "tool_use" if self._has_calls and reason == "end_turn" else reason,
            TokenUsage(
                input_tokens=self._usage.get("input_tokens", 0),
                output_tokens=self._usage.get("output_tokens", 0),
                cache_read_tokens=self._usage.get("cache_read_input_tokens", 0),
                cache_write_tokens=self._usage.get("cache_creation_input_tokens", 0),
            ),
            self._model,
            self._message_id,
        )

    def _start(self, message: Json) -> Iterator[ModelEvent]:
        self._model = to_text(message.get("model"))
        self._message_id = to_text(message.get("id"))
        self._count(to_object(message.get("usage")))
        # A server that does not stream sends the whole message at once.
        for block in to_objects(message.get("content")):
            yield from self._block(_WHOLE, block)
            yield from self._stop(_WHOLE)
        self._stop_reason = to_text(message.get("stop_reason"))

    def _block(self, place: str, block: Json) -> Iterator[ModelEvent]:
        kind = block.get("type")
        if kind == "tool_use":
            # The call before was never ended, but the model made it.
            yield from self._stop(place)
            call = _Call(to_text(block.get("id")), to_text(block.get("name")), block)
            self._calls[place] = call
            self._has_calls = True
            yield ToolStarted(call.id, call.name)
        elif kind == CALL:
            self._searches[place] = _Search(block)
        elif kind == RESULT:
            yield VendorBlockEnded(VENDOR, block, tuple(list_found_tools(block)))
        elif kind == "redacted_thinking":
            yield ThinkingDelta("", REDACTED + to_text(block.get("data")))
        elif kind == "text" and (text := to_text(block.get("text"))):
            yield TextDelta(text)
        elif kind == "thinking":
            thinking, signature = to_text(block.get("thinking")), to_text(block.get("signature"))
            if thinking or signature:
                yield ThinkingDelta(thinking, signature)

    def _delta(self, place: str, delta: Json) -> Iterator[ModelEvent]:
        kind = delta.get("type")
        if kind == "text_delta" and (text := to_text(delta.get("text"))):
            yield TextDelta(text)
        elif kind == "input_json_delta" and (piece := to_text(delta.get("partial_json"))):
            call = self._calls.get(place)
            if place in self._searches:
                self._searches[place].pieces.append(piece)
            elif call is not None:
                call.pieces.append(piece)
                yield ToolInputDelta(call.id, piece)
        elif kind == "thinking_delta" and (thinking := to_text(delta.get("thinking"))):
            yield ThinkingDelta(thinking)
        elif kind == "signature_delta" and (signature := to_text(delta.get("signature"))):
            yield ThinkingDelta("", signature)

    def _stop(self, place: str) -> Iterator[ModelEvent]:
        call = self._calls.pop(place, None)
        if call is not None:
            yield call.ended()
        search = self._searches.pop(place, None)
        if search is not None:
            yield search.ended()

    def _count(self, usage: Json) -> None:
        # The numbers are totals: a later one replaces an earlier one.
        self._usage |= {key: to_count(value) for key, value in usage.items() if value is not None}


class _Call:
    def __init__(self, id: str, name: str, block: Json) -> None:
        self.id = id
        self.name = name
        self.pieces: list[str] = []
        self._given = block.get("input")
        """The input, if the server sends it with the start of the call."""

    def ended(self) -> ToolEnded:
        if not self.pieces and self._given:
            return ToolEnded(self.id, self.name, self._given)
        read = read_input("".join(self.pieces))
        return ToolEnded(self.id, self.name, read.value, read.broken)


class _Search:
    """A tool search of the vendor, while its input arrives."""

    def __init__(self, block: Json) -> None:
        self._block = block
        self.pieces: list[str] = []

    def ended(self) -> VendorBlockEnded:
        if not self.pieces:
            return VendorBlockEnded(VENDOR, self._block)
        given = to_object(read_input("".join(self.pieces)).value)
        return VendorBlockEnded(VENDOR, {**self._block, "input": given})


def _get_block_index(event: Json) -> str:
    """The index of the block that an event belongs to; usually a number."""
    return str(event.get("index", 0))
