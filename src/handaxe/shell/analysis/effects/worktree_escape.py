"""Find ways in which the text of a command may leave its checkout.

An agent in a worktree must not change the main checkout. This finds paths there, git options for
another directory, and unknown directories. What a program computes at run time is invisible here; a
sandbox confines it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from handaxe.shell.analysis.facts import CommandFacts, CommandPart
from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import is_inside, resolve
from handaxe.shell.analysis.program_tables import split_names
from handaxe.shell.analysis.programs.subcommands import skip_git_globals

_PATH_END = r"[^\s'\"`;&|<>()$\\,]*"
_CLIMB = re.compile(r"(?<![\w./-])(?:[\w.@+-]+/|/)*\.\.(?:/" + _PATH_END + ")?")
_GIT_VARIABLE = re.compile(
    r"\bGIT_(DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|OBJECT_DIRECTORY|NAMESPACE|CONFIG\w*)\b"
)
_QUOTING = re.compile(r"['\"\\]")
_MOVING = {
    "branch": ("cCdDfmM", ("--force", "--move", "--copy", "--delete")),
    "checkout": ("B", ("--ignore-other-worktrees",)),
    "switch": ("C", ("--force-create", "--ignore-other-worktrees")),
}
"""By the command, options that move, rename or delete a branch, which other checkouts may use."""
_CONFIG_READS = ("--get", "--list", "-l")
_GIT_ELSEWHERE = ("--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix")
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"})
_GIT_SHARED = split_names("update-ref symbolic-ref replace filter-branch filter-repo")
_INIT_ELSEWHERE = ("--template", "--separate-git-dir")
_GIT_BETWEEN = split_names("push fetch pull clone remote")
_GIT_TELLING = split_names(
    "--git-common-dir --git-dir --absolute-git-dir --git-path --show-superproject-working-tree"
)


def find_worktree_escape(
    facts: CommandFacts, *, wall: str, is_ours: Callable[[str], bool]
) -> str | None:
    """Where a command may leave its checkout for the main one; None: nowhere."""

    def is_behind(path: str) -> bool:
        return is_inside(path, wall) and not is_ours(path)

    # In code and quotes, too.
    for found in re.finditer(re.escape(wall) + _PATH_END, facts.text):
        path = resolve(found[0], "/")
        if is_behind(path):
            return path
    # Any mention may set it, by `read` or `printf -v` as well as by `=`.
    if found := _GIT_VARIABLE.search(_QUOTING.sub("", facts.text)):
        return f"the variable {found[0]}"
    if facts.later_parts:
        return "a command of too many parts"
    for part in facts.parts:
        found_out = _find_part_escape(part, is_behind, is_alone=len(facts.parts) == 1)
        if found_out is not None:
            return found_out
    return None


def _find_part_escape(
    part: CommandPart, is_behind: Callable[[str], bool], *, is_alone: bool
) -> str | None:
    if not part.cwds:
        return "a directory that is unknown before the command runs"
    for place in sorted(part.cwds):
        if is_behind(place):
            return place
    for command in part.commands:
        for field in command.fields[1:]:
            for path in _find_paths(field, part.cwds):
                if is_behind(path):
                    return path
        fields = list(command.fields)
        reason = _find_git_escape(fields, is_alone=is_alone) if command.program == "git" else None
        if command.program == "env":
            reason = _find_env_escape(fields)
        if reason is not None:
            return reason
    return None


def _find_paths(field: Field, places: frozenset[str]) -> Iterator[str]:
    if field.kind == "unknown":
        return
    # The word itself, an option's value, and whatever climbs inside a piece of code.
    texts = {field.value, field.value.partition("=")[2], field.value[2:]}
    texts.update(found[0] for found in _CLIMB.finditer(field.value))
    for text in texts:
        if text.startswith("/") or ".." in text:
            yield from (resolve(text, place) for place in places)


def _find_env_escape(fields: list[Field]) -> str | None:
    """A program that `env` starts in an unknown directory."""
    for at, field in enumerate(fields[:-1]):
        if field.value in {"-C", "--chdir"} and fields[at + 1].kind != "known":
            return f"env in {fields[at + 1].text}"
    return None


def is_repository_change(part: CommandPart) -> bool:
    """Whether git may run other programs after this part, because it changes the configuration."""
    for command in part.commands:
        is_git = command.program == "git"
        words = [f.value for f in skip_git_globals(list(command.fields[1:]))] if is_git else []
        name, rest = (words[0], words[1:]) if words else ("", [])
        if name in {"submodule", "lfs"} or (name == "config" and _is_config_change(rest)):
            return True
        if name == "init" and any(_is_option(word, _INIT_ELSEWHERE) for word in rest):
            return True
    return False


def _is_option(word: str, options: Sequence[str]) -> bool:
    """Whether a word is one of these options, possibly abbreviated."""
    given = word.partition("=")[0]
    return len(given) > 2 and any(option.startswith(given) for option in options)


def _find_git_escape(fields: list[Field], *, is_alone: bool) -> str | None:
    values = [field.value for field in fields]
    at = 1
    while at < len(values) and values[at].startswith("-"):
        if values[at].startswith(_GIT_ELSEWHERE):
            return f"git {values[at]}"
        if values[at] == "-C" and (at + 1 == len(values) or fields[at + 1].kind != "known"):
            return "git -C"
        at += 2 if values[at] in _GIT_VALUED else 1
    name, rest = (values[at] if at < len(values) else ""), values[at + 1 :]
    if (shared := _find_shared_change(name, rest)) is not None:
        return shared
    if name in _GIT_BETWEEN and any(word.startswith((".", "/", "file:")) for word in rest):
        return f"git {name} between local checkouts"
    if name == "rev-parse" and not is_alone and _GIT_TELLING.intersection(rest):
        return "the repository's own directory"
    return None


def _find_shared_change(name: str, rest: list[str]) -> str | None:
    """A change of what all checkouts share: branches or configuration."""
    if name in _GIT_SHARED or (name == "worktree" and rest[:1] != ["list"]):
        return f"git {name}"
    if name == "config" and _is_config_change(rest):
        return "git config"
    letters, options = _MOVING.get(name, ("", ()))
    for word in rest[: rest.index("--")] if "--" in rest else rest:
        is_long = word.startswith("--") and _is_option(word, options)
        is_short = word[:1] == "-" != word[1:2] and bool(set(letters).intersection(word[1:]))
        if is_long or is_short:
            return f"git {name} {word}"
    return None


def _is_config_change(rest: list[str]) -> bool:
    options = [word for word in rest if word.startswith("-")]
    words = [word for word in rest if not word.startswith("-")]
    if words[:1] in (["get"], ["list"]) or any(o.startswith(_CONFIG_READS) for o in options):
        return False
    words = words[1:] if words[:1] == ["set"] else words
    is_reading = len(words) < 2 and not options
    return not is_reading and not words[0].startswith("user.") if words else True
