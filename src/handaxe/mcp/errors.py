"""Turn protocol errors into faults for the model."""

from typing import Any, cast

from mcp.shared.exceptions import MCPError

from handaxe.contract.faults import ToolFault
from handaxe.contract.faults.mcp import AnswerTooLarge, ServerRefused
from handaxe.mcp.line_framing import MAX_LINE_BYTES
from handaxe.mcp.stdio_transport import TOO_LARGE
from handaxe.text.escape import strip_hidden

# How the SDK and handaxe's own limit report a rejected body.
_LIMIT_WORDS = (
    f"exceeded the {MAX_LINE_BYTES} byte limit",
    f"longer than {MAX_LINE_BYTES:,} bytes",
)


def is_too_large(error: MCPError) -> bool:
    """Whether an answer was rejected because of its size."""
    return error.code == TOO_LARGE or any(words in error.message for words in _LIMIT_WORDS)


def to_tool_fault(server: str, error: MCPError) -> ToolFault:
    """The fault for a protocol error."""
    if is_too_large(error):
        found: object = error.error.data
        data = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        size, path = data.get("size_bytes"), data.get("path", "")
        return AnswerTooLarge(server, size, MAX_LINE_BYTES, path)
    return ServerRefused(
        server=server, reason=strip_hidden(error.message, 2000) or f"error {error.code}"
    )
