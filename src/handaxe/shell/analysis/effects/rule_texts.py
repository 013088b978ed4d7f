"""The texts of a part that allow rules may match: as written, and inside transparent wrappers.

Allow rules use the source text only, so a rule covers what the user sees.
"""

from __future__ import annotations

from collections.abc import Iterable

from handaxe.shell.analysis.facts import MatchText
from handaxe.shell.analysis.parser.expansion import expand_word
from handaxe.shell.analysis.parser.syntax import Simple, Word
from handaxe.shell.analysis.paths import resolve
from handaxe.shell.analysis.program_tables import split_names
from handaxe.shell.analysis.programs.exec_options import find_exec_option
from handaxe.shell.analysis.programs.read_only import unwrap_proven
from handaxe.shell.analysis.programs.subcommands import PLAIN_GIT_GLOBALS
from handaxe.shell.analysis.walker import Part, ShellState

_FIND_ACTIONS = ("-exec", "-ok", "-delete", "-fprint", "-fls")
_PLAIN_WRAPPERS = frozenset({"xargs", "nohup", "noglob"})
_TRANSPARENT = _PLAIN_WRAPPERS | split_names("timeout time nice stdbuf command builtin")


def join_words(words: Iterable[Word]) -> str:
    """The source of words, joined by one blank, with continued lines joined."""
    return " ".join(
        word.text if "'" in word.text else word.text.replace("\\\n", "") for word in words
    )


def read_rule_texts(part: Part) -> tuple[tuple[MatchText, ...], ...]:
    """The texts for every state a part may run in; none if it is not a simple command."""
    node = part.node
    if not isinstance(node, Simple) or not node.words:
        return ()
    return tuple(dict.fromkeys(_list_readings(node.words, state) for state in part.states))


def _list_readings(words: list[Word], state: ShellState) -> tuple[MatchText, ...]:
    unwrapped = _unwrap(words, state)
    found = [_make_match_text(inner, state, ()) for inner in unwrapped]
    bare = _strip_git_globals(unwrapped[-1], state)
    return (*found, _make_match_text(*bare)) if bare is not None else tuple(found)


def _make_match_text(
    words: list[Word], state: ShellState, goes: tuple[str | None, ...]
) -> MatchText:
    program = words[0].literal
    name = (program or "").rpartition("/")[2]
    fields = [field for word in words for field in expand_word(word, state.variables)]
    runs = find_exec_option(fields) if fields else ""
    if name == "find":
        runs = next((word.text for word in words[1:] if _can_act(word)), "")
    return MatchText(join_words(words), None if words[0].has_glob else program, runs, goes)


def _can_act(word: Word) -> bool:
    if word.literal is not None:
        return word.literal.startswith(_FIND_ACTIONS)
    return word.has_brace or word.pieces[0].kind != "text" or word.pieces[0].text.startswith("-")


def _unwrap(words: list[Word], state: ShellState) -> list[list[Word]]:
    """The command as written, and inside each transparent wrapper."""
    found = [words]
    for _ in range(4):
        program = words[0].literal
        if program not in _TRANSPARENT or len(words) < 2:
            break
        if program in _PLAIN_WRAPPERS:
            inner = words[1:] if not (words[1].literal or "-").startswith("-") else []
        else:
            fields = [field for word in words for field in expand_word(word, state.variables)]
            if len(fields) != len(words):
                break
            rest = unwrap_proven(fields, 1)
            inner = words[len(words) - len(rest) :] if len(rest) < len(words) else []
        if not inner:
            break
        words = inner
        found.append(words)
    return found


def _strip_git_globals(
    words: list[Word], state: ShellState
) -> tuple[list[Word], ShellState, tuple[str | None, ...]] | None:
    """`git -C DIR log` as `git log`, with the directories of git."""
    if words[0].literal != "git":
        return None
    at, goes = 1, list[str | None]()
    while at < len(words):
        option = words[at].literal
        target = words[at + 1].literal if at + 1 < len(words) else None
        if option == "-C" and target:
            bases = state.cwds or (frozenset({"/"}) if target.startswith("/") else frozenset())
            goes += [resolve(target, base) for base in sorted(bases)] or [None]
            at += 2
        elif option in PLAIN_GIT_GLOBALS:
            at += 1
        else:
            break
    return ([words[0], *words[at:]], state, tuple(goes)) if 1 < at < len(words) else None
