"""Exit codes that are an answer and not a failure."""

from __future__ import annotations

from itertools import dropwhile

from handaxe.shell.analysis.parser.expansion import expand_word
from handaxe.shell.analysis.parser.syntax import (
    CommandChain,
    CommandPipeline,
    Compound,
    Node,
    Sequence,
    Simple,
    Word,
)
from handaxe.shell.analysis.programs.read_only import WRAPPERS, unwrap_proven

_NOTHING_FOUND = "No matches found"
_DIFFERENT = "Files differ"
_FALSE = "Condition is false"
_SEARCHERS = (
    "grep rg egrep fgrep zgrep zegrep zfgrep bzgrep xzgrep lzgrep zstdgrep pcregrep pcre2grep "
    "ugrep ag ack pgrep"
)
_BENIGN = {
    **dict.fromkeys(_SEARCHERS.split(), _NOTHING_FOUND),
    "find": "Some directories could not be read",
    "diff": _DIFFERENT,
    "cmp": _DIFFERENT,
    "zdiff": _DIFFERENT,
    "test": _FALSE,
    "[": _FALSE,
    "git diff": _DIFFERENT,
    "git grep": _NOTHING_FOUND,
}
_VALUED_GLOBALS = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_CANNOT_SAY_ONE = frozenset({"echo", "true", ":", "printf", "pwd"})


def explain_exit_one(body: Sequence, *, cd_failed: bool) -> str | None:
    """The meaning of exit code 1 if the command uses it as an answer; else None.

    In a chain, every command that may have ended it must use it so.
    """
    meanings = _collect_meanings(body, cd_failed)
    known = {meaning for meaning in meanings if meaning}
    return known.pop() if len(known) == 1 and None not in meanings else None


def _collect_meanings(node: Node, cd_failed: bool) -> set[str | None]:  # noqa: FBT001 - private
    """The possible meanings of a 1, one per command it may come from; empty text for never."""
    match node:
        case Sequence():
            is_known = node.items and not node.background[-1]
            return _collect_meanings(node.items[-1], cd_failed) if is_known else {None}
        case CommandChain():
            found: set[str | None] = set()
            for at, item in enumerate(node.items):
                is_last = at == len(node.items) - 1
                if is_last or node.operators[at] == "&&":
                    found |= _collect_meanings(item, cd_failed)
            return found
        case CommandPipeline():
            return {None} if node.negated else _collect_meanings(node.commands[-1], cd_failed)
        case Simple():
            return {_find_meaning(node, cd_failed)}
        case Compound(kind="group" | "subshell"):
            return _collect_meanings(node.bodies[0], cd_failed)
        case Compound():
            return {_FALSE} if node.kind in {"test", "arithmetic"} else {None}


def _find_meaning(node: Simple, cd_failed: bool) -> str | None:  # noqa: FBT001 - private
    words = [word.literal or "?" for word in _unwrap_words(node.words)]
    if not words:
        return None
    program = words[0].rpartition("/")[2]
    if program == "cd":
        return None if cd_failed else ""
    if program in _CANNOT_SAY_ONE:
        return ""
    return _BENIGN.get(f"git {_find_subcommand(words)}" if program == "git" else program)


def _unwrap_words(words: list[Word]) -> list[Word]:
    """The command whose exit code `timeout`, `nice` and similar programs return."""
    if words and words[0].literal not in WRAPPERS:
        return words
    fields = [field for word in words for field in expand_word(word, {})]
    if len(fields) != len(words):
        return words
    words = words[len(words) - len(unwrap_proven(fields)) :]
    if not words or words[0].literal != "env":
        return words
    # It sets variables and then is the program; with options it may be something else.
    inside = list(dropwhile(lambda word: "=" in (word.literal or ""), words[1:]))
    return words if not inside or (inside[0].literal or "-").startswith("-") else inside


def _find_subcommand(words: list[str]) -> str:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _VALUED_GLOBALS else 1
    return words[at] if at < len(words) else ""
