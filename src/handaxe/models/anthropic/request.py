"""A request to the Messages API, with marks for its prompt cache."""

import re
from collections.abc import Sequence
from typing import Any, cast

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    ThinkingBlock,
    ToolUseBlock,
    VendorBlock,
)
from handaxe.contract.ports.model import ModelRequest, ToolSpec
from handaxe.schema import image_limits
from handaxe.schema.image_limits import cache_by_identity
from handaxe.schema.native_deferral import (
    can_search,
    defer_tools,
    list_found_tools,
    select_sendable_blocks,
)
from handaxe.schema.providers import build_tool_schema
from handaxe.schema.user_turn import build_anthropic_content, is_not_tool_result

Json = dict[str, Any]

VENDOR = "anthropic"
"""The vendor whose blocks are sent back."""
MARK = {"type": "ephemeral"}
LEAST_THINKING_TOKENS = 1024
MARKED_TURNS = 2
"""The last turn is written to the cache; the one before is read from it."""
REDACTED = "redacted:"
"""The prefix of the signature of an encrypted thinking block."""

_COUNTED_THINKING = re.compile(r"claude-(2|3|instant|(opus|sonnet|haiku)-4(-[015]\b|-2025|$))")
"""Models that need a token budget for thinking; later ones choose it themselves."""


def build_request(name: str, request: ModelRequest, *, user_id: str | None = None) -> Json:
    """The body of a streaming request."""
    body: Json = {
        "model": name,
        "max_tokens": request.max_tokens,
        "messages": [],
        "stream": True,
    }
    tools, known = _build_tools(name, request)
    body["messages"] = _build_messages(request.messages, known)
    system = [{"type": "text", "text": part} for part in request.system if part.strip()]
    if system:
        body["system"] = _mark_system(system)
    if tools:
        body["tools"] = tools
        if request.tool_choice != "auto":
            body["tool_choice"] = _build_tool_choice(request.tool_choice)
    if request.thinking_tokens:
        body |= _build_thinking(name, request.thinking_tokens, request.max_tokens)
    if request.output_schema is not None:
        body |= _build_output_config(request.output_schema)
    if request.effort and not _COUNTED_THINKING.search(name):
        body["output_config"] = {**body.get("output_config", {}), "effort": request.effort}
    if user_id:
        body["metadata"] = {"user_id": user_id}
    return body


def _mark_system(parts: list[Json]) -> list[Json]:
    # The last of several parts may vary, so the cache keeps those before it.
    stable = max(len(parts) - 2, 0)
    parts[stable]["cache_control"] = MARK
    return parts


def _build_tools(name: str, request: ModelRequest) -> tuple[list[Json], frozenset[str]]:
    """The tools, and the names that results of the vendor's tool search may refer to."""
    if request.waiting_tools is None or not can_search(name):
        return _mark_tools([_build_tool(spec) for spec in request.tools]), frozenset()
    found = _list_found_tools(request.messages) - {request.tool_choice}
    # Found tools stay deferred: the conversation refers to them, and the cached prefix stays.
    sent = [spec for spec in request.tools if not spec.finds_tools and spec.name not in found]
    deferred = [spec for spec in request.tools if spec.name in found]
    deferred += request.waiting_tools
    if not deferred:
        return _mark_tools([_build_tool(spec) for spec in request.tools]), frozenset()
    tools = defer_tools(map(_build_tool, sent), map(_build_tool, deferred))
    return _mark_tools(tools), frozenset(tool["name"] for tool in tools)


def _mark_tools(tools: list[Json]) -> list[Json]:
    """Mark the last tool that is not deferred; deferred tools are not cached."""
    at = sum("defer_loading" not in tool for tool in tools) - 1
    return [{**tool, "cache_control": MARK} if at == n else tool for n, tool in enumerate(tools)]


def _list_found_tools(messages: Sequence[Message]) -> set[str]:
    found: set[str] = set()
    for message in messages:
        for block in message.content:
            if isinstance(block, VendorBlock) and block.vendor == VENDOR:
                found.update(list_found_tools(block.data))
    return found


