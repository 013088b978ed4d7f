"""Types of results and conversations.

Blocks of a result for the model, blocks of `ToolResult.display` for people, and messages.
"""

from handaxe.contract.content import (
    ContentBlock,
    ImageBlock,
    TextBlock,
)
from handaxe.contract.display import (
    Block,
    CallDisplay,
    Code,
    Diff,
    DiffHunk,
    Display,
    Items,
    Table,
    Text,
)
from handaxe.contract.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    StopReason,
    ThinkingBlock,
    TokenUsage,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
    UserMessage,
    VendorBlock,
)

__all__ = [
    "AssistantBlock",
    "AssistantMessage",
    "Block",
    "CallDisplay",
    "Code",
    "ContentBlock",
    "Diff",
    "DiffHunk",
    "Display",
    "ImageBlock",
    "Items",
    "Message",
    "StopReason",
    "Table",
    "Text",
    "TextBlock",
    "ThinkingBlock",
    "TokenUsage",
    "ToolResultBlock",
    "ToolUseBlock",
    "UserBlock",
    "UserMessage",
    "VendorBlock",
]
