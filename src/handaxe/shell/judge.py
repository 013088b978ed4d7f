"""Judging one part: rules first, then the mode, then the proof.

Holds the order of the contracts; what a part is and what it could run is decided elsewhere.
"""

from __future__ import annotations

import fnmatch
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from handaxe.shell.bounds import Bounds, PathJudge
from handaxe.shell.danger import Danger
from handaxe.shell.destructive import Destruction, names_destruction
from handaxe.shell.edits import edit_uses
from handaxe.shell.effects import RedirectUse, part_redirects
from handaxe.shell.flow import Part
from handaxe.shell.operands import Setting
from handaxe.shell.options import Refused
from handaxe.shell.places import PathUse
from handaxe.shell.prove import prove
from handaxe.shell.rules import allows, compile_specifier, hits, is_exact, may_allow, rule_set
from handaxe.shell.written import written_uses

Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", "auto"]
By = Literal["rule", "mode", "builtin"]
Cause = Literal["", "program", "redirection", "critical", "unreadable"]
_ORDER = {"allow": 0, "ask": 1, "deny": 2}
_SECRET_NAMES = (
    ".env",
    ".env.local",
    ".env.production",
    ".env.development",
    ".env.test",
    ".netrc",
    ".npmrc",
)


class PathVerdict(Struct, frozen=True):
    """What the path rules say about one path; `rule` is set when a rule of the user decided."""

    verdict: Verdict
    reason: str = ""
    rule: str | None = None
    source: str | None = None
    is_binding: bool = False
    """Whether an ask holds whatever Bash rules allow: what is written there may run code."""


_NOWHERE = PathVerdict("ask", "the text does not say where")


class Rule(Struct, frozen=True):
    """A Bash rule: the text between the parentheses (empty for all of Bash) and its source."""

    specifier: str
    source: str | None = None
    tool: str = "Bash"

    @property
    def text(self) -> str:
        """The rule as it is written in settings."""
        return f"{self.tool}({self.specifier})" if self.specifier else self.tool


