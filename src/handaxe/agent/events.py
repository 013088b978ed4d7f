"""The events of a running agent for frontends, in order.

The model's deltas and the session's events about calls and hooks are passed through; this module
has what the loop adds. Everything that must survive the process is also in the session's log.
"""

from typing import Any, Literal

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.decision import PermissionRequest
from handaxe.contract.events import (
    AgentEnded,
    AgentStarted,
    AssistantSaid,
    CallAsked,
    CallDecided,
    CallProgress,
    Compacted,
    HookRan,
    JsonEvent,
)
from handaxe.contract.messages import AssistantMessage, TokenUsage, UserMessage
from handaxe.contract.ports.model import (
    Failure,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolStarted,
)
from handaxe.contract.result import ToolResult

Subtype = Literal[
    "success", "error_max_turns", "error_during_execution", "error_max_budget_usd",
    "error_max_structured_output_retries",
]  # fmt: skip

TerminalReason = Literal[
    "completed", "max_turns", "aborted_streaming", "aborted_tools", "hook_stopped",
    "prompt_too_long", "model_error", "budget_exhausted", "token_limit", "time_limit", "loop",
    "structured_output_retry_exhausted", "refused", "prompt_blocked", "tool_deferred",
    "tool_deferred_unavailable", "permission_pending",
]  # fmt: skip


class RunStarted(JsonEvent, frozen=True, tag=True):
    """The agent starts, with its model and its tools."""

    session_id: str
    model: str
    tools: tuple[str, ...]


class ToolCalled(JsonEvent, frozen=True, tag=True):
    """The model's call is complete and starts."""

    call: ToolCall


class ToolAnswered(JsonEvent, frozen=True, tag=True):
    """A call has its result; parallel calls end in any order."""

    result: ToolResult


class MessageAdded(JsonEvent, frozen=True, tag=True):
    """A complete message was added to the conversation."""

    message: UserMessage | AssistantMessage
    message_id: str
    results: tuple[ToolResult, ...] = ()
    """The complete results of a message with results, in order."""
    is_beside_results: bool = False
    """Whether it was added next to results, such as the text of a skill."""


class TurnEnded(JsonEvent, frozen=True, tag=True):
    """The model answered once, and its calls are done."""

    turn: int
    calls: int
    usage: TokenUsage
    context_tokens: int


class Nudged(JsonEvent, frozen=True, tag=True):
    """The model repeated itself and got a hint."""

    sentence: str


class Told(JsonEvent, frozen=True, tag=True):
    """A notice for the user while the agent continues."""

    sentence: str


class FromAgent(JsonEvent, frozen=True, tag=True):
    """An event of a subagent."""

    agent_id: str
    agent_type: str
    call_id: str | None
    event: Any


class RunFinished(JsonEvent, frozen=True, tag=True, kw_only=True):
    """The last event: how the run ended."""

    subtype: Subtype
    is_error: bool
    terminal_reason: TerminalReason
    result: str
    """The model's last text, or why there is none."""
    session_id: str
    turns: int
    stop_reason: str | None = None
    structured_output: Any = None
    usage: TokenUsage = TokenUsage()
    model_usage: dict[str, TokenUsage] = msgspec.field(default_factory=dict[str, TokenUsage])
    cost_usd: float | None = None
    """None if a price is unknown."""
    duration_ms: float = 0.0
    model_ms: float = 0.0
    denials: tuple[ToolResult, ...] = ()
    """Calls that were refused permission, including those of subagents."""
    errors: tuple[str, ...] = ()
    pending: tuple[PermissionRequest, ...] = ()
    """The calls that wait for the user; `run(None, answers=...)` continues with them."""
    deferred_call: ToolCall | None = None
    """The call that a hook deferred; the next run of the session makes it first."""
    error_status: int | None = None
    """The last HTTP status of the model's server, if it ended the run."""
    failure: Failure | None = None
    """Why the model gave no answer, if that ended the run."""


PASSED_ON = CallProgress, CallAsked, CallDecided, HookRan, AgentStarted, AgentEnded
"""Events of the session that are passed through."""

AgentEvent = (
    RunStarted
    | TextDelta
    | ThinkingDelta
    | ToolStarted
    | ToolInputDelta
    | Retrying
    | AssistantSaid
    | ToolCalled
    | ToolAnswered
    | MessageAdded
    | TurnEnded
    | Nudged
    | Told
    | FromAgent
    | Compacted
    | CallProgress
    | CallAsked
    | CallDecided
    | HookRan
    | AgentStarted
    | AgentEnded
    | RunFinished
)
