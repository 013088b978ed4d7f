"""The verdict on a shell command under a session's rules.

`handaxe.shell` reads commands and knows no path rules; `decide` knows path rules and reads no
commands. Here each gets the other's word. `handaxe explain` and the pipeline both ask here, so
they cannot answer differently.
"""

from typing import Literal

import msgspec

from handaxe.contract.decision import Allow, Ask, DecidedPart, Decision, Deny, Loss, RuleProposal
from handaxe.contract.subjects import Access
from handaxe.runtime.permission.closed import fences_of
from handaxe.runtime.permission.decide import JudgedPath, Request, decide
from handaxe.runtime.permission.policy import Policy
from handaxe.runtime.permission.reasons import PROTECTED
from handaxe.runtime.permission.rules import Rule, format_rule
from handaxe.shell import PartDecision, PathVerdict, SecondOpinion, ShellDecision, ShellRules
from handaxe.shell import Rule as ShellRule
from handaxe.shell import decide as decide_shell

_ORDER = {"allow": 0, "ask": 1, "deny": 2}
CONFINED = "it runs inside the sandbox, and the settings let such commands run without a question"
_UNANSWERED = "the sandbox does not answer for that"
_SANDBOX = ShellRule("", tool="sandbox")
"""Stands for the settings' yes to confined commands: it reaches as far as an allow rule for all."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict depends on beside the text, the rules and the mode."""

    cwd: str | None = None
    git_clean: bool = True
    """Whether the repository's own configuration names no program."""
    second_opinion: SecondOpinion | None = None
    is_confined: bool = False
    """Whether the command will run inside a sandbox that may answer for it."""


_NO_FACTS = Facts()


def judge_command(request: Request, policy: Policy, facts: Facts = _NO_FACTS) -> Decision:
    """The decision on a call that runs a command, part by part; pure, and never raises."""
    return decision_on(analysis_of(request, policy, facts), request, policy)


def analysis_of(request: Request, policy: Policy, facts: Facts = _NO_FACTS) -> ShellDecision:
    """What the shell analysis says of the call's command."""
    return decide_command(
        request.command or "",
        policy,
        tool=request.tool,
        cwd=facts.cwd,
        git_clean=facts.git_clean,
        second_opinion=facts.second_opinion,
        is_confined=facts.is_confined,
    )


def decision_on(shell: ShellDecision, request: Request, policy: Policy) -> Decision:
    """An analysis as a decision; rules about the call itself may be stricter."""
    decision = _as_decision(shell)
    whole = decide(msgspec.structs.replace(request, command=None, paths=(), texts=()), policy)
    # A rule about a parameter (`Bash(run_in_background:true)`) speaks of the call, not its text;
    # rules for the whole tool are the analysis's own.
    is_param = whole.rule is not None and ":" in whole.rule
    if is_param and _ORDER[whole.verdict] > _ORDER[decision.verdict]:
        decision = msgspec.structs.replace(
            whole, parts=decision.parts, destructive=decision.destructive
        )
    return decision


def decide_command(
    command: str,
    policy: Policy,
    *,
    tool: str = "Bash",
    cwd: str | None = None,
    git_clean: bool = True,
    second_opinion: SecondOpinion | None = None,
    is_confined: bool = False,
) -> ShellDecision:
    """What the rules say of a bash command, part by part; pure, and never raises."""
    rules = policy.book.command_rules(tool)
    paths_policy = _for_confined(policy) if is_confined else policy
    allowing, asking = _for_shell(rules["allow"]), rules["ask"]
    if is_confined:
        allowing = (*allowing, _SANDBOX)
        asking = tuple(rule for rule in asking if not rule.is_whole_tool)

    def path_verdict(path: str, access: Access) -> PathVerdict:
        return verdict_on(JudgedPath(path=path, real=path, access=access), paths_policy)

    return decide_shell(
        command,
        rules=ShellRules(
            allow=allowing,
            ask=_for_shell(asking),
            deny=_for_shell(rules["deny"]),
        ),
        path_verdict=path_verdict,
        mode=policy.mode,
        cwd=cwd or policy.cwd,
        home=policy.home,
        working_dirs=policy.roots,
        git_clean=git_clean,
        fences=fences_of(policy.book),
        second_opinion=second_opinion,
    )


