"""How a run ended, and the event that says so."""

from collections.abc import Sequence
from typing import Any

import msgspec

from handaxe.agent.events import (
    AgentEvent,
    FromAgent,
    MessageAdded,
    RunFinished,
    Subtype,
    TerminalReason,
)
from handaxe.agent.limits import LimitReached, Meter
from handaxe.contract.call import ToolCall
from handaxe.contract.events import RunEnded
from handaxe.contract.ports.model import Failure, ModelFailed
from handaxe.contract.result import ToolResult


class RunResult(msgspec.Struct, frozen=True):
    """Why a run is over."""

    reason: TerminalReason
    result: str
    subtype: Subtype = "success"
    is_error: bool = False
    stop_reason: str | None = None
    output: Any = None
    errors: tuple[str, ...] = ()
    deferred: ToolCall | None = None
    status: int | None = None
    failure: Failure | None = None


def make_limit_result(reached: LimitReached) -> RunResult:
    """A limit ends the work."""
    said = reached.sentence
    return RunResult(reached.reason, said, subtype=reached.subtype, is_error=True, errors=(said,))


def make_failure_result(failed: ModelFailed) -> RunResult:
    """The model gave no answer."""
    reason = "prompt_too_long" if failed.failure == "too_long" else "model_error"
    said = failed.sentence
    return RunResult(
        reason,
        said,
        is_error=True,
        errors=(said,),
        status=failed.status,
        failure=failed.failure,
    )


def make_deferred_result(call: ToolCall, said: str) -> RunResult:
    """The work stops before a call, to go on with it later."""
    return RunResult("tool_deferred", said, stop_reason="tool_deferred", deferred=call)


def make_unavailable_result(call: ToolCall) -> RunResult:
    """The call that waits cannot be made here; it waits on."""
    said = f"The call that was put off needs the tool {call.tool}, which is not on offer now."
    reason = "tool_deferred_unavailable"
    return RunResult(reason, said, stop_reason=reason, is_error=True, errors=(said,), deferred=call)


def find_denied_results(event: AgentEvent) -> list[ToolResult]:
    """The calls that an event says were refused for want of permission, also a sub-agent's."""
    while isinstance(event, FromAgent):
        event = event.event
    answered = event.results if isinstance(event, MessageAdded) else ()
    return [result for result in answered if (result.code or "").startswith("permission.")]


def build_run_finished(
    ending: RunResult, meter: Meter, session_id: str, denials: Sequence[ToolResult]
) -> RunFinished:
    """The last event of a run."""
    return RunFinished(
        subtype=ending.subtype,
        is_error=ending.is_error,
        terminal_reason=ending.reason,
        result=ending.result,
        session_id=session_id,
        turns=meter.turns,
        stop_reason=ending.stop_reason,
        structured_output=ending.output,
        usage=meter.usage,
        model_usage=dict(meter.by_model),
        cost_usd=meter.cost_usd,
        duration_ms=round(meter.elapsed_s * 1000, 3),
        model_ms=round(meter.model_s * 1000, 3),
        denials=tuple(denials),
        errors=ending.errors,
        deferred_call=ending.deferred,
        error_status=ending.status,
        failure=ending.failure,
    )


def build_run_ended(last: RunFinished) -> RunEnded:
    """How a run ended, as the log keeps it."""
    return RunEnded(
        subtype=last.subtype,
        terminal_reason=last.terminal_reason,
        turns=last.turns,
        usage=last.usage,
        cost_usd=last.cost_usd,
        errors=last.errors,
    )
