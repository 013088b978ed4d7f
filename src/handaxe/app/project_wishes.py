"""All that the files of a project want done, whatever kind of file it is."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from handaxe.agent.kinds import BadAgentFile, read_kind
from handaxe.contract.ports.agents import AgentKind
from handaxe.contract.ports.trust_gate import Wish
from handaxe.git.discovery import find_top
from handaxe.settings.fragment import Fragment
from handaxe.settings.mcp_servers import ServerDefinition, read_definitions
from handaxe.settings.narrowing import settings_wishes
from handaxe.settings.places import is_users_own

_FOLDERS = (".claude", ".handaxe")
_PASSED_BY = frozenset({"node_modules", "__pycache__", "target", "dist", "build"})


def find_wishes(
    root: str, fragments: Iterable[Fragment], *, in_parts: bool = True
) -> list[Wish[Any]]:
    """Every wish of a project; `in_parts`: those of directories below its root as well."""
    found: list[Wish[Any]] = [*settings_wishes(fragments, root)]
    found += _skill_wishes(root, _find_parts(root) if in_parts else ())
    found += agent_wishes(root)
    servers = read_definitions(root, sources=("project",)).found
    found += [server_wish(server, root) for server in servers if server.scope == "project"]
    return found


def server_wish(server: ServerDefinition, root: str) -> Wish[bool]:
    """The wish of `.mcp.json` that a server may start; variables count by name, not by value."""
    file = server.file or ""
    return Wish(
        wanted=True,
        nothing=False,
        key=f"server:{server.name}",
        shown=server.raw,
        file=file,
        root=root,
    )


def agent_wishes(root: str) -> list[Wish[AgentKind]]:
    """The agents of a project; each may at least want to take the place of another."""
    found: list[Wish[AgentKind]] = []
    for path in (path for place in agent_directories(root, root, ()) for path in files_in(place)):
        if is_users_own(path):
            continue
        try:
            wish, _ = read_kind(path.read_text(encoding="utf-8"), str(path), root=root)
        except (BadAgentFile, OSError, UnicodeError):
            continue
        found.append(wish)
    return found


def agent_directories(directory: str, root: str, users: Sequence[str]) -> list[Path]:
    """Where files of agents may lie: from the working directory up to the project, then the user's.

    Above the project's root the search goes on to the root of its repository.
    """
    places: list[Path] = []
    here, last = Path(directory), Path(find_top(directory) or root)
    for place in (here, *here.parents):
        places += (place / ".handaxe" / "agents", place / ".claude" / "agents")
        if place == last:
            break
    places += [Path(user) / "agents" for user in users]
    return [place for place in dict.fromkeys(places) if place.is_dir()]


def files_in(place: Path) -> list[Path]:
    """The files of agents in a directory."""
    return sorted(place.rglob("*.md"))


def _skill_wishes(root: str, parts: Sequence[str]) -> list[Wish[Any]]:
    from handaxe.host.skill_places import SkillPlaces
    from handaxe.host.skills import DiskSkills

    touched = [f"{part}/touched" for part in parts]
    places = SkillPlaces(directories=lambda: (root,), root=root, touched=lambda: touched)
    found = [skill.powers for skill in DiskSkills(places).all() if not skill.powers.is_empty]
    return [wish for wish in found if not is_users_own(Path(wish.file))]


def _find_parts(root: str) -> list[str]:
    """The directories below the root that have folders of their own."""
    found: list[str] = []
    for directory, names, _ in os.walk(root):
        if directory != root and any(name in names for name in _FOLDERS):
            found.append(directory)
        names[:] = [n for n in names if not n.startswith(".") and n not in _PASSED_BY]
    return found
