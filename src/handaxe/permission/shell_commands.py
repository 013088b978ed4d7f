"""Decide about shell commands under a session's rules.

`handaxe.shell.analysis` parses commands and knows no path rules; `decide` knows path rules and
parses no commands. This module connects them. The pipeline and `handaxe explain` both use it, so
their answers agree.
"""

from typing import Any, Literal

import msgspec

from handaxe.contract.decision import Allow, Ask, DecidedPart, Decision, Deny, Loss, RuleProposal
from handaxe.contract.permission_subjects import Access
from handaxe.contract.readable_files import ReadableFiles
from handaxe.permission.decide import JudgedPath, PermissionQuery, decide
from handaxe.permission.denied_paths import collect_restricted_paths, restrict_own_paths
from handaxe.permission.policy import Policy
from handaxe.permission.reasons import (
    ABOVE_PROTECTED,
    PROTECTED,
    ask_in_plan_mode,
    deny_worktree_escape,
    to_display,
)
from handaxe.rules.grammar import PermissionRule, format_rule
from handaxe.shell.analysis import BashRule as ShellRule
from handaxe.shell.analysis import (
    CommandFacts,
    CrossCheck,
    PartDecision,
    PathVerdict,
    Repository,
    ShellDecision,
    ShellRules,
    analyze,
    is_read_only,
)
from handaxe.shell.analysis import DestructiveForm as CommandLoss
from handaxe.shell.analysis import decide as decide_shell
from handaxe.shell.analysis.effects.worktree_escape import find_worktree_escape

_ORDER = {"allow": 0, "ask": 1, "deny": 2}
CONFINED = "it runs in the sandbox, and the settings allow such commands without asking"
_SANDBOX = ShellRule("", tool="sandbox")
"""Represents the setting that allows sandboxed commands; it has the reach of a whole-tool allow
rule.
"""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the machine that the command's text cannot show."""

    cwd: str | None = None
    repository: Repository = Repository()
    """Whether the repository's configuration names a program that git would run."""
    project_programs: frozenset[str] = frozenset()
    """Names under which PATH finds a program of the project."""
    cross_check: CrossCheck | None = None
    sandbox: ReadableFiles | None = None
    """The files that the sandboxed command can read; None if no sandbox confines it."""

    ask_irreversible: bool = True
    """Whether irreversible effects need approval unless a rule names them."""

    @property
    def is_confined(self) -> bool:
        """Whether a sandbox confines the command."""
        return self.sandbox is not None


_UNKNOWN_MACHINE = Machine()


def judge_command(
    request: PermissionQuery, policy: Policy, machine: Machine = _UNKNOWN_MACHINE
) -> Decision:
    """The decision on a call that runs a command; pure, and never raises."""
    facts = analyze_command(request, policy, machine)
    shell = decide_command(facts, policy, machine, tool=request.tool)
    return apply_mode(make_decision(shell, facts, request, policy), facts, policy, machine)


def analyze_command(request: PermissionQuery, policy: Policy, machine: Machine) -> CommandFacts:
    """Parse the command of a call, with its directory."""
    return analyze(request.command or "", machine.cwd or policy.cwd, policy.home, policy.roots)


def describe_command(command: str, policy: Policy) -> dict[str, Any]:
    """The parts of a command, for listeners and hooks."""
    facts = analyze(command, policy.cwd, policy.home, policy.roots)
    return {
        "parts": [part.text for part in (*facts.parts, *facts.later_parts)],
        "programs": sorted(facts.programs),
        "only_reads": facts.only_reads,
    }


def apply_mode(
    decision: Decision, facts: CommandFacts, policy: Policy, machine: Machine
) -> Decision:
    """Apply plan mode: questions about reading stay questions, changes become final refusals."""
    if policy.mode != "plan" or not isinstance(decision, Ask):
        return decision
    if is_read_only(facts, machine.repository, machine.project_programs, machine.cross_check):
        return decision
    return msgspec.structs.replace(ask_in_plan_mode(f"`{facts.text}`"), parts=decision.parts)


