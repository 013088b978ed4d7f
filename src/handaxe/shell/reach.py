"""What a command can touch, whatever the rules say: for ordering, checkpoints and results."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from handaxe.shell.decide import decide
from handaxe.shell.destructive import Destruction
from handaxe.shell.flow import walk
from handaxe.shell.judge import PathVerdict, ShellRules
from handaxe.shell.parse import parse
from handaxe.shell.places import Access, is_inside
from handaxe.shell.syntax import Script, Simple
from handaxe.shell.tables import names

_MOVERS = names("cd pushd popd")
_IN_THE_TREE = names("rm rmdir unlink truncate shred find chmod chown chgrp rsync redirection")
"""Destructive forms that change nothing but the paths they name."""
_IN_THE_CHECKOUT = frozenset(
    {"git reset", "git clean", "git checkout", "git restore", "git switch", "git rm"}
)
"""Destructive forms that change nothing but the working tree they run in."""
_LOOKS = PathVerdict("allow")
_WRITES = PathVerdict("ask")


class Reach(Struct, frozen=True):
    """What one command does to the world."""

    looks_only: bool
    """It was proved to change nothing, wherever its paths are."""
    moves: bool
    """It may leave the shell in another directory."""
    runs_git: bool
    is_readable: bool
    """Whether the text could be read to its end."""
    is_lasting: bool
    """It destroys something that lies outside the working directories, or on no disk of ours."""


@lru_cache(maxsize=256)
def reach_of(
    command: str, cwd: str = "/project", home: str = "/home/user", roots: tuple[str, ...] = ()
) -> Reach:
    """What `command` can do; pure, and never raises."""
    roots = roots or (cwd,)
    found = decide(
        command,
        rules=ShellRules(),
        path_verdict=_any_place,
        cwd=cwd,
        home=home,
        working_dirs=roots,
    )
    script = parse(command)
    programs = _programs(script, cwd, home)
    return Reach(
        looks_only=found.verdict == "allow",
        moves=not programs.isdisjoint(_MOVERS) or bool(script.problems),
        runs_git="git" in programs or (bool(script.problems) and "git" in command),
        is_readable=not script.problems,
        is_lasting=any(_is_lasting(loss, cwd, roots) for loss in found.destruction),
    )


def programs_of(command: str) -> frozenset[str]:
    """The names of the programs that a text runs, as far as they are literal."""
    return _programs(parse(command), "/project", "/home/user")


def _any_place(_path: str, access: Access) -> PathVerdict:
    return _LOOKS if access == "read" else _WRITES


def _programs(script: Script, cwd: str, home: str) -> frozenset[str]:
    """The first words of all commands in the text, as far as they are literal."""
    found: set[str] = set()
    for part in walk(script, cwd, home):
        if isinstance(part.node, Simple) and part.node.words:
            word = part.node.words[0].literal or ""
            found.add(word.rpartition("/")[2])
    return frozenset(found)


def _is_lasting(loss: Destruction, cwd: str, roots: tuple[str, ...]) -> bool:
    if loss.critical:
        return True
    if loss.form in _IN_THE_CHECKOUT:
        return not any(is_inside(cwd, root) for root in roots)
    if loss.form not in _IN_THE_TREE or not loss.paths:
        return loss.form != "redirection"
    return not all(any(is_inside(path, root) for root in roots) for path in loss.paths)
