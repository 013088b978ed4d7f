"""A tool call as a model, a script or a host asks for it."""

from typing import Any

import msgspec


class ToolCall(msgspec.Struct, frozen=True):
    """One `tool_use` block: which tool, with which input, under which id."""

    id: str
    tool: str
    input: Any
