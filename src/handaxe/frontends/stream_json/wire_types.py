"""Messages, blocks, tokens and costs in the formats of stream-json clients."""

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

import msgspec

from handaxe.agent.events import AgentEvent, MessageAdded, RunFinished, RunStarted, ToolCalled
from handaxe.agent.message_ids import split_block
from handaxe.app.services.call_presenter import CallPresenter
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.events import CallStarted, HookRan
from handaxe.contract.messages import (
    AssistantBlock,
    AssistantMessage,
    ThinkingBlock,
    TokenUsage,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
    VendorBlock,
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
        case VendorBlock():
            return block.data
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
    """The content of a result: a string if it is one text, else blocks."""
    listed = list(blocks)
    if len(listed) == 1 and isinstance(listed[0], TextBlock):
        return listed[0].text
    return [convert_block(block) for block in listed]


def build_structured_result(result: ToolResult) -> Any:  # noqa: ANN401 - any JSON value
    """The data of a result for programs; for a failure its sentence."""
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
    """Blocks split into messages that fit a line."""
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
    """Tracks the state of partial answers."""

    def __init__(self) -> None:
        self._model = ""
        self._is_open = False
        self._index = -1
        self._kind: str | None = None
        self._call_ids: dict[str, int] = {}

    def begin(self, model: str) -> None:
        """Set the model of the next answers."""
        self._model = model

    def events(self, event: AgentEvent, message_id: str) -> Iterator[Json]:
        """The raw stream events of an event."""
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
        """Enter a block of this kind, opening it if needed."""
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


class MessageBuilder:
    """Builds the messages of one session with their ids."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id

    def add_ids(self, message: Json) -> Json:
        """The message with its ids."""
        return {**message, "session_id": self._session_id, "uuid": str(uuid4())}

    def wrap_message(self, kind: str, **fields: object) -> Json:
        """A message of the session."""
        return self.add_ids({"type": kind, **fields})

    def build_system(self, subtype: str, **fields: object) -> Json:
        """A message about the session itself."""
        return self.wrap_message("system", subtype=subtype, **fields)

    def build_user(self, content: list[Json], parent: str | None) -> Json:
        """A message to the model; `parent` is the call that started its agent."""
        message = {"role": "user", "content": content}
        return self.wrap_message("user", message=message, parent_tool_use_id=parent)

    def build_assistant(
        self,
        message_id: str,
        model: str,
        blocks: list[AssistantBlock],
        usage: TokenUsage,
        stop_reason: str | None,
        parent: str | None,
    ) -> Json:
        """A part of an answer; `parent` is the call that started its agent."""
        message: Json = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [convert_block(block) for block in blocks],
            "stop_reason": None if stop_reason == "aborted" else stop_reason,
            "stop_sequence": None,
            "usage": usage.to_api_fields(),
        }
        told = self.wrap_message("assistant", message=message, parent_tool_use_id=parent)
        return {**told, "aborted": True} if stop_reason == "aborted" else told

    def build_progress(self, call_id: str, tool: str, **fields: object) -> Json:
        """The heartbeat of a running call."""
        return self.wrap_message(
            "tool_progress",
            tool_use_id=call_id,
            tool_name=tool,
            parent_tool_use_id=None,
            **fields,
        )

    def build_hook(self, event: HookRan) -> Iterator[Json]:
        """The messages of a hook that ran."""
        name = f"{event.event}:{event.matcher or event.hook}"
        named = {"hook_id": str(uuid4()), "hook_name": name}
        yield self.build_system("hook_started", hook_event=event.event, **named)
        yield self.build_system(
            "hook_response",
            hook_event=event.event,
            output="\n".join((*event.messages, *event.told)) or event.reason,
            outcome="error" if event.outcome in {"failed", "timed_out"} else "success",
            exit_code=None,
            duration_ms=event.duration_ms,
            **named,
        )


class CallDisplays:
    """Display blocks of calls as messages."""

    def __init__(
        self, builder: MessageBuilder, presenter: CallPresenter | None, *, partial: bool
    ) -> None:
        """`partial`: also while the input of a call arrives."""
        self._builder = builder
        self._presenter = presenter
        self._partial = partial

    def messages(self, event: object) -> Iterator[Json]:
        """The messages of an agent event."""
        # Send nothing before the first message of a run or after its last.
        if self._presenter is None or isinstance(event, RunStarted | RunFinished):
            return
        for shown in self._presenter.present(event):
            if shown.moment != "input" or self._partial:
                fields = shown.to_json()
                named = {
                    "tool_use_id": fields.pop("call_id") or None,
                    "tool_name": fields.pop("tool") or None,
                    "parent_tool_use_id": fields.pop("parent_call_id"),
                }
                yield self._builder.build_system("call_display", **named, **fields)

    def started(self, event: object) -> Iterator[Json]:
        """The messages of a session event; the agent reports all others."""
        if isinstance(event, CallStarted):
            yield from self.messages(event)
