"""Decide whether a call may run: validation, hooks before, permission.

Validation that must read outside the working directories waits for permission.
"""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Ask, Decision, Deny
from handaxe.contract.events import CallProgress, Event
from handaxe.contract.faults import Deferred, HookBlocked
from handaxe.contract.faults.file import RedactedText
from handaxe.contract.permission_subjects import PathSubject
from handaxe.contract.ports.files import Files
from handaxe.hooks.outcome import Outcome
from handaxe.permission.decide import JudgedPath, PermissionQuery, decide
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.hook_events import build_hook_event, tell_observers
from handaxe.pipeline.parse import ParsedCall, parse, replace_subjects, resolve_effects
from handaxe.pipeline.permission_request import (
    CallRefused,
    DeferredCall,
    HookFeedback,
    InputRewritten,
    PathGrants,
    Undecided,
    build_permission_query,
    build_rule_check,
    collect_judged_paths,
)
from handaxe.rules.tool_families import CHANGING_FILE_TOOLS, resolve_tool_alias
from handaxe.text.paths import is_inside


class PreparedCall(msgspec.Struct, frozen=True):
    """A call that may run."""

    parsed: ParsedCall
    ctx: ToolContext
    decision: Decision
    messages: tuple[str, ...] = ()
    was_rewritten: bool = False
    notes: tuple[str, ...] = ()
    may_change_files: bool = True
    """Whether it may change more than the state of the session."""


async def prepare(
    parsed: ParsedCall, heard: HookFeedback, context: PipelineContext
) -> PreparedCall:
    """Check the call, run the hooks, decide.

    Messages of hooks are in `heard`, even if the call is refused.
    """
    parsed, grants, ctx, validated = await _validate_call(parsed, context)
    hooks_word: Decision | None = None
    was_rewritten = False
    if context.hooks.watch_before:
        outcome = await _run_before_hooks(parsed, heard, context)
        hooks_word = outcome.decision
        if parsed.tool.asks_person and isinstance(hooks_word, Allow):
            # An approval alone does not answer; with an input it has the user's answer.
            heard.has_answer = outcome.input is not None
            hooks_word = hooks_word if heard.has_answer else None
        if outcome.input is not None and outcome.input != parsed.call.input:
            was_rewritten = True
            parsed, grants, ctx, validated = await _recheck_call(parsed, outcome.input, context)
    for _ in range(_MAX_REWRITES):
        try:
            parsed, decision = await _check_permission(parsed, ctx, hooks_word, heard, context)
            break
        except InputRewritten as rewritten:
            was_rewritten = True
            parsed, grants, ctx, validated = await _recheck_call(parsed, rewritten.input, context)
            # The tool's yes is one to its own input, and a person's to what they were shown.
            heard.tools_answer = rewritten.word if rewritten.by_tool else None
            if rewritten.by_tool:
                heard.answer = None
            else:
                hooks_word = None if heard.answer is not None else rewritten.word
    else:
        raise RuntimeError("the input was rewritten again and again without settling")
    for subject in parsed.subjects:
        if isinstance(subject, PathSubject):
            place = parsed.places[subject.path]
            grants.opened.add((place.path, subject.access))
            grants.opened.add((place.real, subject.access))
    grants.settled = True
    if heard.changes:
        from handaxe.pipeline.permission_prompt import change_permissions

        await change_permissions(parsed.call.id, heard, context)
    if not validated:
        await parsed.tool.validate(parsed.args, ctx)
    changes = not parsed.effects.is_internal
    return PreparedCall(parsed, ctx, decision, heard.messages, was_rewritten, heard.notes, changes)


async def _run_before_hooks(
    parsed: ParsedCall, heard: HookFeedback, context: PipelineContext
) -> Outcome:
    """Run the hooks before the call.

    Raises:
        CallRefused: a hook stops the work.
    """
    event = build_hook_event(parsed, context, "PreToolUse")
    outcome = await context.hooks.fire(
        event, aliases=parsed.other_names, covers=build_rule_check(parsed, context)
    )
    heard.take(outcome)
    reason = outcome.blocked
    if reason is None and outcome.stop is not None:
        reason = f"A hook stopped the work: {outcome.stop}"
    if reason is not None:
        raise CallRefused(HookBlocked(reason), Deny(reason, by="hook"))
    if not outcome.defers:
        return outcome

    return await defer_call(outcome, parsed.call.id, context)