def make_decision(
    shell: ShellDecision, facts: CommandFacts, request: PermissionQuery, policy: Policy
) -> Decision:
    """Convert the shell analysis into a decision; path rules and call rules can be stricter."""
    decision = _to_decision(shell, policy)
    if policy.walled_off is not None and not isinstance(decision, Deny):
        out = find_worktree_escape(
            facts,
            wall=policy.walled_off,
            is_ours=lambda path: not policy.is_walled_off(path),
        )
        if out is not None:
            return msgspec.structs.replace(deny_worktree_escape(out), parts=decision.parts)
    whole = decide(msgspec.structs.replace(request, command=None, paths=(), texts=()), policy)
    # A rule about a parameter (`Bash(run_in_background:true)`) covers the call, not its text; the
    # analysis handles rules for the whole tool.
    is_param = whole.rule is not None and ":" in whole.rule
    if is_param and _ORDER[whole.verdict] > _ORDER[decision.verdict]:
        decision = msgspec.structs.replace(
            whole, parts=decision.parts, destructive=decision.destructive
        )
    return decision


def decide_command(
    facts: CommandFacts,
    policy: Policy,
    machine: Machine = _UNKNOWN_MACHINE,
    *,
    tool: str = "Bash",
) -> ShellDecision:
    """The rules' decision on each part of a command; pure, and never raises."""
    if machine.sandbox is not None:
        # What may run anyway needs no answer of the sandbox.
        outside = msgspec.structs.replace(machine, sandbox=None)
        free = _decide_command(facts, policy, outside, tool)
        if free.verdict == "allow":
            return free
    return _decide_command(facts, policy, machine, tool)


def _decide_command(
    facts: CommandFacts, policy: Policy, machine: Machine, tool: str
) -> ShellDecision:
    rules = policy.book.list_command_rules(tool)
    paths_policy = _adapt_path_policy(policy, is_confined=machine.is_confined)
    allowing, asking = _to_shell_rules(rules["allow"]), rules["ask"]
    if machine.is_confined:
        allowing = (*allowing, _SANDBOX)
        asking = tuple(rule for rule in asking if not rule.is_whole_tool)

    def path_verdict(path: str, access: Access) -> PathVerdict:
        word = decide_path(JudgedPath(path=path, real=path, access=access), paths_policy)
        return judge_inside_sandbox(word, path, access, machine.sandbox)

    # What a sandbox keeps inside needs no second word on its operands.
    ruled_policy = to_accept_edits(policy)

    def written_verdict(path: str, access: Access) -> PathVerdict:
        return decide_path(JudgedPath(path=path, real=path, access=access), ruled_policy)

    # A sandbox also protects handaxe's own data from effects that the text does not show.
    is_open = policy.mode == "bypassPermissions" or machine.is_confined
    own = () if is_open else restrict_own_paths(policy.own_in_roots)
    return decide_shell(
        facts,
        rules=ShellRules(
            allow=allowing,
            ask=_to_shell_rules(asking),
            deny=_to_shell_rules(rules["deny"]),
        ),
        path_verdict=path_verdict,
        mode=policy.mode,
        working_dirs=policy.roots,
        repository=machine.repository,
        project_programs=machine.project_programs,
        fences=(*collect_restricted_paths(policy.book), *own),
        cross_check=machine.cross_check,
        written_verdict=None if machine.is_confined else written_verdict,
        ask_irreversible=machine.ask_irreversible,
    )


def decide_path(judged: JudgedPath, policy: Policy) -> PathVerdict:
    """The path rules' decision on one file operand, for its name and its target."""
    is_read = judged.access == "read"
    query = PermissionQuery(tool="Read" if is_read else "Edit", read_only=is_read, paths=(judged,))
    decision = decide(query, policy)
    return PathVerdict(
        decision.verdict,
        decision.sentence,
        decision.rule,
        decision.source,
        is_binding=decision.source in {PROTECTED, ABOVE_PROTECTED},
        # A command names a working directory for the work in it, but other paths for themselves.
        is_above=decision.source == ABOVE_PROTECTED and not policy.is_below_a_root(judged.path),
    )


