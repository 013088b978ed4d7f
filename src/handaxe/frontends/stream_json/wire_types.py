"""Blocks, tokens and costs in the shapes that clients of the stream know."""

from collections.abc import Iterable
from typing import Any

import msgspec

from handaxe.agent.conversation__message_names import split_block
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.messages import (
    AssistantBlock,
    ThinkingBlock,
    TokenUsage,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
)
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
