"""The verdict on a shell command under a session's rules.

`handaxe.shell` reads commands and knows no path rules; `decide` knows path rules and reads no
commands. Here each gets the other's word. `handaxe explain` and the pipeline both ask here, so
they cannot answer differently.
"""

from typing import Literal

import msgspec

from handaxe.contract.decision import Allow, Ask, DecidedPart, Decision, Deny, Loss, RuleProposal
from handaxe.contract.readable_files import ReadableFiles
from handaxe.contract.subjects import Access
from handaxe.runtime.permission.closed import fences_of
from handaxe.runtime.permission.decide import JudgedPath, Request, decide
from handaxe.runtime.permission.policy import Policy
from handaxe.runtime.permission.reasons import PROTECTED, planning, walled_off, without_yes
from handaxe.runtime.permission.rules import Rule, format_rule
from handaxe.session.permission_state import Mode
from handaxe.shell import PartDecision, PathVerdict, SecondOpinion, ShellDecision, ShellRules
from handaxe.shell import Rule as ShellRule
from handaxe.shell import decide as decide_shell
from handaxe.shell.walls import way_out

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
    git_doubt: str = ""
    """What it names, in words."""
    project_programs: frozenset[str] = frozenset()
    """Names under which PATH finds a program of the project."""
    second_opinion: SecondOpinion | None = None
    sandbox: ReadableFiles | None = None
    """What the command can read inside the sandbox that answers for it; None where none does."""

    @property
    def is_confined(self) -> bool:
        """Whether the command will run inside a sandbox that may answer for it."""
        return self.sandbox is not None


_NO_FACTS = Facts()


def judge_command(request: Request, policy: Policy, facts: Facts = _NO_FACTS) -> Decision:
    """The decision on a call that runs a command, part by part; pure, and never raises."""
    decision = decision_on(analysis_of(request, policy, facts), request, policy, facts.cwd)
    if policy.mode == "plan" and isinstance(decision, Ask):
        return while_planning(decision, request, reading_of(request, policy, facts))
    return decision


def analysis_of(request: Request, policy: Policy, facts: Facts = _NO_FACTS) -> ShellDecision:
    """What the shell analysis says of the call's command."""
    return decide_command(request.command or "", policy, facts, tool=request.tool)


def reading_of(request: Request, policy: Policy, facts: Facts) -> ShellDecision:
    """The same analysis of one thing only: is the command proved to change nothing?"""
    return decide_shell(
        request.command or "",
        rules=ShellRules(),
        path_verdict=_looking_is_free,
        mode="plan",
        cwd=facts.cwd or policy.cwd,
        home=policy.home,
        working_dirs=policy.roots,
        git_clean=facts.git_clean,
        git_doubt=facts.git_doubt,
        project_programs=facts.project_programs,
        second_opinion=facts.second_opinion,
    )


def while_planning(decision: Decision, request: Request, reading: ShellDecision) -> Decision:
    """A question in plan mode: about where to look it stays one, about a change nobody's is."""
    if reading.verdict == "allow":
        return decision
    return msgspec.structs.replace(planning(f"`{request.command}`"), parts=decision.parts)


def decision_on(
    shell: ShellDecision, request: Request, policy: Policy, cwd: str | None = None
) -> Decision:
    """An analysis as a decision; a wall and rules about the call itself may be stricter."""
    decision = _as_decision(shell)
    if policy.walled_off is not None and not isinstance(decision, Deny):
        out = way_out(
            request.command or "",
            wall=policy.walled_off,
            is_ours=lambda path: not policy.is_walled_off(path),
            cwd=cwd or policy.cwd,
            home=policy.home,
        )
        if out is not None:
            return msgspec.structs.replace(walled_off(out), parts=decision.parts)
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
    command: str, policy: Policy, facts: Facts = _NO_FACTS, *, tool: str = "Bash"
) -> ShellDecision:
    """What the rules say of a bash command, part by part; pure, and never raises."""
    if facts.sandbox is not None:
        # What may run anyway needs no answer of the sandbox.
        free = _decide_command(command, policy, _without_sandbox(facts), tool)
        if free.verdict == "allow":
            return free
    return _decide_command(command, policy, facts, tool)


def _without_sandbox(facts: Facts) -> Facts:
    return msgspec.structs.replace(facts, sandbox=None)