async def _recheck_call(
    parsed: ParsedCall, call_input: dict[str, Any], context: PipelineContext
) -> tuple[ParsedCall, PathGrants, ToolContext, bool]:
    """Check the call again with another input.

    A hook that returns the whole shown input also returns fields that the tool had added.
    """
    own = {name: value for name, value in call_input.items() if name not in parsed.told}
    return await _validate_call(
        parse(ToolCall(parsed.call.id, parsed.call.tool, own), context), context
    )


async def _validate_call(
    parsed: ParsedCall, context: PipelineContext
) -> tuple[ParsedCall, PathGrants, ToolContext, bool]:
    """The call with its paths from session state, and whether validation finished.

    Raises:
        ToolFault: the call cannot work.
    """
    grants, ctx = _make_context(parsed, context)
    found = await parsed.tool.situate(parsed.args, ctx)
    if found is not None:
        parsed = replace_subjects(parsed, *found)
        grants, ctx = _make_context(parsed, context)
    _refuse_marker(parsed, context)
    try:
        await parsed.tool.validate(parsed.args, ctx)
    except Undecided:
        return parsed, grants, ctx, False
    if parsed.tool.tells_observers:
        parsed = await tell_observers(parsed, ctx, context)
    return parsed, grants, ctx, True


def _refuse_marker(parsed: ParsedCall, context: PipelineContext) -> None:
    """Refuse to write the placeholder of a redacted secret into a file."""
    if not context.redactor or resolve_tool_alias(parsed.tool.name) not in CHANGING_FILE_TOOLS:
        return
    marker = context.redactor.find_marker(str(parsed.call.input))
    if marker is not None:
        raise RedactedText(marker=marker)


def _make_context(parsed: ParsedCall, context: PipelineContext) -> tuple[PathGrants, ToolContext]:
    tool, call_id = parsed.tool, parsed.call.id
    grants = PathGrants(parsed, context)
    own: dict[type[Any], Any] = (
        {Files: context.files.restrict_with(grants.judge)} if Files in tool.reach else {}
    )
    if tool.has_own_ports:
        from handaxe.pipeline.session_view import make_own_ports

        own |= make_own_ports(tool, context)
    report = partial(_report, context.emit, call_id, tool.name)
    named = tool.starts_in(parsed.args)
    cwd = context.workdir.current if named is None else _resolve_directory(named, context)
    grants.ctx = ToolContext(call_id, context.ports, tool.reach, report, cwd, own, context)
    return grants, grants.ctx


def _resolve_directory(named: str, context: PipelineContext) -> str:
    """The directory that a call names; it must be inside the working directories."""
    place = context.workdir
    found = context.files.locate(place.resolve(named), place.roots)
    if not found.is_final or not any(is_inside(found.real, root) for root in place.roots):
        from handaxe.contract.faults.shell import OutsideRoots

        raise OutsideRoots(named, place.roots)
    return found.real


def _report(
    emit: Callable[[Event], object], call_id: str, tool: str, text: str, data: object = None
) -> None:
    emit(CallProgress(call_id=call_id, tool=tool, text=text, data=data))


