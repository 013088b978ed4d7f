"""Hook input about a session, a call and a batch, and the `if` condition of hooks."""

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Deny
from handaxe.contract.events import CallDerived
from handaxe.contract.faults import LEFT_OPEN
from handaxe.contract.permission_subjects import CommandSubject
from handaxe.contract.result import ToolResult
from handaxe.hooks.notify import build_session_event
from handaxe.hooks.outcome import Outcome
from handaxe.permission.decide import PermissionQuery, Policy, decide
from handaxe.permission.policy import MatchesCommand, make_policy
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.parse import ParsedCall, to_input_dict
from handaxe.rules.grammar import parse_rule


def build_hook_event(parsed: ParsedCall, context: PipelineContext, name: str) -> dict[str, Any]:
    """Hook input about a call, with resolved paths."""
    event = build_session_event(context, name)
    event["tool_name"] = parsed.tool.name
    event["tool_input"] = {**to_input_dict(parsed.call.input), **parsed.derived()}
    event["tool_use_id"] = parsed.call.id
    for subject in parsed.subjects:
        if isinstance(subject, CommandSubject):
            from handaxe.permission.shell_commands import describe_command

            event["parsed_command"] = describe_command(subject.command, context.policy())
    return event


async def tell_observers(
    parsed: ParsedCall, ctx: ToolContext, context: PipelineContext
) -> ParsedCall:
    """The call with the fields that its tool adds for hooks, listeners and the log."""
    told = await parsed.tool.for_observers(parsed.args, ctx)
    if not told:
        return parsed
    from handaxe.contract.json_values import to_json_or_text

    plain = msgspec.to_builtins(told, enc_hook=to_json_or_text, str_keys=True)
    context.emit(CallDerived(call_id=parsed.call.id, derived=plain))
    return msgspec.structs.replace(parsed, told=plain)


def build_batch_event(
    calls: Sequence[tuple[ToolCall, ParsedCall | None]],
    results: Sequence[ToolResult],
    context: PipelineContext,
) -> dict[str, Any]:
    """Hook input about the calls of one message."""
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


class BatchHooks:
    """Runs the hooks for a complete batch of calls."""

    def __init__(self, context: PipelineContext) -> None:
        self._context = context
        self._running: set[asyncio.Future[Outcome]] = set()

    async def fire(
        self, calls: Sequence[tuple[ToolCall, ParsedCall | None]], results: list[ToolResult]
    ) -> list[ToolResult]:
        """Run the hooks after all calls of a message and add their texts to the last result."""
        hooks = self._context.hooks
        if not results or not hooks.watches("PostToolBatch"):
            return results
        if any(result.code in LEFT_OPEN for result in results):
            return results
        running = asyncio.ensure_future(
            hooks.fire(build_batch_event(calls, results, self._context))
        )
        self._running.add(running)
        try:
            outcome = await asyncio.shield(running)
        except asyncio.CancelledError:
            # Stopped by `cancel`, the hooks go and the results stay; else it is not ours to keep.
            if not running.cancelled():
                running.cancel()
                raise
            return results
        finally:
            self._running.discard(running)
        said = (*outcome.messages, *((outcome.blocked,) if outcome.blocked else ()))
        stop = (f"A hook asks to stop: {outcome.stop}",) if outcome.stop else ()
        last = results[-1]
        last = msgspec.structs.replace(
            last,
            messages=(*last.messages, *said),
            notes=(*last.notes, *outcome.notes, *stop),
            stops=last.stops or outcome.stop or outcome.blocked,
        )
        return [*results[:-1], self._context.redactor.redact_value(last)]

    def cancel(self) -> None:
        """Stop the running hooks; the results stay unchanged."""
        for running in self._running:
            running.cancel()


def is_covered_by_rule(text: str, request: PermissionQuery, policy: Policy) -> bool:
    """Whether a hook's `if` covers this call; an invalid rule covers every call."""
    rule = parse_rule(text, "deny", source="hook")
    if rule.is_dead:
        return True
    only = _make_rule_policy(
        text, policy.roots, policy.home, policy.project_root, policy.matches_command
    )
    if request.command is None:
        return isinstance(decide(request, only), Deny)
    from handaxe.permission.shell_commands import Machine, judge_command

    # If it is uncertain whether the rule covers the command, the hook runs.
    return not isinstance(judge_command(request, only, Machine(cwd=policy.cwd)), Allow)


@lru_cache(maxsize=64)
def _make_rule_policy(
    text: str,
    roots: tuple[str, ...],
    home: str,
    project_root: str,
    matches_command: MatchesCommand | None,
) -> Policy:
    """A policy of one deny rule: it denies what the rule covers."""
    return make_policy(
        (parse_rule(text, "deny", source="hook"),),
        mode="bypassPermissions",
        roots=roots,
        home=home,
        project_root=project_root,
        matches_command=matches_command,
    )
