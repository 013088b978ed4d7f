"""Stream one model response, independent of the vendor."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import msgspec

from handaxe.contract.events import JsonEvent
from handaxe.contract.messages import Message, StopReason, TokenUsage


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """The definition of a tool for a model; each client converts it to its vendor's format."""

    name: str
    description: str
    input_schema: dict[str, Any]
    strict: bool = False
    examples: tuple[dict[str, Any], ...] = ()
    finds_tools: bool = False
    """Whether it loads tools that wait; left out where the vendor searches."""


class RequestOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and where; no provider is sent it, recordings tell requests apart by it."""

    agent: str = ""
    """Empty for the main agent, otherwise the calls that led to the agent, such as `2.1`."""
    places: tuple[tuple[str, str], ...] = ()
    """Directories that differ from run to run, each with a name for it."""
    redact: Callable[[str], str] = str
    """A text without the secrets that the session knows."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One turn asked of a model."""

    system: tuple[str, ...] = ()
    """Parts of the system prompt, the stable ones first; the last one may vary."""
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    waiting_tools: tuple[ToolSpec, ...] | None = None
    """Tools that a vendor with a search of its own may find; None where it is not to search."""
    max_tokens: int = 16_000
    tool_choice: str = "auto"
    """`auto`, `none`, `any`, or the name of a tool."""
    output_schema: dict[str, Any] | None = None
    """A JSON Schema the answer's text has to fit, where the vendor can enforce one."""
    thinking_tokens: int | None = None
    effort: str | None = None
    """How hard to try, such as `low` or `high`, where the vendor knows such a word."""
    origin: RequestOrigin = RequestOrigin()


class TextDelta(JsonEvent, frozen=True, tag=True):
    """A piece of the answer."""

    text: str


class ThinkingDelta(JsonEvent, frozen=True, tag=True):
    """A piece of what the model thinks aloud; the signature comes with the last one."""

    thinking: str
    signature: str = ""


class ToolStarted(JsonEvent, frozen=True, tag=True):
    """The model begins a call; its input follows."""

    id: str
    name: str


class ToolInputDelta(JsonEvent, frozen=True, tag=True):
    """A piece of a call's input, as JSON text."""

    id: str
    json: str


class ToolEnded(JsonEvent, frozen=True, tag=True):
    """A call is complete and may start."""

    id: str
    name: str
    input: Any
    broken: str | None = None
    """The raw text where the input is not JSON."""


class VendorBlockEnded(JsonEvent, frozen=True, tag=True):
    """The vendor did something itself, such as a search for tools; see `VendorBlock`."""

    vendor: str
    data: dict[str, Any]
    found_tools: tuple[str, ...] = ()
    """Tools whose schemas the model has from here on."""


class MessageEnded(JsonEvent, frozen=True, tag=True):
    """The response is complete: exactly one, and the last."""

    stop_reason: StopReason
    usage: TokenUsage
    model: str = ""
    message_id: str = ""


class Retrying(JsonEvent, frozen=True, tag=True, kw_only=True):
    """An attempt failed before anything was said; another follows after a pause."""

    attempt: int
    delay_s: float
    status: int | None
    sentence: str


ModelEvent = (
    TextDelta
    | ThinkingDelta
    | ToolStarted
    | ToolInputDelta
    | ToolEnded
    | VendorBlockEnded
    | MessageEnded
    | Retrying
)

Failure = Literal[
    "authentication", "not_found", "rate_limited", "overloaded", "too_long", "bad_request",
    "unreachable", "broken_stream", "timed_out", "script_ended",
]  # fmt: skip


class ModelFailed(Exception):
    """The model gave no (whole) answer; what failed, and what a person can do about it."""

    def __init__(self, failure: Failure, sentence: str, *, status: int | None = None) -> None:
        super().__init__(sentence)
        self.failure: Failure = failure
        self.sentence = sentence
        self.status = status


class Model(ABC):
    """A model that answers conversations."""

    name: str
    context_tokens: int = 200_000
    answers_for_all: bool = False
    """Whether it replaces every model of a session, as a recording does."""

    @abstractmethod
    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The response, event by event; closing the iterator stops the model.

        Raises:
            ModelFailed: no answer, or its stream broke off.
        """

    async def close(self) -> None:
        """Close connections."""
        return
