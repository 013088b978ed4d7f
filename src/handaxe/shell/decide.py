"""The verdict on a bash command: allow, ask or deny, with the reason for every part.

Pure and total: it reads no file, runs nothing and never raises. What it does not understand is at
least ask.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec
from msgspec import Struct

from handaxe.shell.bounds import Bounds, PathJudge
from handaxe.shell.danger import Candidate, Danger, find_danger, look_inside
from handaxe.shell.destructive import Destruction, find_destruction
from handaxe.shell.fences import Fence
from handaxe.shell.flow import Part, State, walk
from handaxe.shell.judge import Judge, Mode, PartDecision, ShellRules, Verdict, strictest
from handaxe.shell.operands import Setting
from handaxe.shell.opinion import count_by_tree_sitter, is_plain
from handaxe.shell.parse import parse
from handaxe.shell.places import PathUse, resolve
from handaxe.shell.propose import Proposal, propose
from handaxe.shell.rules import rule_set
from handaxe.shell.scan import occurrences, scan
from handaxe.shell.syntax import Script, Simple

SecondOpinion = Callable[[str], int | None]
"""Counts the commands of a text with another reader; None when that reader cannot read it."""

_PART_LIMIT = 120
_SCAN_LIMIT = 3_000
_LOOK_LIMIT = 300


class ShellDecision(Struct, frozen=True):
    """The verdict on a command, part by part, with what would change it."""

    verdict: Verdict
    reason: str
    parts: list[PartDecision]
    rule: str | None = None
    source: str | None = None
    by: str = "builtin"
    destruction: list[Destruction] = []
    proposals: list[Proposal] = []
    proposals_leave_questions: bool = False
    """Whether the command would still ask if every proposed rule were there."""
    problems: list[str] = []
    uses: list[PathUse] = []
    """Paths the verdict rests on; check them again, links resolved, before running."""
    operands: list[PathUse] = []
    """Every file operand; a rule that forbids one holds for where its links lead, too."""
    written: list[PathUse] = []
    """File operands that an allowed command writes; where their links lead counts as well."""


def decide(  # noqa: PLR0913 - the verdict is a function of exactly these facts
    command: str,
    *,
    rules: ShellRules,
    path_verdict: PathJudge,
    mode: Mode = "default",
    cwd: str = "/repo",
    home: str = "/home/dev",
    working_dirs: tuple[str, ...] = (),
    git_clean: bool = True,
    git_doubt: str = "",
    project_programs: frozenset[str] = frozenset(),
    fences: tuple[Fence, ...] = (),
    second_opinion: SecondOpinion | None = None,
    written_verdict: PathJudge | None = None,
) -> ShellDecision:
    """The verdict on `command`.

    `path_verdict` says what the session's path rules say about one absolute path. `git_clean` is
    whether the repository's configuration was found to name no program, `git_doubt` which;
    `project_programs` are names under which PATH finds a program of the project. `fences` are the
    places that Read and Edit rules keep closed, so that globs and whole trees can be held against
    them. `second_opinion` counts commands with another reader and is asked before anything
    compound is allowed. `written_verdict` says the same as `path_verdict` of files that a command
    covered by an allow rule writes by its operands.
    """
    cwd = resolve(cwd, "/")
    bounds = Bounds(path_verdict, fences)
    dirs = working_dirs or (cwd,)
    setting = Setting(cwd, home, git_clean, git_doubt, project_programs, dirs)
    judge = Judge(rules, mode, setting, path_verdict, bounds)
    judge.written_verdict = written_verdict
    script = parse(command)
    for problem in script.problems:
        if problem.code == "characters":
            judge.hidden = problem.message
        else:
            judge.readable = f"the command cannot be read: {problem.message}"
    parts = walk(script, cwd, home)
    session = _Session(judge, cwd, home, working_dirs or (cwd,), _assigned(parts))
    decisions = [session.decide(part) for part in parts[:_PART_LIMIT]]
    decisions.extend(session.leftovers(parts[_PART_LIMIT:]))
    if script.problems:
        decisions.append(session.unreadable(script))
    elif _is_allowed(decisions):
        decisions.extend(_unproven(decisions, session.rebinds, mode))
        decisions.extend(_doubts(command, script, judge, second_opinion))
    return session.result(decisions, parts, script)


class _Session:
    """One decision under way."""

    def __init__(
        self,
        judge: Judge,
        cwd: str,
        home: str,
        working_dirs: tuple[str, ...],
        assigned: dict[str, set[str]],
    ) -> None:
        self._judge = judge
        self._cwd = cwd
        self._home = home
        self._dirs = working_dirs
        self._assigned = assigned
        self._losses: list[Destruction] = []
        self.rebinds = ""
        """What changes the meaning of other parts' words; empty when nothing does."""
        self._dangers: dict[tuple[object, ...], Danger] = {}

    def _danger(self, part: Part) -> Danger:
        """What `part` could run; equal texts in equal states are looked at once."""
        if part.redirects:
            return self._fresh_danger(part)
        states = tuple(id(state) for state in part.states)
        key = (part.kind, part.text, part.reads_pipe, states)
        if key not in self._dangers:
            self._dangers[key] = self._fresh_danger(part)
        return self._dangers[key]

    def _fresh_danger(self, part: Part) -> Danger:
        try:
            danger = find_danger(part, self._assigned, self._cwd, self._home)
        except RecursionError:
            danger = Danger(unknown="commands are nested too deeply", unread=[part.text])
        for text in danger.unread:
            danger.candidates.extend(self._scanned(text))
        return danger

    def _scanned(self, text: str) -> list[Candidate]:
        """Places where a program may stand; every place of a ruled program, however long."""
        rules = (*self._judge.rules.deny, *self._judge.rules.ask)
        ruled = rule_set(tuple(rule.specifier for rule in rules)).programs
        places = itertools.chain(
            itertools.islice(scan(text), _SCAN_LIMIT), occurrences(text, ruled)
        )
        here = frozenset({self._cwd})
        return [Candidate(tuple(fields), certain=True, cwds=here) for fields in places]

    def decide(self, part: Part) -> PartDecision:
        danger = self._danger(part)
        self.rebinds = self.rebinds or danger.rebinds
        losses = find_destruction(part, danger, self._cwd, self._home, self._dirs)
        self._losses.extend(losses)
        return self._judge.part(part, danger, losses)

    def leftovers(self, parts: list[Part]) -> list[PartDecision]:
        """Parts beyond the limit: only deny can still be found, everything else asks."""
        if not parts:
            return []
        reason = f"the command has more than {_PART_LIMIT} parts"
        found = [PartDecision(parts[0].text, "ask", reason)]
        seen: set[tuple[str, bool]] = set()
        for part in parts:
            key = (part.text, part.reads_pipe)
            if key in seen and not part.redirects:
                continue
            seen.add(key)
            decision = self._judge.denied(part, self._danger(part))
            if decision is not None:
                found.append(decision)
                break
        return found

    def unreadable(self, script: Script) -> PartDecision:
        """The verdict on a text that did not parse, from a generous scan of all of it."""
        state = State(frozenset({self._cwd}), {})
        node = Simple(script.text, 0, len(script.text))
        part = Part(node, "simple", [state])
        danger = Danger(self._scanned(script.text), unknown=script.problems[0].message)
        for candidate in danger.candidates[:_LOOK_LIMIT]:
            danger.candidates.extend(look_inside(candidate, self._cwd, self._home))
        losses = find_destruction(part, danger, self._cwd, self._home, self._dirs)
        self._losses.extend(losses)
        return self._judge.part(part, danger, losses)

    def result(
        self, decisions: list[PartDecision], parts: list[Part], script: Script
    ) -> ShellDecision:
        if not decisions:
            decisions = [PartDecision("", "allow", "the command does nothing")]
        if self._judge.mode == "dontAsk":
            decisions = [_refused(item) for item in decisions]
        worst = strictest(decisions)
        asks = worst.verdict == "ask"
        proposals, leaves = propose(parts, decisions) if asks else ([], False)
        return ShellDecision(
            verdict=worst.verdict,
            reason=worst.reason,
            parts=decisions,
            rule=worst.rule,
            source=worst.source,
            by=worst.by,
            destruction=list(dict.fromkeys(self._losses)),
            proposals=proposals,
            proposals_leave_questions=leaves,
            problems=[problem.message for problem in script.problems],
            uses=list(dict.fromkeys(self._judge.uses)),
            operands=list(dict.fromkeys(self._judge.bounds.operands)),
            written=list(dict.fromkeys(self._judge.written)),
        )


