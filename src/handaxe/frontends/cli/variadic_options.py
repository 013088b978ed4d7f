"""Options that take several values in a row, such as `--allowedTools Read Edit`.

The values end at the first word that is not a rule, a directory or a list of servers: it is the
prompt. This module does not interpret values.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from handaxe.contract.faults import SetupError

_RULES = frozenset({"--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools"})


def expand_variadic_options(words: Sequence[str]) -> list[str]:
    """The command line with one value for each option."""
    found: list[str] = []
    going_on: tuple[str, Callable[[str], bool]] | None = None
    for at, word in enumerate(words):
        if word == "--":
            return [*found, *words[at:]]
        is_value = bool(found) and found[-1] in _LISTS and words[at - 1] == found[-1]
        if is_value:
            going_on = (found[-1], _LISTS[found[-1]])
            found.append(word)
        elif going_on is not None and not word.startswith("-") and going_on[1](word):
            found += _add_value(found, going_on[0], word)
        else:
            going_on = None
            found.append(word)
    return found


def check_prompt(words: Sequence[str], prompt: Sequence[str]) -> None:
    """Refuse a prompt of several words if one of them looks like a misspelled tool name."""
    if len(prompt) < 2:
        return
    from handaxe.config.keys import TOOL_NAMES
    from handaxe.text.escape import find_closest_name

    option: str | None = None
    for before, word in pairwise(words):
        if before in _RULES:
            option = before
        elif word.startswith("-"):
            option = None
        elif option is not None and not _is_rule_list(word):
            near = (
                find_closest_name(word, TOOL_NAMES) if word in prompt and word.isalpha() else None
            )
            if near is not None:
                raise SetupError(f"{option}: there is no tool {word!r}. Did you mean {near!r}?")
            option = None


def _add_value(found: list[str], option: str, word: str) -> list[str]:
    if option == "--tools":
        # `--tools` has one value: a list of names.
        found[-1] = f"{found[-1]},{word}"
        return []
    return [option, word]


def _is_rule_list(word: str) -> bool:
    """Whether every rule of a value names a known tool."""
    from handaxe.config.keys import TOOL_NAMES
    from handaxe.rules.grammar import split_rules
    from handaxe.tools import BUILTIN

    names = [rule.partition("(")[0] for rule in split_rules(word)]
    return bool(names) and all(
        name in TOOL_NAMES or name in BUILTIN or name.startswith("mcp__") or "*" in name
        for name in names
    )


def _is_directory(word: str) -> bool:
    return Path(word).expanduser().is_dir()


def _is_server_list(word: str) -> bool:
    return word.lstrip().startswith("{") or (word.endswith(".json") and Path(word).is_file())


_LISTS: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys(_RULES, _is_rule_list),
    "--add-dir": _is_directory,
    "--mcp-config": _is_server_list,
    "--tools": _is_rule_list,
}
