"""Rules to offer for "always allow": narrow, per part, with examples of what they would cover.

None is offered for a command whose program or operands standard input may decide.
"""

from __future__ import annotations

import re

from msgspec import Struct

from handaxe.shell.destructive import is_destructive_name
from handaxe.shell.flow import Part
from handaxe.shell.judge import PartDecision
from handaxe.shell.rules import squeeze
from handaxe.shell.runners import SHELLS, runners
from handaxe.shell.running_options import may_run_others
from handaxe.shell.stdin_programs import can_have_prefix, has_stdin_form, takes_standard_input
from handaxe.shell.subcommands import WITH_SUBCOMMANDS
from handaxe.shell.syntax import Simple
from handaxe.shell.tables import names, read_only_programs

_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_PLAIN_PROGRAM = re.compile(r"[\w./+@-]+")
_VERSION = re.compile(r"[-\d.]+$")
_THIRD = frozenset({"run", "exec", "compose", "x", "script"})
_NEVER = names(
    "git curl wget nc ssh scp eval source . exec cd pushd kill crontab chmod chown mv cp ln "
    "tee sed dd"
)
_INTERPRETERS = names(
    "powershell pwsh cmd cmd.exe powershell.exe wsl java jshell scala kotlin kotlinc groovy mono "
    "pypy ipython jupyter julia R octave matlab ghci runghc runhaskell elixir iex erl escript "
    "stack swift racket guile sbcl clisp clojure clj lein bb wish cscript wscript ts-node tsx "
    "esbuild zig nim crystal luajit raku perl6 ocaml utop sml gforth gnuplot maxima sage bc "
    "vim vi nvim view vimdiff ex ed emacs emacsclient nano pico micro hx helix kak joe code subl "
    "less more most man info lynx w3m elinks mc ranger nnn lf tig lazygit k9s htop"
)
"""Programs that run what they are given, or that a person can start anything from."""
_EVALUATES = names(
    "exec shell sh bash zsh eval runner console repl enter ssh attach debug run-script python node "
    "ruby script cmd execute dbshell"
)
_LIMIT = 5
_EXAMPLES = 3


class Proposal(Struct, frozen=True):
    """A rule that would allow a part, in settings form, with examples."""

    rule: str
    for_part: str
    would_match: list[str]
    would_not_match: list[str]
    meaning: str = ""
    """What the rule says, in plain words."""


def propose(parts: list[Part], decisions: list[PartDecision]) -> tuple[list[Proposal], bool]:
    """At most five proposals, one for each part that asked for want of a rule.

    Also whether they leave something that would still ask.
    """
    found: dict[str, Proposal] = {}
    leaves = False
    for at, decision in enumerate(decisions):
        if decision.verdict != "ask":
            continue
        settles = decision.cause == "program" and at < len(parts)
        proposal = _proposal(parts[at]) if settles else None
        leaves = leaves or proposal is None or bool(decision.beside)
        if proposal is not None:
            found.setdefault(proposal.rule, proposal)
    return list(found.values())[:_LIMIT], leaves or len(found) > _LIMIT


def _proposal(part: Part) -> Proposal | None:
    node = part.node
    if not isinstance(node, Simple) or not node.words or node.assignments:
        return None
    words = [word.literal for word in node.words]
    text = squeeze(node.words)
    program = words[0]
    if program is None or takes_standard_input(words):
        return None
    head = None if _is_exact_only(program, words[1:]) else _prefix(program, words)
    if head is not None:
        return _by_prefix(head, text)
    if "*" in text or any(word.has_expansion for word in node.words):
        return None
    return _exact(text)


def _is_exact_only(program: str, rest: list[str | None]) -> bool:
    """Programs for which a prefix would allow anything: interpreters, wrappers, movers of data."""
    name = program.rpartition("/")[2]
    # A quoted blank would make a prefix of two words, which is another program.
    if not _PLAIN_PROGRAM.fullmatch(program):
        return True
    bare = _VERSION.sub("", name) or name
    for known in (name, bare):
        if known in SHELLS | _NEVER | _INTERPRETERS or is_destructive_name(known):
            return True
        # Of a program that looks, only what it was asked to look at is in question.
        if known in read_only_programs():
            return True
        runs_others = known in runners() or may_run_others(known)
        if runs_others and known not in WITH_SUBCOMMANDS:
            return True
    runner = runners().get(name)
    after = runner.after if runner is not None else ("",)
    if not after:
        return True
    return any(word is not None and (word in after or word in _EVALUATES) for word in rest)


def _prefix(program: str, words: list[str | None]) -> str | None:
    """The words a prefix rule begins with; None where only the exact command may be offered."""
    fixed = [program]
    for word in words[1:3]:
        if word is None or not _SUBCOMMAND.fullmatch(word):
            break
        fixed.append(word)
        if word not in _THIRD:
            break
    is_named = len(fixed) > 1 and fixed[-1] not in _THIRD
    if program in WITH_SUBCOMMANDS:
        # `npm run` alone would cover every script.
        return " ".join(fixed) if is_named and can_have_prefix(words) else None
    if can_have_prefix(words):
        return program
    # Nobody knows this program: what its first argument names is as far as a yes can go.
    return " ".join(fixed) if is_named and not has_stdin_form(words) else None


def _exact(text: str) -> Proposal:
    misses = [f"{text} more", f"{text} && other", f"sudo {text}"]
    return Proposal(f"Bash({text})", text, [text], misses, f"exactly the command {text}")


def _by_prefix(head: str, text: str) -> Proposal:
    hits = dict.fromkeys((text, head, f"{head} other", f"{head} --option"))
    misses = [f"{head}x", f"{head} && other", f"sudo {head}"]
    meaning = f"any command that begins with {head}, whatever follows"
    return Proposal(f"Bash({head} *)", text, list(hits)[:_EXAMPLES], misses, meaning)