class ShellRules(Struct, frozen=True):
    """The Bash rules of a session."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


class PartDecision(Struct, frozen=True):
    """The verdict on one part and why."""

    text: str
    verdict: Verdict
    reason: str
    rule: str | None = None
    source: str | None = None
    by: By = "builtin"
    cause: Cause = ""
    """What an ask is about; only "program" could be settled by an allow rule."""
    beside: str = ""
    """What would still ask if a rule allowed the program."""


class Judge(Struct):
    """Everything a verdict depends on besides the part itself."""

    rules: ShellRules
    mode: Mode
    setting: Setting
    path_verdict: PathJudge
    bounds: Bounds
    readable: str = ""
    """Why the text as a whole must not be allowed by its content; empty when it may."""
    hidden: str = ""
    """Which hidden character blocks every automatic approval; empty when there is none."""
    uses: list[PathUse] = []
    """Every path that was judged on the way, for a caller that follows links."""
    written_verdict: PathJudge | None = None
    """What the path rules say of a written operand that a rule's command names; None: nothing."""
    written: list[PathUse] = []

    def part(self, part: Part, danger: Danger, losses: list[Destruction]) -> PartDecision:
        """The verdict on one part."""
        text = part.text
        bound = (self._denied(part, danger, text), self._path_bound(part, danger, text))
        for decision in bound:
            if decision is not None and decision.verdict == "deny":
                return decision
        asked = self._asked(part, danger, text)
        redirected = self._redirected(part, text)
        if redirected is not None and redirected.verdict == "deny":
            return redirected
        for decision in (asked, *bound, _critical(losses, text)):
            if decision is not None:
                return decision
        granted = self._free(part, danger, redirected, text)
        granted = self._unless_destructive(granted, losses, part, text)
        return self._unless_written(granted, part, danger)

    def _unless_written(self, granted: PartDecision, part: Part, danger: Danger) -> PartDecision:
        """A rule for a command is none for protected files and for those outside it writes."""
        if self.written_verdict is None or granted.verdict != "allow" or granted.by != "rule":
            return granted
        exact = (rule for rule in self.rules.allow if is_exact(rule.specifier))
        if any(allows(rule.specifier, part) for rule in exact):
            return granted
        for use in written_uses(part, danger, self.setting.cwd):
            self.written.append(use)
            answer = self.written_verdict(use.path, "write") if use.path is not None else _NOWHERE
            if answer.verdict != "allow":
                why = f"write of {use.path or use.text}: {answer.reason}"
                return PartDecision(part.text, "ask", why, None, answer.source, cause="redirection")
        return granted

    def _unless_destructive(
        self, granted: PartDecision, losses: list[Destruction], part: Part, text: str
    ) -> PartDecision:
        """A rule allows a destructive form only if it spells it out."""
        if granted.verdict != "allow" or granted.by != "rule" or granted.rule is None:
            return granted
        loss = next((found for found in losses if found.form != "redirection"), None)
        if loss is None:
            return granted
        for rule in self.rules.allow:
            if _spells_out(rule.specifier) and allows(
                rule.specifier, part, self.setting.working_dirs
            ):
                return self._by_rule(text, rule)
        reason = f"it {loss.reason}, and the allow rule {granted.rule} does not name that form"
        return PartDecision(text, "ask", reason, granted.rule, granted.source, "builtin", "program")

    def _denied(self, part: Part, danger: Danger, text: str) -> PartDecision | None:
        maybe: PartDecision | None = None
        if not self._may_hit(self.rules.deny, part, danger):
            return None
        for rule in self.rules.deny:
            hit = hits(rule.specifier, part, danger)
            if hit == "yes":
                reason = f"the deny rule {rule.text} covers it"
                return PartDecision(text, "deny", reason, rule.text, rule.source, "rule")
            if hit == "maybe":
                reason = f"it may run what the deny rule {rule.text} covers"
                maybe = PartDecision(text, "ask", reason, rule.text, rule.source, "rule")
        return maybe

    def _may_hit(self, rules: tuple[Rule, ...], part: Part, danger: Danger) -> bool:
        return rule_set(tuple(rule.specifier for rule in rules)).may_hit(part, danger)

    def denied(self, part: Part, danger: Danger) -> PartDecision | None:
        """Only what denies `part`: the cheap look for parts beyond the limits."""
        for look in (self._denied, self._path_bound):
            found = look(part, danger, part.text)
            if found is not None and found.verdict == "deny":
                return found
        redirected = self._redirected(part, part.text)
        return redirected if redirected is not None and redirected.verdict == "deny" else None

    def _asked(self, part: Part, danger: Danger, text: str) -> PartDecision | None:
        asking = self.rules.ask if self._may_hit(self.rules.ask, part, danger) else ()
        for rule in asking:
            if hits(rule.specifier, part, danger) != "no":
                reason = f"the ask rule {rule.text} covers it"
                return PartDecision(text, "ask", reason, rule.text, rule.source, "rule")
        doubt = danger.unknown or danger.evaluates or danger.rebinds
        if (self.rules.deny or self.rules.ask) and doubt:
            reason = f"{doubt}, and deny or ask rules exist"
            return PartDecision(text, "ask", reason)
        return None

    def _path_bound(self, part: Part, danger: Danger, text: str) -> PartDecision | None:
        """Read and Edit rules of the user bind file operands, whatever Bash rules say."""
        bound = self.bounds.of(part, danger)
        if bound is None:
            return None
        by: By = "rule" if bound.rule else "builtin"
        return PartDecision(text, bound.verdict, bound.reason, bound.rule, bound.source, by)

    def _redirected(self, part: Part, text: str) -> PartDecision | None:
        """What redirections alone demand; None when all are free."""
        worst: PartDecision | None = None
        for use in part_redirects(part):
            decision = self._redirect(use, part, text)
            if decision is not None and (
                worst is None or _ORDER[decision.verdict] > _ORDER[worst.verdict]
            ):
                worst = decision
        return worst

    def _redirect(self, use: RedirectUse, part: Part, text: str) -> PartDecision | None:
        worst: PartDecision | None = None
        doubt = self._redirect_doubt(use, part)
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

    def _redirect_doubt(self, use: RedirectUse, part: Part) -> str:
        if use.problem:
            return use.problem
        if use.writes and any(s.cwds != frozenset({self.setting.cwd}) for s in part.states):
            return f"{use.text} writes after cd to another directory"
        if use.writes and self.mode == "plan":
            return f"{use.text} writes, and plan mode only looks"
        return ""

    def _free(
        self, part: Part, danger: Danger, redirected: PartDecision | None, text: str
    ) -> PartDecision:
        """The verdict when no deny, ask or critical reason stands against the part."""
        if self.mode == "bypassPermissions":
            if redirected is not None and redirected.rule is not None:
                return redirected
            return PartDecision(text, "allow", "the mode bypassPermissions allows it", by="mode")
        if self.hidden:
            return PartDecision(text, "ask", self.hidden, cause="unreadable")
        granted = self._granted(part, danger, text)
        if granted.verdict == "allow" and redirected is not None:
            return redirected
        if redirected is not None:
            return replace(granted, beside=redirected.reason)
        return granted

    def _granted(self, part: Part, danger: Danger, text: str) -> PartDecision:
        if self.readable:
            return PartDecision(text, "ask", self.readable, cause="unreadable")
        everything = next((r for r in self.rules.allow if r.specifier.strip() in ("", "*")), None)
        if everything is not None and self.mode != "plan":
            reason = f"the allow rule {everything.text} covers every command"
            return PartDecision(text, "allow", reason, everything.text, everything.source, "rule")
        ruled = self._allowed_by_rule(part, text) if self.mode != "plan" else None
        if ruled is not None:
            return ruled
        return self._proven(part, danger, text)

    def _allowed_by_rule(self, part: Part, text: str) -> PartDecision | None:
        dirs = self.setting.working_dirs
        if not may_allow(tuple(rule.specifier for rule in self.rules.allow), part, dirs):
            return None
        rule = next((rule for rule in self.rules.allow if allows(rule.specifier, part, dirs)), None)
        return self._by_rule(text, rule) if rule is not None else None

    def _by_rule(self, text: str, rule: Rule) -> PartDecision:
        reason = f"the allow rule {rule.text} covers it"
        return PartDecision(text, "allow", reason, rule.text, rule.source, "rule")

    def _proven(self, part: Part, danger: Danger, text: str) -> PartDecision:
        own = self.setting.project_programs
        for candidate in danger.candidates if own else ():
            if candidate.program in own:
                reason = f"PATH finds {candidate.program} in the project, so it may do anything"
                return PartDecision(text, "ask", reason, cause="program")
        try:
            proof = prove(part, self.setting)
            self._check_reads(proof.reads, danger.evaluates or danger.unknown)
        except Refused as refused:
            edited = self._edited(part, text)
            return edited or PartDecision(text, "ask", str(refused), cause="program")
        return PartDecision(text, "allow", "it only reads inside the working directories")

    def _check_reads(self, uses: list[PathUse], doubt: str = "") -> None:
        if doubt:
            raise Refused(doubt)
        for use in dict.fromkeys(uses):
            self.uses.append(use)
            for path in self._looked_at(use):
                answer = self.path_verdict(path, use.access)
                if answer.verdict != "allow":
                    raise Refused(f"{use.access} of {path}: {answer.reason}")

    def _looked_at(self, use: PathUse) -> list[str]:
        """The path, and for a glob also the secret names it would match."""
        if use.path is None:
            raise Refused(f"the path {use.text} is not known before the command runs")
        if not use.glob:
            return [use.path]
        directory, _, pattern = use.path.rpartition("/")
        names = [n for n in _SECRET_NAMES if pattern[:1] == "." and fnmatch.fnmatchcase(n, pattern)]
        return [directory or "/", *(f"{directory}/{name}" for name in names)]

    def _edited(self, part: Part, text: str) -> PartDecision | None:
        if self.mode != "acceptEdits":
            return None
        try:
            uses = edit_uses(part)
        except Refused:
            return None
        try:
            self._check_reads(uses)
        except Refused as refused:
            return PartDecision(text, "ask", str(refused), cause="program")
        reason = "the mode acceptEdits allows edits inside the working directories"
        return PartDecision(text, "allow", reason, by="mode")


def _spells_out(specifier: str) -> bool:
    """Whether a rule names the destructive form it allows, word by word."""
    pattern = compile_specifier(specifier)
    return is_exact(specifier) or (not pattern.everything and names_destruction(pattern.head))


def _critical(losses: list[Destruction], text: str) -> PartDecision | None:
    for loss in losses:
        if loss.critical:
            reason = f"{loss.form} {loss.reason}; that always needs a decision"
            return PartDecision(text, "ask", reason, cause="critical")
    return None


def strictest(decisions: list[PartDecision]) -> PartDecision:
    """The first of the strictest decisions."""
    return max(decisions, key=lambda item: _ORDER[item.verdict])
