"""Open the configuration of a project, with everything that its files may request."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handaxe.config.project import Configuration, Given
from handaxe.config.settings_paths import is_users_own
from handaxe.config.source import SettingsFragment
from handaxe.config.trust import list_trust_requests

if TYPE_CHECKING:
    from handaxe.contract.trust_gate import TrustRequest


_FOLDERS = (".claude", ".handaxe")
_SKIPPED = frozenset({"node_modules", "__pycache__", "target", "dist", "build"})


def open_configuration(
    root: str,
    *,
    home: Path,
    given: Given = None,
    sources: str | Sequence[str] | None = None,
    trusted: bool | None = None,
) -> Configuration:
    """Read the settings of a project; `root` is a real path."""
    return Configuration(
        root,
        home=home,
        given=given,
        sources=sources,
        trusted=trusted,
        find_requests=_find_requests,
    )


def _find_requests(
    root: str, fragments: Iterable[SettingsFragment], *, in_parts: bool = True
) -> "list[TrustRequest[Any]]":
    """Everything that the files of a project request, of whatever kind they are."""
    from handaxe.agent.subagents.definition_files import find_agent_requests
    from handaxe.config.mcp_definitions import make_server_request, read_definitions

    found: list[TrustRequest[Any]] = [*list_trust_requests(fragments, root)]
    found += _find_skill_requests(root, _find_parts(root) if in_parts else ())
    found += find_agent_requests(root)
    servers = read_definitions(root, sources=("project",)).found
    found += [make_server_request(server, root) for server in servers if server.scope == "project"]
    return found


def _find_skill_requests(root: str, parts: Sequence[str]) -> "list[TrustRequest[Any]]":
    from handaxe.skills.locations import SkillLocations
    from handaxe.skills.skill_files import DiskSkills

    touched = [f"{part}/touched" for part in parts]
    places = SkillLocations(directories=lambda: (root,), root=root, touched=lambda: touched)
    found = [skill.powers for skill in DiskSkills(places).all() if not skill.powers.is_empty]
    return [wish for wish in found if not is_users_own(Path(wish.file))]


def _find_parts(root: str) -> list[str]:
    """The directories below the root that have folders of their own."""
    found: list[str] = []
    for directory, names, _ in os.walk(root):
        if directory != root and any(name in names for name in _FOLDERS):
            found.append(directory)
        names[:] = [n for n in names if not n.startswith(".") and n not in _SKIPPED]
    return found
