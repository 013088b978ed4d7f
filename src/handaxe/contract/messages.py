"""A conversation: what the user, the model and the tools said, independent of any provider."""

from typing import Any, Literal

import msgspec

from handaxe.contract.content import ImageBlock, TextBlock


class ThinkingBlock(msgspec.Struct, frozen=True, tag_field="type", tag="thinking"):
    """The model's visible thinking. Providers want it back unchanged."""

    thinking: str
    signature: str = ""


class ToolUseBlock(msgspec.Struct, frozen=True, tag_field="type", tag="tool_use"):
    """A call the model asks for."""

    id: str
    name: str
    input: Any
    broken: str | None = None
    """The raw text of an input that is not JSON; the call is then answered with that fact."""


class VendorBlock(msgspec.Struct, frozen=True, tag_field="type", tag="vendor"):
    """The vendor's own work within an answer, such as a search. It wants it back unchanged."""

    vendor: str
    data: dict[str, Any]


class ToolResultBlock(msgspec.Struct, frozen=True, tag_field="type", tag="tool_result"):
    """The one answer to a call."""

    tool_use_id: str
    content: tuple[TextBlock | ImageBlock, ...]
    is_error: bool = False


UserBlock = TextBlock | ImageBlock | ToolResultBlock
AssistantBlock = TextBlock | ThinkingBlock | ToolUseBlock | VendorBlock

StopReason = Literal[
    "end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "refusal", "aborted"
]


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one response."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def add_usage(self, other: "TokenUsage") -> "TokenUsage":
        """Both together."""
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )

    def to_api_fields(self) -> dict[str, int]:
        """The usage under the key names of the ecosystem."""
        return {
            "input_tokens": self.input_tokens,
            "cache_creation_input_tokens": self.cache_write_tokens,
            "cache_read_input_tokens": self.cache_read_tokens,
            "output_tokens": self.output_tokens,
        }


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user", weakref=True):
    """A message from the user or the tools to the model."""

    content: tuple[UserBlock, ...]
    synthetic: bool = False
    """Written by the runtime: a reminder, a notice, a summary."""


class AssistantMessage(
    msgspec.Struct, frozen=True, tag_field="role", tag="assistant", weakref=True
):
    """A message of the model."""

    content: tuple[AssistantBlock, ...]
    model: str = ""
    message_id: str = ""
    stop_reason: StopReason = "end_turn"
    usage: TokenUsage = TokenUsage()


Message = UserMessage | AssistantMessage
