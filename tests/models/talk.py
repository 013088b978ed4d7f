"""Conversations that tests ask models about."""

from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from handaxe.contract.ports.model import Model, ModelEvent, ModelFailed, ModelRequest, ToolSpec

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

READ = ToolSpec(
    name="Read",
    description="Read a file.",
    input_schema={
        "type": "object",
        "properties": {"file_path": {"type": "string"}},
        "required": ["file_path"],
        "additionalProperties": False,
    },
)

HELLO = ModelRequest(messages=(UserMessage((TextBlock("Hello"),)),))

LONG = ModelRequest(
    system=("You are careful.", "Today is Monday."),
    messages=(
        UserMessage((TextBlock("Look at a.txt"), ImageBlock("image/png", PIXEL))),
        AssistantMessage(
            (
                ThinkingBlock("I should look.", "c2lnbmVk"),
                ThinkingBlock("", "redacted:c2VjcmV0"),
                TextBlock("I look."),
                ToolUseBlock("t1", "Read", {"file_path": "a.txt"}),
                ToolUseBlock("t2", "Read", {}, broken='{"file_path": '),
            )
        ),
        UserMessage(
            (
                TextBlock("(a reminder)"),
                ToolResultBlock("t1", (TextBlock("1\tä"), ImageBlock("image/png", PIXEL))),
                ToolResultBlock("t2", (TextBlock("not JSON"),), is_error=True),
            )
        ),
    ),
    tools=(READ,),
    max_tokens=1000,
    tool_choice="any",
)


async def heard_until_failure(model: Model, request: ModelRequest = HELLO):
    """The events that came before a failure, and the failure."""
    events: list[ModelEvent] = []
    try:
        async for event in model.stream(request):
            events.append(event)
    except ModelFailed as failed:
        return events, failed
    raise AssertionError("the model did not fail")


async def events_of(model: Model, request: ModelRequest = HELLO) -> list[ModelEvent]:
    """All events of one response."""
    return [event async for event in model.stream(request)]