def verdict_on(judged: JudgedPath, policy: Policy) -> PathVerdict:
    """What the path rules say of one file operand, both its ends considered."""
    tool = "Read" if judged.access == "read" else "Edit"
    request = Request(tool=tool, read_only=judged.access == "read", paths=(judged,))
    word = decide(request, policy)
    return PathVerdict(
        word.verdict, word.reason, word.rule, word.source, is_binding=word.source == PROTECTED
    )


def with_word(decision: Decision, text: str, word: PathVerdict) -> Decision:
    """The decision with a path's stricter word as one more part."""
    by = "rule" if word.rule else "builtin"
    part = DecidedPart(
        text=text,
        verdict=word.verdict,
        reason=word.reason,
        rule=word.rule,
        source=word.source,
        by=by,
        cause="link",
    )
    parts = (*decision.parts, part)
    if _ORDER[word.verdict] <= _ORDER[decision.verdict]:
        return msgspec.structs.replace(decision, parts=parts)
    kind = Deny if word.verdict == "deny" else Ask
    return kind(
        word.reason, by, word.rule, word.source, parts=parts, destructive=decision.destructive
    )


def _as_decision(shell: ShellDecision) -> Decision:
    kind = {"allow": Allow, "ask": Ask, "deny": Deny}[shell.verdict]
    is_critical = shell.verdict == "ask" and any(
        part.cause == "critical" for part in shell.parts if part.verdict == "ask"
    )
    parts = tuple(_as_part(part) for part in shell.parts)
    said = _as_part(
        PartDecision("", shell.verdict, shell.reason, shell.rule, shell.source, _by(shell.by))
    )
    return kind(
        said.reason,
        _by(said.by),
        said.rule,
        PROTECTED if is_critical and said.source is None else said.source,
        parts=parts,
        destructive=tuple(
            Loss(
                text=loss.text,
                form=loss.form,
                reason=loss.reason,
                critical=loss.critical,
                paths=loss.paths,
            )
            for loss in shell.destruction
        ),
        proposals=tuple(
            RuleProposal(
                _written(proposal.rule),
                tuple(proposal.would_match),
                tuple(proposal.would_not_match),
                proposal.for_part,
                proposal.meaning,
            )
            for proposal in shell.proposals
        ),
        proposals_leave_questions=shell.proposals_leave_questions,
    )


def _written(rule: str) -> str:
    """A proposed rule as it reads back: what has a meaning in rules is escaped."""
    tool, _, rest = rule.partition("(")
    return format_rule(Rule(tool, rest[:-1], ""))


def _as_part(part: PartDecision) -> DecidedPart:
    reason, rule, by = part.reason, part.rule, part.by
    if rule == _SANDBOX.text:
        reason = CONFINED if part.verdict == "allow" else _without_rule(reason)
        rule, by = None, "builtin"
    return DecidedPart(
        text=part.text,
        verdict=part.verdict,
        reason=reason,
        rule=rule,
        source=part.source,
        by=by,
        cause=part.cause,
    )


def _without_rule(reason: str) -> str:
    return f"{reason.partition(', and the allow rule')[0]}, and {_UNANSWERED}"


def _by(word: str) -> Literal["rule", "mode", "builtin"]:
    return "rule" if word == "rule" else "mode" if word == "mode" else "builtin"


def _for_confined(policy: Policy) -> Policy:
    """The same rules, with changes inside the working directories free: the sandbox keeps them."""
    if policy.mode not in {"default", "auto"}:
        return policy
    return Policy(
        policy.book, mode="acceptEdits", roots=policy.roots, free_to_read=policy.free_to_read
    )


def _for_shell(rules: tuple[Rule, ...]) -> tuple[ShellRule, ...]:
    return tuple(
        ShellRule("" if rule.is_whole_tool else rule.specifier or "", rule.origin, _named(rule))
        for rule in rules
    )


def _named(rule: Rule) -> str:
    return "Monitor" if rule.tool == "Monitor" else "Bash"
