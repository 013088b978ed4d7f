"""Get approval for a call: from hooks, a classifier or the user.

`prepare` decides whether a call needs approval.
"""

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.decision import (
    Allow,
    Ask,
    Decision,
    Deny,
    PermissionRequest,
    PermissionSuggestion,
    RuleProposal,
    ToolDefinition,
)
from handaxe.contract.display import Display
from handaxe.contract.events import CallDecided
from handaxe.contract.faults import Asked, Denied, ToolFault
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.contract.ports.permission import PermissionChanges
from handaxe.contract.tool import get_display_name
from handaxe.hooks.outcome import choose_strictest
from handaxe.permission.decide import PermissionQuery, Policy, is_binding, is_final
from handaxe.permission.reasons import deny_unasked
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.hook_events import build_hook_event
from handaxe.pipeline.parse import ParsedCall, to_input_dict
from handaxe.pipeline.permission_request import (
    CallRefused,
    HookFeedback,
    InputRewritten,
    Undecided,
    build_rule_check,
)
from handaxe.pipeline.person_questions import (
    ask_person,
    compute_digest,
    explain_decision,
    record_decision,
    take_later_answer,
)


async def resolve_question(
    decision: Ask | Deny,
    request: PermissionQuery,
    parsed: ParsedCall,
    ctx: ToolContext,
    heard: HookFeedback,
    context: PipelineContext,
) -> Decision:
    """The approval of a call.

    Raises:
        CallRefused: the call is not approved.
    """
    if isinstance(decision, Deny):
        raise CallRefused(Denied(explain_decision(decision)), decision)
    if is_final(decision):
        raise CallRefused(Asked(decision.sentence), decision)
    if heard.answer is not None:
        return heard.answer
    if context.hooks.watches("PermissionRequest") and not heard.were_asked:
        word = await _ask_hooks(decision, request, parsed, heard, context)
        if word is not None:
            return word
    question = await _build_question(decision, request, parsed, ctx, context)
    call_id, digest = parsed.call.id, compute_digest(question, request, decision, context)
    if (accepted := context.questions.find_accepted(call_id, digest)) is not None:
        # It was said before a later question about the same call, which stays open meanwhile.
        return accepted
    answer = await take_later_answer(question, digest, context)
    if answer is None:
        answer = await _ask_classifier(question, decision, request, parsed, ctx, context)
        if isinstance(answer, Deny):
            await _tell_denial(answer, parsed, heard, context)
    answer = answer or await ask_person(question, digest, decision, context)
    if decision.parts:
        answer = msgspec.structs.replace(
            answer, parts=decision.parts, destructive=decision.destructive
        )
    await record_decision(CallDecided(call_id=call_id, decision=answer), context)
    if isinstance(answer, Deny):
        raise CallRefused(Denied(f"The call was refused. {answer.sentence}".strip()), answer)
    if answer.input is not None and answer.input != question.input:
        heard.answer = answer
        raise InputRewritten(answer.input, answer)
    return answer


async def _build_question(
    decision: Ask,
    request: PermissionQuery,
    parsed: ParsedCall,
    ctx: ToolContext,
    context: PipelineContext,
) -> PermissionRequest:
    return PermissionRequest(
        call_id=parsed.call.id,
        tool=parsed.tool.name,
        input={**to_input_dict(parsed.call.input), **parsed.derived()},
        reason=decision.sentence,
        rule=decision.rule,
        source=decision.source,
        cwd=ctx.cwd,
        preview=(*decision.preview, *(await _build_preview(parsed, ctx, context) or ())) or None,
        agent_id=context.agent_id,
        agent_type=context.agent_type,
        proposals=select_proposals(decision, request, context.policy()),
        suggestions=build_suggestions(decision, request, context.policy()),
        destructive=decision.destructive,
        definitions=_list_definitions(parsed, context),
        display_name=get_display_name(parsed.tool, parsed.args),
    )


def _list_definitions(parsed: ParsedCall, context: PipelineContext) -> tuple[ToolDefinition, ...]:
    """The current tools of servers, with the called one as it was found."""
    own, servers = parsed.tool.definition, context.ports.get(McpServers)
    listed = () if servers is None else servers.definitions()
    if own is None:
        return listed
    return (own, *(one for one in listed if one.tool != own.tool))


async def _ask_classifier(
    question: PermissionRequest,
    decision: Ask,
    request: PermissionQuery,
    parsed: ParsedCall,
    ctx: ToolContext,
    context: PipelineContext,
) -> Allow | Deny | None:
    """The classifier's answer in `auto` mode; None for rules and protected paths."""
    if context.policy().mode != "auto" or not is_open(decision):
        return None
    from handaxe.pipeline.auto_mode import ask_classifier

    return await ask_classifier(question, decision, request, parsed, ctx, context)