async def _check_permission(
    parsed: ParsedCall,
    ctx: ToolContext,
    hooks_word: Decision | None,
    heard: HookFeedback,
    context: PipelineContext,
) -> tuple[ParsedCall, Decision]:
    """The call with resolved targets, and the decision that allows it.

    Raises:
        CallRefused: the call is not allowed.
    """
    judged = collect_judged_paths(parsed, context)
    tools_word = None if heard.has_answer else await parsed.tool.decide(parsed.args, ctx)
    if tools_word is None:
        tools_word = heard.tools_answer
    elif tools_word.__class__ is Allow:
        _take_rewritten_input(tools_word, parsed)
    elif not isinstance(tools_word, Ask | Deny):
        raise TypeError(
            f"`decide` must return Allow(), Ask(), Deny() or None, not {tools_word!r:.100}."
        )
    request = build_permission_query(parsed, judged)
    if request.command is None:
        decision = decide(request, context.policy())
    else:
        from handaxe.pipeline.command_decision import decide_shell_call

        decision = await decide_shell_call(request, parsed, ctx, context)
    if tools_word is not None or hooks_word is not None:
        mode = context.policy().mode
        decision = _merge_decisions(decision, tools_word, hooks_word, mode)
    if not isinstance(decision, Allow):
        decision = await _resolve_question(decision, request, parsed, ctx, heard, context)
    words = tools_word, hooks_word
    # What a name leads to is looked up only now, and it is judged as well.
    if parsed.tool.follows_names and (subjects := await parsed.tool.follow(parsed.args, ctx)):
        parsed = msgspec.structs.replace(parsed, subjects=subjects)
        decision = await _decide_target(parsed, judged, words, ctx, heard, context)
    if all(map(_is_final, parsed.places.values())):
        return parsed, decision
    # Beyond the roots links are followed only now.
    for spelling in [s for s, place in parsed.places.items() if not place.is_final]:
        path = parsed.places[spelling].path
        parsed.places[spelling] = context.files.locate(path, context.workdir.roots, beyond=True)
    farther = collect_judged_paths(parsed, context)
    if farther != judged:
        # The paths are fixed; their targets are still to be resolved.
        farther = tuple(msgspec.structs.replace(path, path=path.real) for path in farther)
        decision = await _decide_target(parsed, farther, words, ctx, heard, context)
    return resolve_effects(parsed, context), decision


async def _decide_target(
    parsed: ParsedCall,
    judged: tuple[JudgedPath, ...],
    words: tuple[Decision | None, Decision | None],
    ctx: ToolContext,
    heard: HookFeedback,
    context: PipelineContext,
) -> Decision:
    """The decision on the targets of names that were allowed."""
    request = build_permission_query(parsed, judged)
    policy = context.policy()
    decision = decide(request, policy)
    if any(words):
        decision = _merge_decisions(decision, *words, policy.mode)
    if not isinstance(decision, Allow):
        decision = await _resolve_question(decision, request, parsed, ctx, heard, context)
    return decision


def _take_rewritten_input(word: Decision, parsed: ParsedCall) -> None:
    """Judge the call with the input that its tool returned instead."""
    if isinstance(word, Allow) and word.input is not None and word.input != parsed.call.input:
        raise InputRewritten(word.input, word, by_tool=True)


_is_final = attrgetter("is_final")


def _merge_decisions(
    decision: Decision, tools_word: Decision | None, hooks_word: Decision | None, mode: str
) -> Decision:
    # What weighs several words is loaded when the first call has more than one.
    from handaxe.pipeline.permission_prompt import merge_decisions

    return merge_decisions(decision, tools_word, hooks_word, mode)


async def _resolve_question(
    decision: Ask | Deny,
    request: PermissionQuery,
    parsed: ParsedCall,
    ctx: ToolContext,
    heard: HookFeedback,
    context: PipelineContext,
) -> Decision:
    # Most calls just run; what asks for the others is loaded when the first one does.
    from handaxe.pipeline.permission_prompt import resolve_question

    return await resolve_question(decision, request, parsed, ctx, heard, context)


_MAX_REWRITES = 5
"""Maximum number of input rewrites."""
NOT_HERE = (
    "A hook deferred this call, but only the single call of an answer in a run without a "
    "terminal can be deferred."
)


async def defer_call(outcome: Outcome, call_id: str, context: PipelineContext) -> Outcome:
    """Turn a hook's deferral into a question if the call cannot be deferred.

    Raises:
        DeferredCall: the work stops here.
    """
    if isinstance(outcome.decision, Deny):
        return outcome
    if context.may_put_off is not None and await context.may_put_off(call_id):
        raise DeferredCall(Deferred())
    return msgspec.structs.replace(outcome, decision=Ask(NOT_HERE, by="hook"))
