"""What the three providers refuse in a conversation, as a list of complaints."""

from collections.abc import Sequence

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)


def complaints(messages: Sequence[Message]) -> list[str]:
    """Everything Anthropic, OpenAI or Gemini would refuse."""
    found: list[str] = []
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else None
        after = messages[index + 1] if index + 1 < len(messages) else None
        if not message.content:
            found.append(f"{index}: an empty message")
        if before is not None and type(before) is type(message):
            found.append(f"{index}: two {type(message).__name__}s in a row")
        if any(isinstance(b, TextBlock) and not b.text.strip() for b in message.content):
            found.append(f"{index}: a blank text")
        if isinstance(message, UserMessage):
            found += _of_user(index, message, before)
        else:
            found += _of_assistant(index, message, after)
    if messages and not isinstance(messages[0], UserMessage):
        found.append("the first message is not the user's")
    ids = [b.id for m in messages for b in m.content if isinstance(b, ToolUseBlock)]
    if len(ids) != len(set(ids)):
        found.append("an id was used twice")
    return found


def _of_user(index: int, message: UserMessage, before: Message | None) -> list[str]:
    answers = [b.tool_use_id for b in message.content if isinstance(b, ToolResultBlock)]
    asked = [b.id for b in before.content if isinstance(b, ToolUseBlock)] if before else []
    found: list[str] = []
    if answers != asked:
        found.append(f"{index}: answers {answers} to calls {asked}")
    kinds = [isinstance(b, ToolResultBlock) for b in message.content]
    if kinds != sorted(kinds, reverse=True):
        found.append(f"{index}: an answer after other content")
    return found


def _of_assistant(index: int, message: AssistantMessage, after: Message | None) -> list[str]:
    asked = [b.id for b in message.content if isinstance(b, ToolUseBlock)]
    found = [
        f"{index}: the input of {b.id} is no object"
        for b in message.content
        if isinstance(b, ToolUseBlock) and not isinstance(b.input, dict)
    ]
    if asked and after is None:
        found.append(f"{index}: calls without answers")
    return found