def judge_inside_sandbox(
    word: PathVerdict, path: str, access: Access, sandbox: ReadableFiles | None
) -> PathVerdict:
    """The decision on a file of a sandboxed command.

    Reading needs no approval if the sandbox hides the file, because the command cannot read it. A
    readable file keeps its question.
    """
    if sandbox is None or access == "write" or word.verdict != "ask":
        return word
    if sandbox.can_read(path):
        return msgspec.structs.replace(word, is_binding=True)
    return word if word.rule is not None else PathVerdict("allow")


def apply_verdict(decision: Decision, text: str, word: PathVerdict) -> Decision:
    """Add a path's stricter decision to the decision as one more part."""
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


def _to_decision(shell: ShellDecision, policy: Policy) -> Decision:
    kind = {"allow": Allow, "ask": Ask, "deny": Deny}[shell.verdict]
    is_critical = shell.verdict == "ask" and shell.is_critical
    parts = tuple(_to_part(part) for part in shell.parts)
    by = _to_source(shell.by)
    said = _to_part(PartDecision("", shell.verdict, shell.reason, shell.rule, shell.source, by))
    return kind(
        said.reason,
        _to_source(said.by),
        said.rule,
        PROTECTED if is_critical and said.source is None else said.source,
        parts=parts,
        destructive=tuple(
            Loss(
                text=loss.text,
                form=loss.form,
                reason=f"{loss.reason}; {_describe_undo(loss, policy)}",
                critical=is_critical,
                paths=loss.paths,
            )
            for loss in shell.losses
        ),
        proposals=tuple(
            RuleProposal(
                _escape_rule(proposal.rule),
                tuple(proposal.would_match),
                tuple(proposal.would_not_match),
                proposal.for_part,
                proposal.meaning,
            )
            for proposal in shell.proposals
        ),
        proposals_leave_questions=shell.proposals_leave_questions,
        remedy=_describe_proposals(shell),
    )


def _describe_proposals(shell: ShellDecision) -> str:
    """Describe the rules that would allow the command."""
    if shell.verdict != "ask" or not shell.proposals or shell.proposals_leave_questions:
        return ""
    rules = " and ".join(to_display(_escape_rule(one.rule)) for one in shell.proposals)
    return f"Add the allow rule {rules}."


def _describe_undo(loss: CommandLoss, policy: Policy) -> str:
    """Whether undo can restore what a command destroys, judged by its text."""
    is_inside = loss.in_checkout or all(policy.is_inside(path) for path in loss.paths)
    can_be = is_inside and not loss.irreversible and (loss.in_checkout or bool(loss.paths))
    return "can be undone" if can_be else "cannot be undone"


def _escape_rule(rule: str) -> str:
    """Escape a proposed rule so that it parses back to itself."""
    tool, _, rest = rule.partition("(")
    return format_rule(PermissionRule(tool, rest[:-1], ""))


def _to_part(part: PartDecision) -> DecidedPart:
    reason, rule, by = part.reason, part.rule, part.by
    if rule == _SANDBOX.text:
        reason = CONFINED if part.verdict == "allow" else reason
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


def _to_source(word: str) -> Literal["rule", "mode", "builtin"]:
    return "rule" if word == "rule" else "mode" if word == "mode" else "builtin"


def to_accept_edits(policy: Policy) -> Policy:
    """The policy for files that an allowed command writes: acceptEdits mode in the roots."""
    return policy.change_mode("acceptEdits")


def _adapt_path_policy(policy: Policy, *, is_confined: bool) -> Policy:
    """The policy for paths of a command."""
    # What may not be asked about is refused in the end, after rules for the command have spoken.
    mode = "default" if policy.mode == "dontAsk" else policy.mode
    if is_confined and policy.mode in {"default", "auto"}:
        # Changes inside the working directories are free: the sandbox keeps them.
        mode = "acceptEdits"
    # What a confined command reaches is the sandbox's business, in a closed session too.
    return policy.change_mode(mode, is_confined=is_confined)


def _to_shell_rules(rules: tuple[PermissionRule, ...]) -> tuple[ShellRule, ...]:
    return tuple(
        ShellRule("" if rule.is_whole_tool else rule.specifier or "", rule.origin, _name_tool(rule))
        for rule in rules
    )


def _name_tool(rule: PermissionRule) -> str:
    return "Monitor" if rule.tool == "Monitor" else "Bash"
