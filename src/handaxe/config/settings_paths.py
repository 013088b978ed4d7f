"""Where settings files lie, lowest layer first.

Of two files of one level, handaxe's own is the higher one. `HANDAXE_CONFIG_HOME` moves
`~/.handaxe` and `CLAUDE_CONFIG_DIR` moves `~/.claude`; nothing moves managed settings, since who
may set a variable may not lift them.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import msgspec

from handaxe.config.source import Source
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.settings_store import Scope
from handaxe.storage.home import (
    MANAGED_DIRECTORIES,
    OWN,
    SHARED,
    get_shared_servers_file,
    get_user_directories,
)

SCOPES: tuple[Scope, ...] = ("user", "project", "local")
WORKTREES = ".claude/worktrees"
"""Below a repository: the checkouts of agents that work apart."""

MANAGED_SERVERS = "managed-mcp.json"
PROJECT_SERVERS = ".mcp.json"
_NAMES: dict[Scope, str] = {
    "user": "settings.json",
    "project": "settings.json",
    "local": "settings.local.json",
}


class SettingsPath(msgspec.Struct, frozen=True):
    """A settings file, there or not; or a directory of them."""

    path: str
    source: Source
    is_directory: bool = False


def list_settings_paths(root: str, sources: Sequence[Scope]) -> tuple[SettingsPath, ...]:
    """Every file that may hold settings for a project, lowest first; managed ones always."""
    found: list[SettingsPath] = []
    for scope in SCOPES:
        if scope not in sources:
            continue
        if scope == "local" and (top := _find_top(root)) != root:
            # What a person set for a repository counts in all of it; what it shares does not.
            found += [SettingsPath(path, scope) for path in _build_paths(top, scope)]
        found += [SettingsPath(path, scope) for path in _build_paths(root, scope)]
    # In the home directory itself both levels are one file, and it is the user's.
    users = {os.path.realpath(path.rpartition("/")[0]) for path in _build_paths(root, "user")}
    found = [
        place for place in found if place.source == "user" or _get_directory(place) not in users
    ]
    for directory in MANAGED_DIRECTORIES:
        found.append(SettingsPath(f"{directory}/managed-settings.json", "policy"))
        found.append(SettingsPath(f"{directory}/managed-settings.d", "policy", is_directory=True))
    return tuple(found)


def list_server_files(root: str) -> tuple[str, ...]:
    """Every file beside the settings that may define MCP servers for a project."""
    managed = (f"{directory}/{MANAGED_SERVERS}" for directory in MANAGED_DIRECTORIES)
    return (*managed, get_shared_servers_file(), f"{root}/{PROJECT_SERVERS}")


def get_own_file(root: str, scope: Scope) -> str:
    """The file that a change of this scope is written to."""
    return _build_paths(root, scope)[1]


def parse_sources(given: str | Sequence[str] | None) -> tuple[Scope, ...]:
    """The layers that `--setting-sources` names; None stands for all, nothing for none."""
    if given is None:
        return SCOPES
    names = given.replace(",", " ").split() if isinstance(given, str) else _list_names(given)
    for name in names:
        if name not in SCOPES:
            from handaxe.text.escape import format_suggestion

            hint = format_suggestion(name, SCOPES)
            raise SetupError(
                f"{name!r} is not a source of settings.{hint} Sources: {', '.join(SCOPES)}."
            )
    return tuple(scope for scope in SCOPES if scope in names)


def _list_names(given: object) -> list[str]:
    names = list(cast("Iterable[object]", given)) if isinstance(given, Iterable) else [given]
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise SetupError(f"`setting_sources` takes names as texts, not {wrong[0]!r}.")
    return cast("list[str]", names)


def _build_paths(root: str, scope: Scope) -> tuple[str, str]:
    """The ecosystem's file and handaxe's own."""
    in_project = f"{root}/{SHARED}", f"{root}/{OWN}"
    directories = get_user_directories() if scope == "user" else in_project
    shared_file, own_path = (f"{directory}/{_NAMES[scope]}" for directory in directories)
    return shared_file, own_path


def _find_top(root: str) -> str:
    """The top of the repository around a directory; itself where there is none."""
    above = root
    while above not in {"", "/"}:
        if os.path.lexists(f"{above}/.git"):
            from handaxe.git.discovery import find_top

            return find_top(root) or root
        above = above.rpartition("/")[0]
    return root


def _get_directory(place: SettingsPath) -> str:
    return place.path.rpartition("/")[0]


def is_users_own(path: Path) -> bool:
    """Whether a file lies in the user's own directories."""
    return any(path.is_relative_to(user) for user in get_user_directories())
