"""Ways out of a checkout that a command is meant to stay in, as far as its text shows them.

An agent with a checkout of its own may not reach the one it was made from. This finds names of
places there, git told to work elsewhere, and directories that nobody knows beforehand. What a
program computes while it runs is not seen here; a sandbox holds that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from handaxe.shell.danger import find_danger
from handaxe.shell.fields import Field
from handaxe.shell.flow import Part, walk
from handaxe.shell.parse import parse
from handaxe.shell.places import is_inside, resolve
from handaxe.shell.runners import program_name
from handaxe.shell.tables import names

_PATH_END = r"[^\s'\"`;&|<>()$\\,]*"
_CLIMB = re.compile(r"(?<![\w./-])(?:[\w.@+-]+/|/)*\.\.(?:/" + _PATH_END + ")?")
_GIT_VARIABLE = re.compile(
    r"\bGIT_(DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|OBJECT_DIRECTORY|NAMESPACE|CONFIG\w*)\s*="
)
_GIT_ELSEWHERE = ("--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix")
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"})
_GIT_SHARED = names("update-ref symbolic-ref replace filter-branch filter-repo")
_GIT_BETWEEN = names("push fetch pull clone remote")
_GIT_TELLING = names(
    "--git-common-dir --git-dir --absolute-git-dir --git-path --show-superproject-working-tree"
)
_MOST_PARTS = 120


def way_out(
    command: str, *, wall: str, is_ours: Callable[[str], bool], cwd: str, home: str
) -> str | None:
    """Where a command may leave its own checkout for the one behind the wall; None: nowhere."""

    def is_behind(path: str) -> bool:
        return is_inside(path, wall) and not is_ours(path)

    # In code and quotes, too.
    for found in re.finditer(re.escape(wall) + _PATH_END, command):
        path = resolve(found[0], "/")
        if is_behind(path):
            return path
    if found := _GIT_VARIABLE.search(command):
        return f"the variable {found[0].rstrip('= ')}"
    parts = walk(parse(command), cwd, home)
    for part in parts[:_MOST_PARTS]:
        found_out = _out_of_part(part, is_behind, cwd, home, is_alone=len(parts) == 1)
        if found_out is not None:
            return found_out
    return None if len(parts) <= _MOST_PARTS else "a command of too many parts"


def _out_of_part(
    part: Part, is_behind: Callable[[str], bool], cwd: str, home: str, *, is_alone: bool
) -> str | None:
    places = {place for state in part.states for place in state.cwds}
    if any(not state.cwds for state in part.states):
        return "a directory that is not known before the command runs"
    for place in sorted(places):
        if is_behind(place):
            return place
    for candidate in find_danger(part, {}, cwd, home).candidates:
        fields = list(candidate.fields)
        for field in fields[1:]:
            for path in _paths_of(field, places):
                if is_behind(path):
                    return path
        program = program_name(fields[0])
        reason = _git_way(fields, is_alone=is_alone) if program == "git" else None
        if program == "env":
            reason = _elsewhere(fields)
        if reason is not None:
            return reason
    return None


def _paths_of(field: Field, places: set[str]) -> Iterator[str]:
    if field.kind == "unknown":
        return
    # The word itself, an option's value, and whatever climbs inside a piece of code.
    texts = {field.value, field.value.partition("=")[2], field.value[2:]}
    texts.update(found[0] for found in _CLIMB.finditer(field.value))
    for text in texts:
        if text.startswith("/") or ".." in text:
            yield from (resolve(text, place) for place in places)


def _elsewhere(fields: list[Field]) -> str | None:
    """A program that `env` starts in a directory nobody knows beforehand."""
    for at, field in enumerate(fields[:-1]):
        if field.value in {"-C", "--chdir"} and fields[at + 1].kind != "known":
            return f"env in {fields[at + 1].text}"
    return None


def _git_way(fields: list[Field], *, is_alone: bool) -> str | None:
    values = [field.value for field in fields]
    at = 1
    while at < len(values) and values[at].startswith("-"):
        if values[at].startswith(_GIT_ELSEWHERE):
            return f"git {values[at]}"
        if values[at] == "-C" and (at + 1 == len(values) or fields[at + 1].kind != "known"):
            return "git -C"
        at += 2 if values[at] in _GIT_VALUED else 1
    name, rest = (values[at] if at < len(values) else ""), values[at + 1 :]
    if name in _GIT_SHARED or (name == "worktree" and rest[:1] != ["list"]):
        return f"git {name}"
    if name in _GIT_BETWEEN and any(word.startswith((".", "/", "file:")) for word in rest):
        return f"git {name} between local checkouts"
    if name == "rev-parse" and not is_alone and _GIT_TELLING.intersection(rest):
        return "the repository's own directory"
    return None