async def _tell_denial(
    answer: Deny, parsed: ParsedCall, heard: HookFeedback, context: PipelineContext
) -> None:
    """Run the hooks for a classifier's refusal; they may allow one retry."""
    if not context.hooks.watches("PermissionDenied"):
        return
    event = {**build_hook_event(parsed, context, "PermissionDenied"), "reason": answer.reason}
    outcome = await context.hooks.fire(
        event, aliases=parsed.other_names, covers=build_rule_check(parsed, context)
    )
    heard.take(outcome)
    if outcome.extra.get("retry") is True:
        heard.messages += ("You may try the refused call once more.",)


async def _ask_hooks(
    decision: Decision,
    request: PermissionQuery,
    parsed: ParsedCall,
    heard: HookFeedback,
    context: PipelineContext,
) -> Decision | None:
    """The hooks' answer to a permission request; None leaves it to the user."""
    heard.were_asked = True
    event = build_hook_event(parsed, context, "PermissionRequest")
    call_id = event.pop("tool_use_id")
    from handaxe.permission.suggestions import to_updates

    if offered := to_updates(build_suggestions(decision, request, context.policy())):
        event["permission_suggestions"] = offered
    outcome = await context.hooks.fire(
        event, aliases=parsed.other_names, covers=build_rule_check(parsed, context), call_id=call_id
    )
    heard.take(outcome)
    word = outcome.decision
    if outcome.blocked is not None:
        word = Deny(outcome.blocked, by="hook")
    if isinstance(word, Deny):
        await record_decision(CallDecided(call_id=call_id, decision=word), context)
        raise CallRefused(Denied(word.reason), word)
    if not isinstance(word, Allow):
        return None
    if parsed.tool.asks_person and decision.by == "tool":
        # As before the call: an approval alone does not answer; with an input it has the user's
        # answer.
        heard.has_answer = outcome.input is not None
    if not (is_open(decision) or heard.has_answer):
        return None
    heard.changes += outcome.changes
    if outcome.input is not None and outcome.input != parsed.call.input:
        raise InputRewritten(outcome.input, word)
    word = msgspec.structs.replace(word, by="hook")
    await record_decision(CallDecided(call_id=call_id, decision=word), context)
    return word


async def change_permissions(call_id: str, heard: HookFeedback, context: PipelineContext) -> None:
    """Apply the permission changes that hooks requested, after the call was allowed."""
    if PermissionChanges not in context.ports:
        heard.notes += ("A hook requested permission changes that are not possible here.",)
        return
    changes: PermissionChanges = context.ports[PermissionChanges]
    for is_projects in (False, True):
        wanted = [given.change for given in heard.changes if given.from_project is is_projects]
        if wanted:
            problems = await changes.make(
                wanted, by="hook", call_id=call_id, from_project=is_projects
            )
            heard.notes += tuple(f"A hook's {problem}" for problem in problems)


async def _build_preview(
    parsed: ParsedCall, ctx: ToolContext, context: PipelineContext
) -> Display | None:
    """A preview of the call, if it needs no file that permission is missing for."""
    if context.asker is not None and not context.asker.looks:
        return None
    try:
        return await parsed.tool.preview(parsed.args, ctx)
    except (Undecided, ToolFault):
        return None


def merge_decisions(
    decision: Decision, tools_word: Decision | None, hooks_word: Decision | None, mode: str
) -> Decision:
    """Combine decisions: a tool or hook can be stricter, and can allow where no rule applies."""
    for word, by in ((tools_word, "tool"), (hooks_word, "hook")):
        if word is None:
            continue
        spoken = msgspec.structs.replace(
            word, by=by, parts=decision.parts, destructive=decision.destructive
        )
        if is_final(decision) and not isinstance(spoken, Deny):
            continue
        if isinstance(spoken, Allow):
            if is_open(decision):
                decision = spoken
        elif isinstance(spoken, Ask) and is_open(decision):
            # Both ask: the tool or hook knows a better reason than a default, except where a
            # preview is required.
            decision = decision if isinstance(decision, Ask) and decision.preview else spoken
        else:
            decision = choose_strictest(decision, spoken) or decision
    if mode == "dontAsk" and isinstance(decision, Ask):
        # A hook or tool requires the user, but this mode does not ask.
        return deny_unasked(decision)
    return decision


def is_open(decision: Decision) -> bool:
    """Whether a hook may approve: only a default asks."""
    is_default = isinstance(decision, Ask) and decision.by not in {"tool", "hook"}
    return is_default and not is_binding(decision)


def select_proposals(
    decision: Decision, request: PermissionQuery, policy: Policy
) -> tuple[RuleProposal, ...]:
    """Rules that would have allowed the call, if any could."""
    if is_binding(decision) or decision.by == "tool":
        return ()
    if request.command:
        return decision.proposals
    from handaxe.permission.suggestions import propose_rules

    return propose_rules(request, policy)


def build_suggestions(
    decision: Decision, request: PermissionQuery, policy: Policy
) -> tuple[PermissionSuggestion, ...]:
    """Permissions the user can grant with the approval."""
    from handaxe.permission.suggestions import suggest_permissions

    proposals = select_proposals(decision, request, policy)
    leaves = decision.proposals_leave_questions
    return suggest_permissions(request, policy, proposals, leaves_questions=leaves)
