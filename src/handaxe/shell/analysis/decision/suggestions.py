"""Rules to offer for "always allow": narrow, per part, with examples.

No rule is offered for a command whose program or operands may come from standard input.
"""

from __future__ import annotations

import re

from msgspec import Struct

from handaxe.shell.analysis.decision.verdicts import PartDecision
from handaxe.shell.analysis.effects.destructive_commands import is_destructive_name
from handaxe.shell.analysis.facts import CommandPart
from handaxe.shell.analysis.program_tables import load_read_only_programs, split_names
from handaxe.shell.analysis.programs.exec_options import can_run_programs
from handaxe.shell.analysis.programs.stdin_programs import (
    CONSOLES,
    can_have_prefix,
    can_run_stdin,
    is_stdin_data_only,
    list_program_names,
)
from handaxe.shell.analysis.programs.subcommands import WITH_SUBCOMMANDS
from handaxe.shell.analysis.programs.wrappers import SHELLS, load_wrappers

_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_PLAIN_PROGRAM = re.compile(r"[\w./+@-]+")
_THIRD = frozenset({"run", "exec", "compose", "x", "script"})
_NEVER = split_names(
    "git curl wget nc ssh scp eval source . exec cd pushd kill crontab chmod chown mv cp ln "
    "tee sed dd"
)
_LIMIT = 5
_EXAMPLES = 3


class Proposal(Struct, frozen=True):
    """A rule that would allow a part, as in settings, with examples."""

    rule: str
    for_part: str
    would_match: list[str]
    would_not_match: list[str]
    meaning: str = ""
    """The meaning of the rule in plain words."""


def propose(parts: list[CommandPart], decisions: list[PartDecision]) -> tuple[list[Proposal], bool]:
    """At most five proposals, one for each part that asked because no rule allows it.

    Also whether something would still ask.
    """
    found: dict[str, Proposal] = {}
    leaves = False
    for at, decision in enumerate(decisions):
        if decision.verdict != "ask":
            continue
        settles = decision.cause == "program" and at < len(parts)
        proposal = _make_proposal(parts[at]) if settles else None
        leaves = leaves or proposal is None or bool(decision.beside)
        if proposal is not None:
            found.setdefault(proposal.rule, proposal)
    return list(found.values())[:_LIMIT], leaves or len(found) > _LIMIT


def _make_proposal(part: CommandPart) -> Proposal | None:
    if not part.words or part.assignments:
        return None
    words, text = list(part.words), part.squeezed or ""
    program = words[0]
    if program is None or can_run_stdin(words):
        return None
    head = None if _is_exact_only(program, words[1:]) else _choose_prefix(program, words)
    if head is not None:
        return _propose_prefix(head, text)
    if "*" in text or None in words:
        return None
    return _propose_exact(text)


def _is_exact_only(program: str, rest: list[str | None]) -> bool:
    """Programs for which a prefix would allow anything: interpreters, wrappers, copy tools."""
    # A quoted blank would make a prefix of two words, which is another program.
    if not _PLAIN_PROGRAM.fullmatch(program):
        return True
    known_names = list_program_names(program)
    for known in known_names:
        if known in SHELLS | _NEVER or is_destructive_name(known):
            return True
        # Of a program that looks, only what it was asked to look at is in question.
        if known in load_read_only_programs():
            return True
        runs_others = known in load_wrappers() or can_run_programs(known)
        if runs_others and known not in WITH_SUBCOMMANDS:
            return True
    found = [load_wrappers()[name] for name in known_names if name in load_wrappers()]
    if any(not runner.after for runner in found):
        return True
    after = CONSOLES.union(*(runner.after for runner in found))
    return any(word in after for word in rest)


def _choose_prefix(program: str, words: list[str | None]) -> str | None:
    """The words of a prefix rule; None if only the exact command may be offered."""
    fixed = [program]
    for word in words[1:3]:
        if word is None or not _SUBCOMMAND.fullmatch(word):
            break
        fixed.append(word)
        if word not in _THIRD:
            break
    if is_stdin_data_only(program):
        return program
    # `npm run` alone would cover every script. For an unknown program, a suggested rule includes at
    # most its first argument.
    is_named = len(fixed) > 1 and fixed[-1] not in _THIRD
    return " ".join(fixed) if is_named and can_have_prefix(words) else None


def _propose_exact(text: str) -> Proposal:
    misses = [f"{text} more", f"{text} && other", f"sudo {text}"]
    return Proposal(f"Bash({text})", text, [text], misses, f"exactly the command {text}")


def _propose_prefix(head: str, text: str) -> Proposal:
    hits = dict.fromkeys((text, head, f"{head} other", f"{head} --option"))
    misses = [f"{head}x", f"{head} && other", f"sudo {head}"]
    meaning = f"any command that starts with {head}"
    return Proposal(f"Bash({head} *)", text, list(hits)[:_EXAMPLES], misses, meaning)
