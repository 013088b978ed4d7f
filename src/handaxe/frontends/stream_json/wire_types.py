"""Blocks, tokens and costs in the shapes that clients of the stream know."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from handaxe.agent.conversation import split_block
from handaxe.agent.events import AgentEvent, MessageAdded, RunFinished, ToolCalled
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.messages import (
    AssistantBlock,
    AssistantMessage,
    ThinkingBlock,
    TokenUsage,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
)
from handaxe.contract.ports.model import TextDelta, ThinkingDelta, ToolInputDelta, ToolStarted
from handaxe.contract.result import ToolResult

Json = dict[str, Any]


def convert_block(block: AssistantBlock | UserBlock) -> Json:
    """One content block."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ThinkingBlock():
            return {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
        case ToolUseBlock():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
        case ImageBlock():
            source = {"type": "base64", "media_type": block.media_type, "data": block.data}
            return {"type": "image", "source": source}
        case ToolResultBlock():
            return {
                "type": "tool_result",
                "tool_use_id": block.tool_use_id,
                "content": convert_result_content(block.content),
                "is_error": block.is_error,
            }


def convert_result_content(blocks: Iterable[TextBlock | ImageBlock]) -> str | list[Json]:
    """What a result holds: one text where that is all, else blocks."""
    listed = list(blocks)
    if len(listed) == 1 and isinstance(listed[0], TextBlock):
        return listed[0].text
    return [convert_block(block) for block in listed]


def build_structured_result(result: ToolResult) -> Any:  # noqa: ANN401 - any JSON value
    """The data of a result for programs; a failed one gives its sentence."""
    if not result.ok:
        return f"Error: {result.text}"
    if result.data is None:
        return result.text
    return msgspec.to_builtins(result.data, enc_hook=str)


def convert_model_usage(
    usage: TokenUsage, *, cost_usd: float | None, context_tokens: int | None
) -> Json:
    """Tokens of one model over a whole run."""
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadInputTokens": usage.cache_read_tokens,
        "cacheCreationInputTokens": usage.cache_write_tokens,
        "webSearchRequests": 0,
        "costUSD": cost_usd,
        "contextWindow": context_tokens,
    }


def split_blocks(blocks: list[AssistantBlock]) -> list[list[AssistantBlock]]:
    """Blocks in messages that fit a line each: a very long text goes out in pieces."""
    parts: list[list[AssistantBlock]] = []
    is_full = True
    for block in blocks:
        pieces = split_block(block)
        if len(pieces) > 1:
            parts += [[piece] for piece in pieces]
            is_full = True
        elif is_full:
            parts.append([block])
            is_full = False
        else:
            parts[-1].append(block)
    return parts


class PartialEvents:
    """Follows one answer after the other."""

    def __init__(self) -> None:
        self._model = ""
        self._is_open = False
        self._index = -1
        self._kind: str | None = None
        self._call_ids: dict[str, int] = {}

    def begin(self, model: str) -> None:
        """The name of the model that answers from now on."""
        self._model = model

    def events(self, event: AgentEvent, message_id: str) -> Iterator[Json]:
        """The raw events that follow from one of ours."""
        match event:
            case TextDelta():
                yield from self._open_block("text", {"type": "text", "text": ""}, message_id)
                yield self._delta({"type": "text_delta", "text": event.text})
            case ThinkingDelta():
                block = {"type": "thinking", "thinking": "", "signature": ""}
                yield from self._open_block("thinking", block, message_id)
                if event.thinking:
                    yield self._delta({"type": "thinking_delta", "thinking": event.thinking})
                if event.signature:
                    yield self._delta({"type": "signature_delta", "signature": event.signature})
            case ToolStarted():
                block: Json = {"type": "tool_use", "id": event.id, "name": event.name, "input": {}}
                yield from self._open_block(f"call {event.id}", block, message_id)
                self._call_ids[event.id] = self._index
            case ToolInputDelta():
                delta = {"type": "input_json_delta", "partial_json": event.json}
                index = self._call_ids.get(event.id, self._index)
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            case ToolCalled():
                if self._kind == f"call {event.call.id}":
                    yield from self._close_block()
            case MessageAdded() if isinstance(event.message, AssistantMessage):
                yield from self._end(event.message.stop_reason, event.message.usage)
            case RunFinished():
                yield from self._end("aborted", TokenUsage())
            case _:
                pass

    def _open_block(self, kind: str, block: Json, message_id: str) -> Iterator[Json]:
        """Be inside a block of this kind, opened if need be."""
        if not self._is_open:
            self._is_open = True
            yield {
                "type": "message_start",
                "message": _build_empty_message(message_id, self._model),
            }
        if kind != self._kind:
            yield from self._close_block()
            self._index += 1
            self._kind = kind
            yield {"type": "content_block_start", "index": self._index, "content_block": block}

    def _delta(self, delta: Json) -> Json:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _close_block(self) -> Iterator[Json]:
        if self._kind is not None:
            self._kind = None
            yield {"type": "content_block_stop", "index": self._index}

    def _end(self, stop_reason: str, usage: TokenUsage) -> Iterator[Json]:
        if not self._is_open:
            return
        yield from self._close_block()
        reason = None if stop_reason == "aborted" else stop_reason
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": usage.to_api_fields()}
        yield {"type": "message_stop"}
        self._is_open, self._index, self._call_ids = False, -1, {}


def _build_empty_message(message_id: str, model: str) -> Json:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": TokenUsage().to_api_fields(),
    }
