"""The configuration of a project: opening it, and warnings about it."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handaxe.config.keys import RESTRICTING, TOOL_NAMES
from handaxe.config.project import Configuration, Given
from handaxe.config.settings_paths import is_users_own
from handaxe.config.source import SettingsFragment
from handaxe.config.trust import list_trust_requests

if TYPE_CHECKING:
    from handaxe.catalog.catalog import Catalog
    from handaxe.contract.trust_gate import TrustRequest
    from handaxe.pipeline.context import PipelineContext
    from handaxe.rules.grammar import PermissionRule
    from handaxe.rules.rule_index import RuleIndex

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
    """All requests of a project's files."""
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
    """The directories below the root that have settings folders."""
    found: list[str] = []
    for directory, names, _ in os.walk(root):
        if directory != root and any(name in names for name in _FOLDERS):
            found.append(directory)
        names[:] = [n for n in names if not n.startswith(".") and n not in _SKIPPED]
    return found


def find_config_warnings(
    configuration: Configuration, book: "RuleIndex", catalog: "Catalog"
) -> tuple[str, ...]:
    """Warnings about settings, directories, rules, hook events, the sandbox and own tools."""
    return (
        *configuration.warnings,
        *configuration.directories()[1],
        *book.problems,
        *_find_unknown_tools(book, TOOL_NAMES | catalog.names()),
        *_find_unknown_events(configuration),
        *_find_sandbox_warnings(configuration),
        *_find_unenforced(configuration),
        *(
            f"The program's own tool {name!r} replaces the built-in one."
            for name in sorted(catalog.stand_ins)
        ),
        *(
            f"The program's own tool {name!r} is ignored: a built-in tool has that name. "
            "Set `replaces_builtin = True` to replace it."
            for name in sorted(catalog.left_out)
        ),
        *_find_tool_problems(catalog),
    )


def find_mode_warnings(context: "PipelineContext") -> tuple[str, ...]:
    """Warnings about the permission mode in force."""
    if context.policy().mode != "auto":
        return ()
    from handaxe.pipeline.auto_mode import find_auto_mode_problems

    return find_auto_mode_problems(context)


def _find_tool_problems(catalog: "Catalog") -> list[str]:
    """Own tools, and aliases of them, that cannot be called."""
    if not catalog.own_tools:
        return []
    from handaxe.app.services.own_tool_ports import find_tool_problems

    return find_tool_problems(catalog)


def _find_unknown_tools(book: "RuleIndex", known: frozenset[str]) -> list[str]:
    """Rules that name an unknown tool: probably a typing error."""
    return [
        _describe_unknown_tool(rule, known)
        for rule in book.rules
        if rule.tool not in known
        and not rule.is_dead
        and "*" not in rule.tool
        and not rule.tool.startswith("mcp__")
    ]


def _describe_unknown_tool(rule: "PermissionRule", known: frozenset[str]) -> str:
    from handaxe.text.escape import format_suggestion

    hint = format_suggestion(rule.tool, sorted(known))
    where = "" if rule.source_file is None else f"{rule.origin}: "
    return (
        f"{where}The {rule.behaviour} rule {rule.text!r} has no effect: "
        f"there is no tool {rule.tool!r}.{hint}"
    )


def _find_unknown_events(configuration: Configuration) -> list[str]:
    """Unknown events without a hook; events with hooks are checked when the hooks are read."""
    empty = [
        (path[1], entry.origin)
        for path, entries in configuration.merged.entries.items()
        if path[0] == "hooks"
        for entry in entries
        if entry.kind == "empty"
    ]
    if not empty:
        return []
    from handaxe.hooks.config import read_hooks

    return [
        f"{origin}: {problem}"
        for event, origin in empty
        for problem in read_hooks({event: []}, source=str(origin)).problems
    ]


def _find_unenforced(configuration: Configuration) -> list[str]:
    """Restrictions in settings that handaxe does not enforce."""
    found = configuration.merged.entries
    return [
        f"{entry.origin}: `{entry.name}` has no effect: handaxe does not enforce it."
        for name in sorted(RESTRICTING.intersection(path[0] for path in found if len(path) == 1))
        for entry in found[(name,)]
        if entry.kind == "unused"
    ]


def _find_sandbox_warnings(configuration: Configuration) -> list[str]:
    """Sandbox settings that cannot be met here."""
    if not configuration.settings.sandbox.enabled:
        return []
    from handaxe.app.services.sandbox import find_sandbox_problems

    return find_sandbox_problems(configuration)
