"""Several words on one call: who is heard before whom, and what may be offered with a question."""

import msgspec

from handaxe.contract.decision import (
    Allow,
    Ask,
    Decision,
    Deny,
    PermissionSuggestion,
    RuleProposal,
)
from handaxe.hooks.outcome import choose_strictest
from handaxe.permission.decide import PermissionQuery, Policy, is_binding, is_final
from handaxe.permission.reasons import deny_unasked, to_display


def merge_decisions(
    decision: Decision, tools_word: Decision | None, hooks_word: Decision | None, mode: str
) -> Decision:
    """Rules first; a tool or a hook may be stricter, or say yes where no rule speaks."""
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
            # Both ask: whoever knows the call says better why than a default does, except where
            # something has to be seen first.
            decision = decision if isinstance(decision, Ask) and decision.preview else spoken
        else:
            decision = choose_strictest(decision, spoken) or decision
    if mode == "dontAsk" and isinstance(decision, Ask):
        # Whoever wants a person asked: nobody is, in this mode.
        return deny_unasked(decision)
    return decision


def is_open(decision: Decision) -> bool:
    """Whether a hook's yes is an answer: nobody asks but a default."""
    is_default = isinstance(decision, Ask) and decision.by not in {"tool", "hook"}
    return is_default and not is_binding(decision)


def select_proposals(
    decision: Decision, request: PermissionQuery, policy: Policy
) -> tuple[RuleProposal, ...]:
    """Rules that would have allowed the call, unless no rule could."""
    if is_binding(decision) or decision.by == "tool":
        return ()
    if request.command:
        return decision.proposals
    from handaxe.permission.suggestions__proposals import propose_rules

    return propose_rules(request, policy)


def build_suggestions(
    decision: Decision, request: PermissionQuery, policy: Policy
) -> tuple[PermissionSuggestion, ...]:
    """What a person can allow beside the call, narrow and wide, for how long."""
    from handaxe.permission.suggestions import suggest_permissions

    proposals = select_proposals(decision, request, policy)
    leaves = decision.proposals_leave_questions
    return suggest_permissions(request, policy, proposals, leaves_questions=leaves)


def explain_decision(decision: Decision) -> str:
    """Why a call may not just run, for the model; of a command the part, and what would help."""
    if not decision.parts:
        return decision.reason
    verb = "was denied" if decision.verdict == "deny" else "needs a yes"
    part = next((p for p in decision.parts if p.reason == decision.reason), None)
    is_one_of_many = part is not None and len(decision.parts) > 1
    about = f" (in `{to_display(part.text)}`)" if part is not None and is_one_of_many else ""
    rules = " and ".join(to_display(proposal.rule) for proposal in decision.proposals)
    remedy = ""
    if rules and decision.proposals_leave_questions:
        remedy = f" The allow rule {rules} would cover a part of it; the rest would still ask."
    elif rules:
        remedy = f" What would let it run without one: the allow rule {rules}."
    return f"The command {verb}: {decision.reason.removesuffix('.')}{about}.{remedy}"
