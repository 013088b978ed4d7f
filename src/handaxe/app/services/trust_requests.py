"""All that the files of a project want done, whatever kind of file it is."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from handaxe.agent.subagents.definitions import BadAgentFile, parse_agent_file
from handaxe.config.mcp_definitions import ServerDefinition, read_definitions
from handaxe.config.settings_paths import is_users_own
from handaxe.config.source import SettingsFragment
from handaxe.config.trust import list_trust_requests
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.contract.trust_gate import TrustRequest
from handaxe.git.discovery import find_top

_FOLDERS = (".claude", ".handaxe")
_PASSED_BY = frozenset({"node_modules", "__pycache__", "target", "dist", "build"})


def find_trust_requests(
    root: str, fragments: Iterable[SettingsFragment], *, in_parts: bool = True
) -> list[TrustRequest[Any]]:
    """Every wish of a project; `in_parts`: those of directories below its root as well."""
    found: list[TrustRequest[Any]] = [*list_trust_requests(fragments, root)]
    found += _find_skill_requests(root, _find_parts(root) if in_parts else ())
    found += find_agent_requests(root)
    servers = read_definitions(root, sources=("project",)).found
    found += [make_server_request(server, root) for server in servers if server.scope == "project"]
    return found


def make_server_request(server: ServerDefinition, root: str) -> TrustRequest[bool]:
    """The wish of `.mcp.json` that a server may start; variables count by name, not by value."""
    file = server.file or ""
    return TrustRequest(
        wanted=True,
        nothing=False,
        key=f"server:{server.name}",
        shown=server.raw,
        file=file,
        root=root,
    )


def find_agent_requests(root: str) -> list[TrustRequest[AgentDefinition]]:
    """The agents of a project; each may at least want to take the place of another."""
    found: list[TrustRequest[AgentDefinition]] = []
    for path in (
        path for place in find_agent_directories(root, root, ()) for path in list_agent_files(place)
    ):
        if is_users_own(path):
            continue
        try:
            wish, _ = parse_agent_file(path.read_text(encoding="utf-8"), str(path), root=root)
        except (BadAgentFile, OSError, UnicodeError):
            continue
        found.append(wish)
    return found


def find_agent_directories(directory: str, root: str, users: Sequence[str]) -> list[Path]:
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


def list_agent_files(place: Path) -> list[Path]:
    """The files of agents in a directory."""
    return sorted(place.rglob("*.md"))


def _find_skill_requests(root: str, parts: Sequence[str]) -> list[TrustRequest[Any]]:
    from handaxe.skills.locations import SkillPlaces
    from handaxe.skills.skill_files import DiskSkills

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