def _refused(decision: PartDecision) -> PartDecision:
    if decision.verdict != "ask":
        return decision
    reason = f"nobody may be asked in this mode: {decision.reason}"
    return msgspec.structs.replace(decision, verdict="deny", reason=reason, by="mode")


def _assigned(parts: list[Part]) -> dict[str, set[str]]:
    """Literal values that any part gives a variable, for programs named by one."""
    values: dict[str, set[str]] = {}
    for part in parts:
        if isinstance(part.node, Simple):
            for item in part.node.assignments:
                literal = item.value.literal if item.value is not None else None
                if literal is not None:
                    values.setdefault(item.name, set()).add(literal)
        elif part.kind == "header":
            for word in part.words:
                if word.literal is not None:
                    values.setdefault(part.node.name, set()).add(word.literal)
    return values


def _is_allowed(decisions: list[PartDecision]) -> bool:
    return bool(decisions) and all(item.verdict == "allow" for item in decisions)


def _unproven(decisions: list[PartDecision], rebinds: str, mode: Mode) -> list[PartDecision]:
    """An ask where a rule lets one part change what the words mean that others were proved by."""
    proved = [item.text for item in decisions if item.by != "rule"]
    if not rebinds or not proved or mode == "bypassPermissions":
        return []
    return [PartDecision(proved[0], "ask", rebinds, cause="unreadable")]


def _doubts(
    command: str, script: Script, judge: Judge, second_opinion: SecondOpinion | None
) -> list[PartDecision]:
    """An ask for every other reader that counts the commands differently."""
    everything = any(rule.specifier.strip() in ("", "*") for rule in judge.rules.allow)
    if judge.mode == "bypassPermissions" or everything or is_plain(command):
        return []
    readers: list[tuple[str, SecondOpinion]] = [("tree-sitter", count_by_tree_sitter)]
    if second_opinion is not None and script.commands > 1:
        readers.append(("the second reader", second_opinion))
    for name, reader in readers:
        count = reader(command)
        if count != script.commands:
            seen = "cannot read it" if count is None else f"sees {count} commands"
            reason = f"{name} {seen}, we see {script.commands}"
            return [PartDecision(command, "ask", reason)]
    return []
