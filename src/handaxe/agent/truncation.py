"""Pure functions on long conversations: measure, shorten old results, cut safely."""

from collections.abc import Sequence

from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    VendorBlock,
)
from handaxe.text.tokens import estimate_tokens

IMAGE_TOKENS = 1_600
MESSAGE_TOKENS = 4


def estimate_message(message: Message) -> int:
    """The estimated tokens of one message."""
    return MESSAGE_TOKENS + sum(_estimate_block(block) for block in message.content)


def shorten_results(
    messages: Sequence[Message], *, keep: int, max_chars: int
) -> tuple[Message, ...]:
    """The messages with long results cut, except in the last `keep` of them."""
    first_kept = len(messages) - keep
    return tuple(
        _shorten_message(message, max_chars)
        if index < first_kept and isinstance(message, UserMessage)
        else message
        for index, message in enumerate(messages)
    )


def get_last_exchange(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The last calls with their results, which belong together; empty if none are open."""
    if len(messages) >= 2 and has_results(messages[-1]):
        return tuple(messages[-2:])
    return ()


def select_newest(messages: Sequence[Message], limit_tokens: int) -> tuple[Message, ...]:
    """As many of the last messages as fit, starting at a user message."""
    total, start = 0, len(messages)
    for index in range(len(messages) - 1, -1, -1):
        total += estimate_message(messages[index])
        if total > limit_tokens:
            break
        if isinstance(messages[index], UserMessage) and not has_results(messages[index]):
            start = index
    return tuple(messages[start:])


def has_results(message: Message) -> bool:
    """Whether a message contains results of calls."""
    return isinstance(message, UserMessage) and any(
        isinstance(block, ToolResultBlock) for block in message.content
    )


def format_outline(messages: Sequence[Message], *, max_chars: int) -> str:
    """The prompts and used tools, in case no model can summarize."""
    lines: list[str] = []
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                lines.append(f"- called {block.name} with {str(block.input)[:200]}")
            elif isinstance(block, TextBlock) and block.text.strip():
                who = "you" if isinstance(message, AssistantMessage) else "to you"
                lines.append(f"- {who}: {' '.join(block.text.split())[:400]}")
    text = "\n".join(lines)
    return text if len(text) <= max_chars else f"(earlier lines omitted)\n{text[-max_chars:]}"


def _estimate_block(block: object) -> int:
    match block:
        case TextBlock():
            return estimate_tokens(block.text)
        case ThinkingBlock():
            return estimate_tokens(block.thinking)
        case ToolUseBlock() | VendorBlock():
            given: object = block.input if isinstance(block, ToolUseBlock) else block.data
            return 10 + estimate_tokens(str(given))
        case ToolResultBlock():
            return 10 + sum(_estimate_block(part) for part in block.content)
        case ImageBlock():
            return IMAGE_TOKENS
        case _:
            return 0


def _shorten_message(message: UserMessage, max_chars: int) -> UserMessage:
    blocks = tuple(
        _cut_result(block, max_chars) if isinstance(block, ToolResultBlock) else block
        for block in message.content
    )
    return UserMessage(blocks, message.synthetic)


def _cut_result(block: ToolResultBlock, max_chars: int) -> ToolResultBlock:
    parts: list[TextBlock | ImageBlock] = []
    for part in block.content:
        if isinstance(part, ImageBlock):
            parts.append(TextBlock("(an image was here; read it again if you need it)"))
        elif len(part.text) > max_chars:
            note = f"... ({len(part.text):,} characters; call again if you need the rest)"
            parts.append(TextBlock(f"{part.text[:max_chars]}{note}"))
        else:
            parts.append(part)
    return ToolResultBlock(block.tool_use_id, tuple(parts), block.is_error)
