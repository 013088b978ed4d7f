"""Decide about a bash command: allow, ask or deny, with a reason for every part.

Pure and total: it uses only the facts, runs nothing and never raises. Anything not understood needs
approval.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from handaxe.shell.analysis.decision.part_decision import (
    PartDecider,
    find_project_program,
    find_whole_rule,
    select_strictest,
)
from handaxe.shell.analysis.decision.rule_match import is_everything
from handaxe.shell.analysis.decision.suggestions import Proposal, propose
from handaxe.shell.analysis.decision.verdicts import (
    Mode,
    PartDecision,
    Repository,
    ShellRules,
    Verdict,
)
from handaxe.shell.analysis.effects.glob_overlap import RestrictedPath
from handaxe.shell.analysis.effects.path_rules import PathJudge, PathRuleChecker
from handaxe.shell.analysis.facts import CommandFacts, CommandPart, DestructiveForm, TreeCopy
from handaxe.shell.analysis.parser.cross_check import is_plain
from handaxe.shell.analysis.paths import PathUse

_CLEAN = Repository()

CrossCheck = Callable[[str], int | None]
"""Counts the commands of a text with another parser; None if that parser cannot read it."""


class ShellDecision(Struct, frozen=True):
    """The decision on a command, part by part, with suggested rules."""

    verdict: Verdict
    reason: str
    parts: list[PartDecision]
    rule: str | None = None
    source: str | None = None
    by: str = "builtin"
    losses: list[DestructiveForm] = []
    is_critical: bool = False
    """Whether a removal in it always needs approval."""
    proposals: list[Proposal] = []
    proposals_leave_questions: bool = False
    """Whether the command would still ask with every proposed rule."""
    uses: list[PathUse] = []
    """Paths the decision depends on; check them again with links resolved before running."""
    operands: list[PathUse] = []
    """Every file operand; a deny or ask rule also applies to its symlink target."""
    written: list[PathUse] = []
    """File operands that an allowed command writes; their symlink targets count too."""
    ruled: list[CommandPart] = []
    """Parts that a rule allows; undo must be able to restore what they destroy."""
    proved: list[CommandPart] = []
    """Parts that are allowed because they only read; the preflight check covers their sweeps."""
    trees: list[TreeCopy] = []
    """Trees whose names an allowed command writes; check them before running."""


def decide(  # noqa: PLR0913 - the verdict is a function of exactly these facts
    facts: CommandFacts,
    *,
    rules: ShellRules,
    path_verdict: PathJudge,
    mode: Mode = "default",
    working_dirs: tuple[str, ...] = (),
    repository: Repository = _CLEAN,
    project_programs: frozenset[str] = frozenset(),
    fences: tuple[RestrictedPath, ...] = (),
    cross_check: CrossCheck | None = None,
    written_verdict: PathJudge | None = None,
    ask_irreversible: bool = True,
) -> ShellDecision:
    """The decision on a command.

    `path_verdict` applies the session's path rules to one absolute path. `project_programs` are
    names under which PATH finds a program of the project. `fences` are the paths that Read and Edit
    rules restrict, for comparison with globs and whole trees. `cross_check` counts commands with
    another parser before anything compound is allowed. `written_verdict` is like `path_verdict`,
    for files that an allowed command writes by its operands.
    """
    judge = PartDecider(
        rules,
        mode,
        facts,
        working_dirs or (facts.cwd,),
        path_verdict,
        PathRuleChecker(path_verdict, fences),
        repository,
        project_programs,
        ask_irreversible,
        written_verdict=written_verdict,
    )
    decisions = [judge.part(part) for part in facts.parts]
    decisions.extend(_judge_later(facts, judge))
    if _is_allowed(decisions) and not facts.problems:
        decisions.extend(_find_unproven(decisions, facts, mode))
        decisions.extend(_find_disagreement(facts, judge, cross_check))
    return _join(decisions, facts, judge)


def is_read_only(
    facts: CommandFacts,
    repository: Repository = _CLEAN,
    project_programs: frozenset[str] = frozenset(),
    cross_check: CrossCheck | None = None,
) -> bool:
    """Whether a command provably changes nothing, wherever its paths are."""
    if not facts.only_reads or facts.hidden_character:
        return False
    for part in facts.parts:
        if part.runs_git and not repository.is_clean:
            return False
        if find_project_program(part, project_programs) is not None:
            return False
    return not _explain_disagreement(facts, cross_check)


def _judge_later(facts: CommandFacts, judge: PartDecider) -> list[PartDecision]:
    """Parts beyond the limit: only deny rules are checked; everything else asks."""
    if not facts.later_parts:
        return []
    reason = f"the command has more than {len(facts.parts)} parts"
    found = [PartDecision(facts.later_parts[0].text, "ask", reason)]
    denied = (judge.denied(part) for part in facts.later_parts)
    return found + [decision for decision in denied if decision is not None][:1]


def _is_allowed(decisions: list[PartDecision]) -> bool:
    return bool(decisions) and all(item.verdict == "allow" for item in decisions)


def _find_unproven(
    decisions: list[PartDecision], facts: CommandFacts, mode: Mode
) -> list[PartDecision]:
    """An ask if a rule allows one part to change the meaning of words in other parts."""
    proved = [item.text for item in decisions if item.by != "rule"]
    rebinds = next((part.rebinds for part in facts.parts if part.rebinds), "")
    if not rebinds or not proved or mode == "bypassPermissions":
        return []
    return [PartDecision(proved[0], "ask", rebinds, cause="unreadable")]


def _find_disagreement(
    facts: CommandFacts, judge: PartDecider, cross_check: CrossCheck | None
) -> list[PartDecision]:
    """An ask if another parser counts the commands differently."""
    allowing = judge.rules.allow
    is_named = find_whole_rule(allowing, facts) is not None
    everything = any(is_everything(rule.specifier) for rule in allowing)
    if judge.mode == "bypassPermissions" or everything or is_named:
        return []
    reason = facts.disagreement or _explain_disagreement(facts, cross_check)
    return [PartDecision(facts.text, "ask", reason)] if reason else []


def _explain_disagreement(facts: CommandFacts, cross_check: CrossCheck | None) -> str:
    if cross_check is None or facts.commands < 2 or is_plain(facts.text):
        return ""
    count = cross_check(facts.text)
    if count == facts.commands:
        return ""
    seen = "cannot read it" if count is None else f"sees {count} commands"
    return f"the second parser {seen}, but handaxe sees {facts.commands}"


def _join(decisions: list[PartDecision], facts: CommandFacts, judge: PartDecider) -> ShellDecision:
    if not decisions:
        decisions = [PartDecision("", "allow", "the command does nothing")]
    if judge.mode == "dontAsk":
        decisions = [_refuse(item) for item in decisions]
    worst = select_strictest(decisions)
    proposals, leaves = (
        propose(list(facts.parts), decisions) if worst.verdict == "ask" else ([], False)
    )
    return ShellDecision(
        verdict=worst.verdict,
        reason=worst.reason,
        parts=decisions,
        rule=worst.rule,
        source=worst.source,
        by=worst.by,
        losses=list(dict.fromkeys(loss for part in facts.parts for loss in part.losses)),
        is_critical=any(item.cause == "critical" for item in decisions),
        proposals=proposals,
        proposals_leave_questions=leaves,
        uses=list(dict.fromkeys(judge.uses)),
        operands=list(dict.fromkeys(judge.bounds.operands)),
        written=list(dict.fromkeys(judge.written)),
        trees=list(dict.fromkeys(judge.trees)),
        ruled=_list_allowed_by("rule", facts, decisions),
        proved=_list_allowed_by("builtin", facts, decisions),
    )


def _list_allowed_by(
    who: str, facts: CommandFacts, decisions: list[PartDecision]
) -> list[CommandPart]:
    pairs = zip(facts.parts, decisions, strict=False)
    return [part for part, item in pairs if item.verdict == "allow" and item.by == who]


def _refuse(decision: PartDecision) -> PartDecision:
    if decision.verdict != "ask":
        return decision
    reason = f"this mode does not ask: {decision.reason}"
    return msgspec.structs.replace(decision, verdict="deny", reason=reason, by="mode")
