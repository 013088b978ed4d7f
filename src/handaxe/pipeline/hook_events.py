"""What hooks are told of a session, a call and a batch, and which calls an `if` means."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from handaxe.contract.call import ToolCall
from handaxe.contract.decision import Allow, Deny
from handaxe.contract.result import ToolResult
from handaxe.hooks.notify import build_session_event
from handaxe.permission.decide import PermissionQuery, Policy, decide
from handaxe.permission.policy import MatchesCommand, make_policy
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.parse import ParsedCall
from handaxe.rules.grammar import parse_rule


def build_hook_event(parsed: ParsedCall, context: PipelineContext, name: str) -> dict[str, Any]:
    """What a hook is told about a call; observers see resolved paths."""
    event = build_session_event(context, name)
    event["tool_name"] = parsed.tool.name
    event["tool_input"] = {**to_input_dict(parsed.call.input), **parsed.derived()}
    event["tool_use_id"] = parsed.call.id
    return event


def build_batch_event(
    calls: Sequence[tuple[ToolCall, ParsedCall | None]],
    results: Sequence[ToolResult],
    context: PipelineContext,
) -> dict[str, Any]:
    """What a hook is told about the calls of one message."""
    told: list[dict[str, Any]] = []
    for (call, parsed), result in zip(calls, results, strict=True):
        derived = parsed.derived() if parsed is not None else {}
        told.append(
            {
                "tool_name": result.tool,
                "tool_input": {**to_input_dict(call.input), **derived},
                "tool_use_id": call.id,
                "tool_response": result.text,
            }
        )
    return {**build_session_event(context, "PostToolBatch"), "tool_calls": told}


def is_covered_by_rule(text: str, request: PermissionQuery, policy: Policy) -> bool:
    """Whether a hook's `if` means this call; one that cannot be read means every call."""
    rule = parse_rule(text, "deny", source="hook")
    if rule.is_dead:
        return True
    only = _make_rule_policy(
        text, policy.roots, policy.home, policy.project_root, policy.matches_command
    )
    if request.command is None:
        return isinstance(decide(request, only), Deny)
    from handaxe.permission.shell_commands import Machine, judge_command

    # Where it cannot be told whether the rule means the command, the hook is better asked.
    return not isinstance(judge_command(request, only, Machine(cwd=policy.cwd)), Allow)


@lru_cache(maxsize=64)
def _make_rule_policy(
    text: str,
    roots: tuple[str, ...],
    home: str,
    project_root: str,
    matches_command: MatchesCommand | None,
) -> Policy:
    """A policy of one deny rule: what it denies is what the rule covers."""
    return make_policy(
        (parse_rule(text, "deny", source="hook"),),
        mode="bypassPermissions",
        roots=roots,
        home=home,
        project_root=project_root,
        matches_command=matches_command,
    )


def to_input_dict(value: object) -> dict[str, Any]:
    """A call's input as named values; nothing if it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