def _decide_command(command: str, policy: Policy, facts: Facts, tool: str) -> ShellDecision:
    rules = policy.book.command_rules(tool)
    paths_policy = _for_paths(policy, is_confined=facts.is_confined)
    allowing, asking = _for_shell(rules["allow"]), rules["ask"]
    if facts.is_confined:
        allowing = (*allowing, _SANDBOX)
        asking = tuple(rule for rule in asking if not rule.is_whole_tool)

    said = _unasked_verdict if policy.mode == "dontAsk" else verdict_on

    def path_verdict(path: str, access: Access) -> PathVerdict:
        word = said(JudgedPath(path=path, real=path, access=access), paths_policy)
        return inside_sandbox(word, path, access, facts.sandbox)

    # What a sandbox keeps inside needs no second word on its operands.
    ruled_policy = for_ruled(policy)

    def written_verdict(path: str, access: Access) -> PathVerdict:
        return said(JudgedPath(path=path, real=path, access=access), ruled_policy)

    return decide_shell(
        command,
        rules=ShellRules(
            allow=allowing,
            ask=_for_shell(asking),
            deny=_for_shell(rules["deny"]),
        ),
        path_verdict=path_verdict,
        mode=policy.mode,
        cwd=facts.cwd or policy.cwd,
        home=policy.home,
        working_dirs=policy.roots,
        git_clean=facts.git_clean,
        git_doubt=facts.git_doubt,
        project_programs=facts.project_programs,
        fences=fences_of(policy.book),
        second_opinion=facts.second_opinion,
        written_verdict=None if facts.is_confined else written_verdict,
    )


def _looking_is_free(path: str, access: Access) -> PathVerdict:
    return PathVerdict("allow") if access == "read" else PathVerdict("ask", f"{path} would change")


def verdict_on(judged: JudgedPath, policy: Policy) -> PathVerdict:
    """What the path rules say of one file operand, both its ends considered."""
    tool = "Read" if judged.access == "read" else "Edit"
    request = Request(tool=tool, read_only=judged.access == "read", paths=(judged,))
    word = decide(request, policy)
    return PathVerdict(
        word.verdict, word.reason, word.rule, word.source, is_binding=word.source == PROTECTED
    )


def inside_sandbox(
    word: PathVerdict, path: str, access: Access, sandbox: ReadableFiles | None
) -> PathVerdict:
    """The word on a file of a confined command.

    A question about reading is free where the sandbox hides the file, and else needs its answer:
    the sandbox answers for what it keeps a command from, and for nothing it lets it do.
    """
    if sandbox is None or access == "write" or word.verdict != "ask":
        return word
    if sandbox.can_read(path):
        return msgspec.structs.replace(word, is_binding=True)
    return word if word.rule is not None else PathVerdict("allow")


def _unasked_verdict(judged: JudgedPath, policy: Policy) -> PathVerdict:
    """The same where nobody is there to say yes."""
    word = verdict_on(judged, policy)
    return msgspec.structs.replace(word, reason=without_yes(word.reason))


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


def for_ruled(policy: Policy) -> Policy:
    """The same rules for what an allowed command writes: inside the rule for it is enough."""
    return _in_mode(policy, "acceptEdits")


def _for_paths(policy: Policy, *, is_confined: bool) -> Policy:
    """The same rules for paths of a command."""
    if is_confined and policy.mode in {"default", "auto"}:
        # Changes inside the working directories are free: the sandbox keeps them.
        return _in_mode(policy, "acceptEdits")
    # What may not be asked about is refused in the end, after rules for the command have spoken.
    return _in_mode(policy, "default") if policy.mode == "dontAsk" else policy


def _in_mode(policy: Policy, mode: Mode) -> Policy:
    if policy.mode == mode:
        return policy
    return Policy(
        policy.book,
        mode=mode,
        roots=policy.roots,
        free_to_read=policy.free_to_read,
        free_to_write=policy.free_to_write,
        walled_off=policy.walled_off,
    )


def _for_shell(rules: tuple[Rule, ...]) -> tuple[ShellRule, ...]:
    return tuple(
        ShellRule("" if rule.is_whole_tool else rule.specifier or "", rule.origin, _named(rule))
        for rule in rules
    )


def _named(rule: Rule) -> str:
    return "Monitor" if rule.tool == "Monitor" else "Bash"
