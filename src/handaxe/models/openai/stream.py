"""The stream of a chat completion, in all the forms that servers send."""

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from handaxe.contract.messages import StopReason, TokenUsage
from handaxe.contract.ports.model import (
    MessageEnded,
    ModelEvent,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
)
from handaxe.models.failures import ModelServer, make_stream_failure
from handaxe.models.http_stream import DONE
from handaxe.models.response_json import (
    Json,
    is_complete_json,
    read_input,
    to_count,
    to_object,
    to_objects,
    to_text,
)

_STOP_REASONS: dict[str, StopReason] = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}


class CompletionReader:
    """Turns the chunks of the stream into model events."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._calls: list[_Call] = []
        self._usage = TokenUsage()
        self._model = ""
        self._message_id = ""
        self._finish_reason = ""
        self._has_output = False
        self._has_refused = False
        self.is_done = False

    @property
    def is_complete(self) -> bool:
        """Whether the stream may end here; some servers send no end mark."""
        return bool(self._finish_reason) or (self.is_done and self._has_output)

    def read(self, chunk: Json) -> Iterator[ModelEvent]:
        """The model events for one chunk."""
        if chunk.get("type") == DONE:
            self.is_done = True
            return
        if chunk.get("error"):
            raise make_stream_failure(self._server, chunk)
        self._model = str(chunk.get("model") or self._model)
        self._message_id = str(chunk.get("id") or self._message_id)
        if isinstance(chunk.get("usage"), dict):
            self._usage = _parse_usage(chunk["usage"])
        for choice in to_objects(chunk.get("choices")):
            if choice.get("index", 0) not in (0, None):
                continue
            # A server that does not stream sends a message in place of a delta.
            delta = choice.get("delta") or choice.get("message")
            yield from self._delta(to_object(delta))
            self._finish_reason = str(choice.get("finish_reason") or self._finish_reason)

    def end(self) -> Iterator[ModelEvent]:
        """The last model events: the rest of the calls, and the end."""
        for call in self._calls:
            yield from call.end()
        reason = _STOP_REASONS.get(self._finish_reason, "end_turn")
        if self._has_refused:
            reason = "refusal"
        if self._calls and reason == "end_turn":
            reason = "tool_use"
        elif not self._calls and reason == "tool_use":
            reason = "end_turn"
        yield MessageEnded(reason, self._usage, self._model, self._message_id)

    def _delta(self, delta: Json) -> Iterator[ModelEvent]:
        thinking = to_text(delta.get("reasoning_content")) or to_text(delta.get("reasoning"))
        if thinking:
            self._has_output = True
            yield ThinkingDelta(thinking)
        text = _parse_text(delta.get("content"))
        if refusal := to_text(delta.get("refusal")):
            self._has_refused = True
            text += refusal
        if text:
            self._has_output = True
            yield TextDelta(text)
        # Servers from before November 2023 send one call as `function_call`.
        old = to_object(delta.get("function_call"))
        parts = [{"index": 0, "function": old}] if old else to_objects(delta.get("tool_calls"))
        for part in parts:
            self._has_output = True
            yield from self._call_part(part)

    def _call_part(self, part: Json) -> Iterator[ModelEvent]:
        fields = to_object(part.get("function")) or part
        name = fields.get("name")
        call = self._call_for(part, str(name or ""))
        if call is None:
            # Calls come one after the other, so a complete one may start before the next.
            for earlier in self._calls:
                if is_complete_json(earlier.written):
                    yield from earlier.end()
            call = _Call(part.get("index"), str(part.get("id") or ""))
            self._calls.append(call)
        yield from call.take(str(name or ""), _parse_arguments(fields.get("arguments")))

    def _call_for(self, part: Json, name: str) -> "_Call | None":
        """The call that this part continues; None if it begins a new one."""
        index, given = part.get("index"), str(part.get("id") or "")
        last = self._calls[-1] if self._calls else None
        if isinstance(index, int):
            same = [call for call in self._calls if call.index == index]
            # Some servers give every call the index 0; a new id with a name begins a new call.
            if not same or (given and name and same[-1].given_id not in ("", given)):
                return None
            return same[-1]
        if given:
            same = [call for call in self._calls if call.given_id == given]
            return same[-1] if same else None
        if last is None or (name and last.name and is_complete_json(last.written)):
            return None
        return last


class _Call:
    def __init__(self, index: Any, given_id: str) -> None:  # noqa: ANN401 - what a server sent
        self.index = index
        self.given_id = given_id
        self.id = given_id or f"call_{uuid.uuid4().hex[:24]}"
        self.name = ""
        self._pieces: list[str] = []
        self._has_ended = False

    @property
    def written(self) -> str:
        return "".join(self._pieces)

    def take(self, name: str, arguments: str) -> Iterator[ModelEvent]:
        if self._has_ended:
            return
        if name and not self.name:
            self.name = name
            yield ToolStarted(self.id, name)
            if self._pieces:
                yield ToolInputDelta(self.id, self.written)
        if arguments:
            self._pieces.append(arguments)
            if self.name:
                yield ToolInputDelta(self.id, arguments)

    def end(self) -> Iterator[ModelEvent]:
        if self._has_ended:
            return
        self._has_ended = True
        if not self.name:
            yield ToolStarted(self.id, "")
        read = read_input(self.written)
        yield ToolEnded(self.id, self.name, read.value, read.broken)


def _parse_usage(usage: Json) -> TokenUsage:
    known = to_object(usage.get("prompt_tokens_details"))
    read, written = to_count(known.get("cached_tokens")), to_count(known.get("cache_write_tokens"))
    return TokenUsage(
        # The vendor counts cached tokens as part of the prompt; `input_tokens` does not.
        input_tokens=max(to_count(usage.get("prompt_tokens")) - read - written, 0),
        output_tokens=to_count(usage.get("completion_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _parse_text(content: Any) -> str:  # noqa: ANN401 - a part of decoded JSON
    if isinstance(content, str):
        return content
    return "".join(to_text(part.get("text")) for part in to_objects(content))


def _parse_arguments(value: Any) -> str:  # noqa: ANN401 - a part of decoded JSON
    if isinstance(value, str) or value is None:
        return value or ""
    return msgspec.json.encode(value).decode()
