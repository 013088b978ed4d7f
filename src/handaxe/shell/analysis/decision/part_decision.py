"""Decide about one part: rules first, then the mode, then the proof.

Only the order is here; what a part is and what it could run is determined elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from handaxe.shell.analysis.decision.rule_match import (
    build_rule_set,
    can_any_allow,
    collapse_blanks,
    compile_specifier,
    is_allowed_by,
    is_everything,
    is_exact,
    match_rule,
)
from handaxe.shell.analysis.decision.verdicts import (
    BashRule,
    By,
    Mode,
    PartDecision,
    PathVerdict,
    Repository,
    ShellRules,
    Verdict,
)
from handaxe.shell.analysis.effects.destructive_commands import is_irreversible_form
from handaxe.shell.analysis.effects.path_rules import PathJudge, PathRuleChecker
from handaxe.shell.analysis.facts import (
    CommandFacts,
    CommandPart,
    DestructiveForm,
    RedirectUse,
    TreeCopy,
)
from handaxe.shell.analysis.paths import PathUse, is_critical, is_inside, resolve
from handaxe.text.secrets import sample_env_files

_ORDER = {"allow": 0, "ask": 1, "deny": 2}
_NOWHERE = PathVerdict("ask", "the text does not say where")


class PartDecider(Struct):
    """Everything a decision depends on besides the facts."""

    rules: ShellRules
    mode: Mode
    facts: CommandFacts
    working_dirs: tuple[str, ...]
    path_verdict: PathJudge
    bounds: PathRuleChecker
    repository: Repository = Repository()
    project_programs: frozenset[str] = frozenset()
    ask_irreversible: bool = True
    uses: list[PathUse] = []
    """All judged paths, for a caller that follows links."""
    written_verdict: PathJudge | None = None
    """The path rules for written operands of a command that a rule allows; None: not checked."""
    written: list[PathUse] = []
    trees: list[TreeCopy] = []
    """Trees whose names an allowed command writes, for a caller that checks them."""

    def part(self, part: CommandPart) -> PartDecision:
        """The decision on one part."""
        text = part.text
        bound = (self._find_deny_rule(part), self._check_path_rules(part))
        for decision in bound:
            if decision is not None and decision.verdict == "deny":
                return decision
        asked = self._asked(part)
        redirected = self._check_redirects(part)
        if redirected is not None and redirected.verdict == "deny":
            return redirected
        for decision in (asked, *bound, self._find_critical_removal(part, text)):
            if decision is not None:
                return decision
        granted = self._free(part, redirected)
        return self._check_written_files(self._check_irreversible(granted, part), part)

    def _check_written_files(self, granted: PartDecision, part: CommandPart) -> PartDecision:
        """A rule for a command does not cover protected files, or files it writes outside."""
        if self.written_verdict is None or granted.verdict != "allow" or granted.by != "rule":
            return granted
        if self._is_exact(part):
            return granted
        for command in part.commands:
            self.trees.extend(command.writes.trees)
            for use in command.writes.uses:
                self.written.append(use)
                path = self._resolve_from_start(use, part)
                answer = self.written_verdict(path, "write") if path is not None else _NOWHERE
                if answer.verdict != "allow":
                    why = f"write of {path or use.text}: {answer.reason}"
                    source = answer.source
                    return PartDecision(part.text, "ask", why, None, source, cause="redirection")
        return granted

    def _resolve_from_start(self, use: PathUse, part: CommandPart) -> str | None:
        """A literal word whose directory is unknown: the rule allows it there too."""
        if use.path is not None or part.cwds or use.word is None:
            return use.path
        return resolve(use.word, self.facts.cwd)

    def _is_exact(self, part: CommandPart) -> bool:
        """Whether a rule has the exact text of the part, or of the whole command."""
        if find_whole_rule(self.rules.allow, self.facts) is not None:
            return True
        exact = (rule for rule in self.rules.allow if is_exact(rule.specifier))
        return any(is_allowed_by(rule.specifier, part) for rule in exact)

    def _check_irreversible(self, granted: PartDecision, part: CommandPart) -> PartDecision:
        """A rule covers destructive forms inside; it must name irreversible ones."""
        if granted.verdict != "allow" or granted.by != "rule" or self._is_exact(part):
            return granted
        for loss in part.losses:
            if loss.form == "redirection":
                continue
            if loss.irreversible:
                if self.ask_irreversible and not self._is_named(loss, part):
                    reason = (
                        f"it {loss.reason}, which cannot be undone; no allow rule names that form"
                    )
                    return replace(granted, verdict="ask", reason=reason, cause="program")
                continue
            outside = self._outside(loss, part)
            if outside is not None:
                reason = f"it {loss.reason}, outside the working directories: {outside}"
                return replace(granted, verdict="ask", reason=reason, cause="redirection")
        return granted

    def _is_named(self, loss: DestructiveForm, part: CommandPart) -> bool:
        return any(
            is_irreversible_form(compile_specifier(rule.specifier).head, loss.form)
            and is_allowed_by(rule.specifier, part, self.working_dirs)
            for rule in self.rules.allow
        )

    def _outside(self, loss: DestructiveForm, part: CommandPart) -> str | None:
        places = (*loss.paths, *(part.cwds if loss.in_checkout else ()))
        for path in sorted(places):
            if not any(is_inside(path, root) for root in self.working_dirs):
                return path
        return None

    def _find_critical_removal(self, part: CommandPart, text: str) -> PartDecision | None:
        """A removal whose target is, or may be, the system, the home or the project."""
        for removal in part.removals:
            target = f"the unknown path {removal.target}" if removal.is_open else None
            if removal.path is not None and is_critical(
                removal.path, self.facts.cwd, self.facts.home, self.working_dirs
            ):
                target = removal.path
            if target is not None:
                reason = f"{removal.program} would remove {target}; that always needs approval"
                return PartDecision(text, "ask", reason, cause="critical")
        return None

    def _find_deny_rule(self, part: CommandPart) -> PartDecision | None:
        maybe: PartDecision | None = None
        if not self._can_match_rules(self.rules.deny, part):
            return None
        for rule in self.rules.deny:
            hit = match_rule(rule.specifier, part)
            if hit == "yes":
                reason = f"the deny rule {rule.text} covers it"
                return PartDecision(part.text, "deny", reason, rule.text, rule.source, "rule")
            if hit == "maybe":
                reason = f"it may run what the deny rule {rule.text} covers"
                maybe = PartDecision(part.text, "ask", reason, rule.text, rule.source, "rule")
        return maybe

    def _can_match_rules(self, rules: tuple[BashRule, ...], part: CommandPart) -> bool:
        return build_rule_set(tuple(rule.specifier for rule in rules)).can_match_part(part)

    def denied(self, part: CommandPart) -> PartDecision | None:
        """Only a denial of `part`: the quick check for parts beyond the limits."""
        for look in (self._find_deny_rule, self._check_path_rules, self._check_redirects):
            found = look(part)
            if found is not None and found.verdict == "deny":
                return found
        return None

    def _asked(self, part: CommandPart) -> PartDecision | None:
        asking = self.rules.ask if self._can_match_rules(self.rules.ask, part) else ()
        for rule in asking:
            if match_rule(rule.specifier, part) != "no":
                reason = f"the ask rule {rule.text} covers it"
                return PartDecision(part.text, "ask", reason, rule.text, rule.source, "rule")
        doubt = part.unknown or part.evaluates or part.rebinds
        if (self.rules.deny or self.rules.ask) and doubt:
            reason = f"{doubt}, and deny or ask rules exist"
            return PartDecision(part.text, "ask", reason)
        return None

    def _check_path_rules(self, part: CommandPart) -> PartDecision | None:
        """The user's Read and Edit rules apply to file operands, whatever Bash rules say."""
        bound = self.bounds.of(part)
        if bound is None or (bound.rule is None and bound.is_guess and self._is_exact(part)):
            return None
        by: By = "rule" if bound.rule else "builtin"
        return PartDecision(part.text, bound.verdict, bound.reason, bound.rule, bound.source, by)

    def _check_redirects(self, part: CommandPart) -> PartDecision | None:
        """The decision for redirections alone; None if all are free."""
        worst: PartDecision | None = None
        for use in part.redirects:
            decision = self._redirect(use, part)
            if decision is not None and (
                worst is None or _ORDER[decision.verdict] > _ORDER[worst.verdict]
            ):
                worst = decision
        return worst

    def _redirect(self, use: RedirectUse, part: CommandPart) -> PartDecision | None:
        worst: PartDecision | None = None
        text, doubt = part.text, self._explain_redirect_doubt(use, part)
        if doubt:
            worst = PartDecision(text, "ask", doubt, cause="redirection")
        for item in use.uses:
            if item.path is None:
                continue
            self.uses.append(item)
            answer = self.path_verdict(item.path, item.access)
            if answer.verdict == "allow":
                continue
            verdict: Verdict = "deny" if answer.verdict == "deny" else "ask"
            reason = f"{use.text} is a {item.access} of {item.path}: {answer.reason}"
            by: By = "rule" if answer.rule else "builtin"
            if worst is None or verdict == "deny":
                worst = PartDecision(
                    text, verdict, reason, answer.rule, answer.source, by, "redirection"
                )
        return worst

    def _explain_redirect_doubt(self, use: RedirectUse, part: CommandPart) -> str:
        if use.problem:
            return use.problem
        if use.writes and part.cwds != frozenset({self.facts.cwd}):
            return f"{use.text} writes after cd to another directory"
        if use.writes and self.mode == "plan":
            return f"{use.text} writes, and plan mode is read-only"
        return ""

    def _free(self, part: CommandPart, redirected: PartDecision | None) -> PartDecision:
        """The decision if no deny, ask or critical reason applies to the part."""
        if self.mode == "bypassPermissions":
            if redirected is not None and redirected.rule is not None:
                return redirected
            reason = "the mode bypassPermissions allows it"
            return PartDecision(part.text, "allow", reason, by="mode")
        if self.facts.hidden_character:
            return PartDecision(part.text, "ask", self.facts.hidden_character, cause="unreadable")
        granted = self._decide_grant(part)
        if granted.verdict == "allow" and redirected is not None:
            return redirected
        if redirected is not None:
            return replace(granted, beside=redirected.reason)
        return granted

    def _decide_grant(self, part: CommandPart) -> PartDecision:
        text = part.text
        if self.facts.problems:
            reason = f"the command cannot be read: {self.facts.problems[0]}"
            return PartDecision(text, "ask", reason, cause="unreadable")
        if self.mode != "plan":
            everything = next((r for r in self.rules.allow if is_everything(r.specifier)), None)
            if everything is not None:
                reason = f"the allow rule {everything.text} covers every command"
                rule, source = everything.text, everything.source
                return PartDecision(text, "allow", reason, rule, source, "rule")
            if (whole := find_whole_rule(self.rules.allow, self.facts)) is not None:
                return _make_rule_decision(text, whole)
            if part.evaluates:
                return PartDecision(text, "ask", part.evaluates, cause="unreadable")
            if (ruled := self._find_allow_rule(part)) is not None:
                return ruled
        return self._decide_by_proof(part)

    def _find_allow_rule(self, part: CommandPart) -> PartDecision | None:
        if not can_any_allow(tuple(rule.specifier for rule in self.rules.allow), part):
            return None
        dirs = self.working_dirs
        rule = next(
            (rule for rule in self.rules.allow if is_allowed_by(rule.specifier, part, dirs)), None
        )
        return _make_rule_decision(part.text, rule) if rule is not None else None

    def _decide_by_proof(self, part: CommandPart) -> PartDecision:
        text = part.text
        if (program := find_project_program(part, self.project_programs)) is not None:
            reason = f"PATH finds {program} in the project, so its effects are unknown"
            return PartDecision(text, "ask", reason, cause="program")
        refusal = part.refusal or self._refuse_git(part) or self._refuse_reads(part.reads)
        refusal = refusal or self._refuse_sweeps(part)
        if not refusal:
            return PartDecision(text, "allow", "it only reads inside the working directories")
        return self._edited(part) or PartDecision(text, "ask", refusal, cause="program")

    def _refuse_git(self, part: CommandPart) -> str:
        if not part.runs_git or self.repository.is_clean:
            return ""
        told = "the repository's configuration names a program that git would run"
        return self.repository.doubt or told

    def _refuse_reads(self, uses: Iterable[PathUse]) -> str:
        """Why one of these paths must not be read; empty if all may."""
        for use in dict.fromkeys(uses):
            self.uses.append(use)
            if use.path is None:
                return f"the path {use.text} is unknown before the command runs"
            for path in _list_checked_paths(use):
                answer = self.path_verdict(path, use.access)
                if answer.verdict != "allow":
                    return f"{use.access} of {path}: {answer.reason}"
        return ""

    def _refuse_sweeps(self, part: CommandPart) -> str:
        """A sweep whose options name a file that needs approval."""
        for sweep in (sweep for command in part.commands for sweep in command.files.sweeps):
            for pattern in sweep.only_files:
                named = sample_env_files(pattern.rpartition("/")[2])
                path = f"{sweep.use.path or self.facts.cwd}/{named[0]}" if named else ""
                if named and self.path_verdict(path, "read").verdict != "allow":
                    return f"{pattern} matches files that may hold secrets"
        return ""

    def _edited(self, part: CommandPart) -> PartDecision | None:
        if self.mode != "acceptEdits" or part.edit_refusal:
            return None
        uses = [use for c in part.commands for use in (*c.writes.uses, *c.writes.reads)]
        if not uses:
            return None
        if refusal := self._refuse_reads(uses):
            return PartDecision(part.text, "ask", refusal, cause="program")
        for command in part.commands:
            self.trees.extend(command.writes.trees)
        reason = "the mode acceptEdits allows edits inside the working directories"
        return PartDecision(part.text, "allow", reason, by="mode")


