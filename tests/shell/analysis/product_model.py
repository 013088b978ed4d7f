"""What the clauses demand of a command, as a model of its own.

The product table takes its expected verdicts from here. Nothing in this module, nor in the modules
that describe commands for it, reads the analysis of handaxe: it is the second opinion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

MODES = ("default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions")
ALLOW, ASK, DENY = frozenset({"allow"}), frozenset({"ask"}), frozenset({"deny"})
AT_LEAST_ASK = ASK | DENY
OPEN = ALLOW | ASK
HITS = {"deny": DENY, "reach": AT_LEAST_ASK, "ask": ASK, "maybe": OPEN | DENY}
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}

Permission = bool | None
"""True: the clause permits it. False: the clause forbids it. None: the clauses leave it open."""


@dataclass(frozen=True, slots=True)
class Case:
    """A command, and what the clauses say about it; written down by hand, never computed."""

    name: str
    text: str
    clause: str
    program: str = "zz"
    """The program that a content rule for this command names."""
    reads: Permission = False
    """It is provably read-only."""
    edits: Permission = False
    """acceptEdits covers it: it changes files, all of them plain and inside."""
    prefix: Permission = True
    """A content rule for its program covers it."""
    exact: Permission = True
    """A rule with the exact text of the whole command covers it."""
    whole: Permission = True
    """The rule `Bash` covers it."""
    bypass: Permission = True
    """bypassPermissions covers it."""
    unknown: Permission = False
    """What runs cannot be known, so any deny or ask rule for Bash makes it ask."""
    also: tuple[str, ...] = ()
    """Rules that the other parts of the command need beside the content rule."""
    note: str = ""
    """How an open clause was read."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules, and which kind of permission they give."""

    name: str
    kind: str = "none"
    """`none`, `prefix`, `exact` or `whole`: the permission of the case that counts."""
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    strangers: bool = False
    """A deny or ask rule for a program that the command does not name is among them."""
    hit: str = ""
    """`deny`: a deny rule covers the command. `reach`: one might. `ask`: an ask rule covers it.
    `maybe`: only the look at run time knows."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    id: str
    group: str
    clause: str
    command: str
    mode: str
    rules: RuleSet
    expected: frozenset[str]
    note: str = ""

    @property
    def is_open(self) -> bool:
        """The clauses leave open whether it is allowed: reported, never wrong."""
        return "allow" in self.expected and "ask" in self.expected

    def to_request(self) -> dict:
        """The request line of `handaxe explain --jsonl`."""
        rules = self.rules
        return {
            "tool": "Bash",
            "input": {"command": self.command},
            "mode": self.mode,
            "rules": {"allow": [*rules.allow], "ask": [*rules.ask], "deny": [*rules.deny]},
            "cwd": "/repo",
            "home": "/home/dev",
            "working_dirs": ["/repo"],
        }


def expect(case: Case, rules: RuleSet, mode: str) -> frozenset[str]:
    """The verdicts that the clauses accept, in the order deny, ask, mode, allow, built-in (C1)."""
    wanted = _expect_where_people_answer(case, rules, mode)
    if mode == "dontAsk":
        return frozenset("deny" if verdict == "ask" else verdict for verdict in wanted)
    return wanted


def _expect_where_people_answer(case: Case, rules: RuleSet, mode: str) -> frozenset[str]:
    if rules.hit:
        return HITS[rules.hit]
    if rules.strangers and case.unknown is not False:
        return AT_LEAST_ASK if case.unknown else OPEN | DENY
    if case.bypass is False:
        return ASK
    if mode == "bypassPermissions":
        return _to_verdicts(case.bypass)
    if mode == "plan" and not case.reads:
        return AT_LEAST_ASK if case.reads is False else OPEN | DENY
    granted = {"none": False, "prefix": case.prefix, "exact": case.exact, "whole": case.whole}
    as_edit = mode == "acceptEdits" and case.edits
    return _to_verdicts(_combine(case.reads, as_edit, granted[rules.kind]))


def _combine(*permissions: Permission) -> Permission:
    if True in permissions:
        return True
    return None if None in permissions else False


def _to_verdicts(permission: Permission) -> frozenset[str]:
    return OPEN if permission is None else ALLOW if permission else ASK


NO_RULE = RuleSet("no rule")
OTHER_DENY, OTHER_ASK = "Bash(shutdown:*)", "Bash(reboot:*)"


def allow_program(case: Case) -> RuleSet:
    """A content rule for the program of the case."""
    return RuleSet("content rule", "prefix", (f"Bash({case.program}:*)", *case.also))


def allow_text(case: Case) -> RuleSet:
    """A rule with the exact text of the whole command."""
    return RuleSet("exact rule", "exact", (f"Bash({case.text})",))


WHOLE = RuleSet("whole rule", "whole", ("Bash",))
WHOLE_OTHER_DENY = replace(WHOLE, name="whole rule, other deny", deny=(OTHER_DENY,), strangers=True)
WHOLE_OTHER_ASK = replace(WHOLE, name="whole rule, other ask", ask=(OTHER_ASK,), strangers=True)


def can_be_exact(case: Case) -> bool:
    """A star would be a wildcard in a rule, and a backslash may be an escape there."""
    return "*" not in case.text and "\\" not in case.text


def choose_rules(case: Case) -> list[RuleSet]:
    """The six sets of rules of the product."""
    exact = [allow_text(case)] if can_be_exact(case) else []
    return [NO_RULE, allow_program(case), *exact, WHOLE, WHOLE_OTHER_DENY, WHOLE_OTHER_ASK]


def cross(
    group: str,
    cases: Iterable[Case],
    modes: Iterable[str] = MODES,
    rules: Iterable[RuleSet] | Callable[[Case], Iterable[RuleSet]] = choose_rules,
) -> list[Row]:
    """Every case with every set of rules in every mode."""
    return [
        make_row(group, case, chosen, mode)
        for case in cases
        for chosen in (rules(case) if callable(rules) else rules)
        for mode in modes
    ]


def make_row(group: str, case: Case, rules: RuleSet, mode: str) -> Row:
    """One row, with what the model expects."""
    return Row(
        id=f"{group}: {case.name} | {rules.name} | {mode}",
        group=group,
        clause=case.clause,
        command=case.text,
        mode=mode,
        rules=rules,
        expected=expect(case, rules, mode),
        note=case.note,
    )
