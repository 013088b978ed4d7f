"""Rules to offer for "always allow": narrow, per part, with examples of what they would cover."""

from __future__ import annotations

import re

from msgspec import Struct

from handaxe.shell.destructive import is_destructive_name
from handaxe.shell.flow import Part
from handaxe.shell.judge import PartDecision
from handaxe.shell.rules import squeeze
from handaxe.shell.runners import SHELLS, runners
from handaxe.shell.subcommands import WITH_SUBCOMMANDS
from handaxe.shell.syntax import Simple
from handaxe.shell.tables import names, read_only_programs

_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_THIRD = frozenset({"run", "exec", "compose", "x", "script"})
_NEVER = names(
    "git curl wget nc ssh scp eval source . exec cd pushd kill crontab chmod chown mv cp ln "
    "tee sed dd"
)
_LIMIT = 5


class Proposal(Struct, frozen=True):
    """A rule that would allow a part, in settings form, with examples."""

    rule: str
    for_part: str
    would_match: list[str]
    would_not_match: list[str]


def propose(parts: list[Part], decisions: list[PartDecision]) -> list[Proposal]:
    """At most five proposals, one for each part that asked for want of a rule."""
    found: dict[str, Proposal] = {}
    for part, decision in zip(parts, decisions, strict=False):
        if decision.verdict != "ask" or decision.cause != "program":
            continue
        proposal = _proposal(part)
        if proposal is not None:
            found.setdefault(proposal.rule, proposal)
    return list(found.values())[:_LIMIT]


def _proposal(part: Part) -> Proposal | None:
    node = part.node
    if not isinstance(node, Simple) or not node.words or node.assignments:
        return None
    words = [word.literal for word in node.words]
    text = squeeze(node.words)
    program = words[0]
    if program is None or "*" in text or any(word.has_expansion for word in node.words):
        return None
    if _is_exact_only(program):
        return _exact(text)
    head = _prefix(program, words[1:])
    return _exact(text) if head is None else _by_prefix(head, text)


def _is_exact_only(program: str) -> bool:
    """Programs for which a prefix would allow anything: interpreters, wrappers, movers of data."""
    name = program.rpartition("/")[2]
    if name in SHELLS or name in _NEVER or is_destructive_name(name):
        return True
    # Of a program that looks, only what it was asked to look at is in question.
    if name in read_only_programs():
        return True
    runner = runners().get(name)
    return runner is not None and not runner.after


def _prefix(program: str, rest: list[str | None]) -> str | None:
    if program not in WITH_SUBCOMMANDS:
        return program
    words = [program]
    for word in rest[:2]:
        if word is None or not _SUBCOMMAND.fullmatch(word):
            break
        words.append(word)
        if word not in _THIRD:
            break
    # `npm run` alone would cover every script.
    return " ".join(words) if len(words) > 1 and words[-1] not in _THIRD else None


def _exact(text: str) -> Proposal:
    return Proposal(f"Bash({text})", text, [text], [f"{text} more", f"{text} && other"])


def _by_prefix(head: str, text: str) -> Proposal:
    misses = [f"{head}x", f"{head} && other", f"sudo {head}"]
    return Proposal(f"Bash({head} *)", text, [head, text, f"{head} other"], misses)