def find_whole_rule(rules: tuple[BashRule, ...], facts: CommandFacts) -> BashRule | None:
    """A rule with the exact text of the whole command."""
    whole = collapse_blanks(facts.text)
    return next(
        (r for r in rules if is_exact(r.specifier) and collapse_blanks(r.specifier) == whole), None
    )


def find_project_program(part: CommandPart, programs: frozenset[str]) -> str | None:
    """The project's program that a part could run instead of the well-known one."""
    if not programs:
        return None
    run = (name for item in part.commands for name in (item.program or "", *item.consists_of))
    return next((name for name in run if name in programs), None)


def _make_rule_decision(text: str, rule: BashRule) -> PartDecision:
    reason = f"the allow rule {rule.text} covers it"
    return PartDecision(text, "allow", reason, rule.text, rule.source, "rule")


def _list_checked_paths(use: PathUse) -> list[str]:
    """The path, and for a glob also the secret names it would match."""
    path = use.path or ""
    if not use.glob:
        return [path]
    directory, _, pattern = path.rpartition("/")
    names = sample_env_files(pattern) if pattern[:1] == "." else []
    return [directory or "/", *(f"{directory}/{name}" for name in names)]


def select_strictest(decisions: list[PartDecision]) -> PartDecision:
    """The first of the strictest decisions."""
    return max(decisions, key=lambda item: _ORDER[item.verdict])
