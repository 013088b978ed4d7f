"""Git directories in the roots, along real directories: where they are, and which links lead away.

A command can put a link where a repository keeps others. What lies behind it is none of the
repository's places: a mount there would show, or open, wherever the link leads.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from handaxe.git.submodules import TooManyRepositories, find_module_directories

_LED_AWAY = ("modules", "worktrees", "info")
"""Directories of a repository with something in them that makes git run programs."""


def find_inner_repositories(git: str) -> list[str]:
    """A git directory, and those of its submodules and linked worktrees."""
    places = [git]
    names = list_names(git)
    if "modules" in names:
        with suppress(OSError, TooManyRepositories):
            places += map(str, find_module_directories(Path(git)))
    if "worktrees" in names:
        worktrees = f"{git}/worktrees"
        places += [f"{worktrees}/{name}" for name in list_names(worktrees)]
    return [place for place in places if place == git or find_link(place, (git,)) is None]


def find_redirecting_links(git: str) -> Iterator[str]:
    """Links in a git directory that give git another place for what makes it run programs."""
    for name in _LED_AWAY:
        path = f"{git}/{name}"
        if Path(path).is_symlink():
            yield path


def find_link(path: str, roots: Sequence[str], known: dict[str, bool] | None = None) -> str | None:
    """The first link on the way from a root to a path, the path included; None if there is none."""
    known = {} if known is None else known
    inside = [len(root) for root in roots if path.startswith(f"{root.rstrip('/')}/")]
    if not inside:
        return None
    at = path.find("/", min(inside) + 1)
    while True:
        place = path if at < 0 else path[:at]
        if place not in known:
            known[place] = Path(place).is_symlink()
        if known[place]:
            return place
        if at < 0:
            return None
        at = path.find("/", at + 1)


def list_names(directory: str) -> list[str]:
    """The names in a directory; none if it cannot be read."""
    try:
        return os.listdir(directory)
    except OSError:
        return []
