"""The last message of a run: how it ended, usage and cost."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from handaxe.agent.events import RunFinished
from handaxe.contract.decision import PermissionRequest
from handaxe.contract.json_values import replace_tuples
from handaxe.contract.messages import TokenUsage
from handaxe.contract.ports.model import Failure
from handaxe.frontends.stream_json.wire_types import Json, convert_model_usage
from handaxe.permission.suggestions import to_updates

_CLIENT_REASONS = {
    "token_limit": "budget_exhausted",
    "time_limit": "blocking_limit",
    "loop": "blocking_limit",
    "refused": "model_error",
    "prompt_blocked": "hook_stopped",
    "permission_pending": "tool_deferred",
}
"""Reasons of handaxe in the words of clients; the exact one is sent too."""


_CLIENT_ERRORS: dict[Failure, str] = {
    "authentication": "authentication_failed",
    "rate_limited": "rate_limit",
    "bad_request": "invalid_request",
    "not_found": "invalid_request",
    "too_long": "invalid_request",
    "script_ended": "unknown",
}
"""Model failures in the words of clients; all others are server errors."""


def build_error_message(final: RunFinished, message_id: str) -> Json | None:
    """The answer text if the model gave none."""
    if final.failure is None:
        return None
    message = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": final.result}],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": TokenUsage().to_api_fields(),
    }
    error = _CLIENT_ERRORS.get(final.failure, "server_error")
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "error": error}


class MessageLookups(msgspec.Struct, frozen=True, kw_only=True):
    """Facts for messages that events do not have."""

    cost_of: Callable[[str, TokenUsage], float | None] = lambda _model, _usage: None
    context_of: Callable[[str], int | None] = lambda _: None
    output_of: Callable[[str], str] = lambda _: ""
    """The transcript file of a subagent by its id."""


def build_pending_call(request: PermissionRequest) -> Json:
    """A waiting call, with everything needed to answer it."""
    return {
        "id": request.call_id,
        "name": request.tool,
        "input": request.input,
        "reason": request.reason,
        "rule": request.rule,
        "cwd": request.cwd,
        "preview": replace_tuples(msgspec.to_builtins(request.preview or ())),
        "destructive": replace_tuples(msgspec.to_builtins(request.destructive)),
        "permission_suggestions": to_updates(request.suggestions),
    }


def build_result_message(
    final: RunFinished, lookups: MessageLookups, *, answers: int, inputs: Mapping[str, Any]
) -> Json:
    """The message `result`, also the output of `--output-format json`."""
    message: Json = {
        "type": "result",
        "subtype": final.subtype,
        "is_error": final.is_error,
        "duration_ms": round(final.duration_ms),
        "duration_api_ms": round(final.model_ms),
        "num_turns": answers,
        "result": final.result,
        "stop_reason": final.stop_reason,
        "total_cost_usd": final.cost_usd,
        "usage": final.usage.to_api_fields(),
        "modelUsage": {
            name: convert_model_usage(
                usage,
                cost_usd=lookups.cost_of(name, usage),
                context_tokens=lookups.context_of(name),
            )
            for name, usage in final.model_usage.items()
        },
        "permission_denials": [
            {
                "tool_name": denied.tool,
                "tool_use_id": denied.id,
                "tool_input": inputs.get(denied.id, {}),
            }
            for denied in final.denials
        ],
        "terminal_reason": _CLIENT_REASONS.get(final.terminal_reason, final.terminal_reason),
        "session_id": final.session_id,
    }
    if final.terminal_reason in _CLIENT_REASONS:
        message["handaxe_reason"] = final.terminal_reason
    if final.structured_output is not None:
        message["structured_output"] = final.structured_output
    if final.pending:
        message["pending"] = [build_pending_call(request) for request in final.pending]
    if (call := final.deferred_call) is not None:
        message["deferred_tool_use"] = {"id": call.id, "name": call.tool, "input": call.input}
    if final.error_status is not None:
        message["api_error_status"] = final.error_status
    if final.errors:
        message["errors"] = list(final.errors)
    return message