@cache_by_identity
def _build_tool(spec: ToolSpec) -> Json:
    return build_tool_schema(
        spec.name,
        spec.description,
        spec.input_schema,
        "anthropic",
        strict=spec.strict,
        examples=spec.examples,
    )


def _build_tool_choice(choice: str) -> Json:
    if choice in ("auto", "none", "any"):
        return {"type": choice}
    return {"type": "tool", "name": choice}


def _build_thinking(name: str, tokens: int, max_tokens: int) -> Json:
    if not _COUNTED_THINKING.match(name):
        return {"thinking": {"type": "adaptive"}}
    budget = max(tokens, LEAST_THINKING_TOKENS)
    # Thinking counts as output, so the limit must leave tokens for the answer.
    limit = max_tokens if max_tokens > budget else max_tokens + budget
    return {"thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": limit}


def _build_output_config(schema: Json) -> Json:
    tool = build_tool_schema("answer", "", schema, "anthropic", strict=True)
    # If the vendor cannot enforce a schema, the reader of the answer checks it.
    if not tool.get("strict"):
        return {}
    return {"output_config": {"format": {"type": "json_schema", "schema": tool["input_schema"]}}}


def _build_messages(messages: Sequence[Message], known: frozenset[str]) -> list[Json]:
    dropped = image_limits.find_unsendable_images(messages, image_limits.ANTHROPIC)
    turns: list[Json] = []
    last_role = ""
    for message in messages:
        # Which images fit depends on the others; all other messages are built once.
        turn = _build_plain_turn(message) or _build_turn(message, dropped, known)
        if not turn["content"]:
            continue
        if turn["role"] == last_role:
            content = sorted([*turns[-1]["content"], *turn["content"]], key=is_not_tool_result)
            turns[-1] = {"role": last_role, "content": content}
        else:
            turns.append(turn)
            last_role = turn["role"]
    users = [at for at, turn in enumerate(turns) if turn["role"] == "user"]
    for at in users[-MARKED_TURNS:]:
        *others, last = turns[at]["content"]
        turns[at] = {"role": "user", "content": [*others, {**last, "cache_control": MARK}]}
    return turns


@cache_by_identity
def _build_plain_turn(message: Message) -> Json | None:
    # Which blocks of a tool search can be sent depends on the tools.
    depends = any(isinstance(block, VendorBlock) for block in message.content)
    depends = depends or image_limits.collect_images(message)
    return None if depends else _build_turn(message, {}, frozenset())


def _build_turn(message: Message, dropped: dict[int, str], known: frozenset[str]) -> Json:
    if isinstance(message, AssistantMessage):
        return {"role": "assistant", "content": _build_assistant_content(message, known)}
    return {"role": "user", "content": build_anthropic_content(message, dropped)}


def _build_assistant_content(message: AssistantMessage, known: frozenset[str]) -> list[Json]:
    """The blocks of an answer; those of a tool search only if `known` names tools."""
    kept = [b for b in message.content if known or not isinstance(b, VendorBlock)]
    blocks = [built for block in kept if (built := _build_assistant_block(block)) is not None]
    return select_sendable_blocks(blocks, known) if known else blocks


def _build_assistant_block(block: AssistantBlock) -> Json | None:
    if isinstance(block, TextBlock):
        # The API rejects blank text.
        return {"type": "text", "text": block.text} if block.text.strip() else None
    if isinstance(block, ToolUseBlock):
        given = cast("Json", block.input if _is_object(block.input) else {"input": block.input})
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": given}
    if isinstance(block, VendorBlock):
        return block.data if block.vendor == VENDOR else None
    return _build_thinking_block(block)


def _is_object(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(value, dict)


def _build_thinking_block(block: ThinkingBlock) -> Json | None:
    if block.signature.startswith(REDACTED):
        return {"type": "redacted_thinking", "data": block.signature.removeprefix(REDACTED)}
    if not block.signature:
        # The API rejects thinking without a signature.
        return None
    return {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
