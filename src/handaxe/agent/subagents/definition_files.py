"""The agent types of a project: the host's, files from near to far, built-in ones.

The trust gate decides what a project's file may start or replace.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from handaxe.agent.subagents.definitions import (
    BadAgentFile,
    list_builtin_definitions,
    parse_agent_definitions,
    parse_agent_file,
)
from handaxe.config.project import Configuration
from handaxe.config.settings_paths import is_users_own
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.contract.trust_gate import TrustRequest
from handaxe.git.discovery import find_top


class AgentDefinitions:
    """The agent types, read once; a problem with a file is reported and affects no other."""

    def __init__(
        self,
        given: Mapping[str, Any] | None,
        directories: Sequence[Path],
        configuration: Configuration | None = None,
        managed: Sequence[Path] = (),
    ) -> None:
        """`directories` are searched in order; the first file of a name applies.

        `managed` are an organisation's and take precedence. Files in the user's directories are the
        user's. Those of a project may not choose a vendor, and need approval to start programs or
        replace other types.
        """
        found: dict[str, AgentDefinition] = {}
        self.problems: list[str] = []
        self._root = configuration.root if configuration is not None else "/"
        self._gate = configuration.gate if configuration is not None else None
        try:
            own, remarks = parse_agent_definitions((given or {}).items())
        except BadAgentFile as error:
            raise SetupError(str(error)) from None
        self.problems += remarks
        for kind in own:
            found[kind.name] = self._drop_invalid(kind)
        # What an organisation says takes the place of all else, its first word last.
        for path in reversed([path for place in managed for path in list_agent_files(place)]):
            if (wish := self._read(path, is_own=True)) is not None:
                kind = self._drop_invalid(wish.grant(None))
                found[kind.name] = kind
        waiting: list[AgentDefinition] = []
        for path in (path for place in directories for path in list_agent_files(place)):
            wish = self._read(path, is_own=is_users_own(path))
            if wish is None:
                continue
            kind = wish.grant(self._gate)
            if kind.name not in found and self._can_replace(wish):
                found[kind.name] = self._drop_invalid(kind)
            elif kind.name not in found:
                waiting.append(kind)
        for kind in list_builtin_definitions():
            found.setdefault(kind.name, kind)
        for kind in waiting:
            if found.setdefault(kind.name, kind).source not in {kind.source, "arguments"}:
                self.problems.append(
                    f"{kind.source}: until the project is trusted, it cannot replace the "
                    f"existing agent {kind.name!r}."
                )
        self._kinds = tuple(sorted(found.values(), key=lambda kind: kind.name))

    def __call__(self) -> tuple[AgentDefinition, ...]:
        """All types, sorted by name."""
        return self._kinds

    def _read(self, path: Path, *, is_own: bool) -> TrustRequest[AgentDefinition] | None:
        try:
            wish, remarks = parse_agent_file(
                path.read_text(encoding="utf-8"),
                str(path),
                owner="own" if is_own else "project",
                root=self._root,
            )
        except (BadAgentFile, OSError, UnicodeError) as error:
            self.problems.append(f"An agent file was skipped. {error}")
            return None
        self.problems += remarks
        if self._gate is not None and (refusal := self._gate.refusal(wish)) is not None:
            self.problems.append(refusal)
        return wish

    def _can_replace(self, wish: TrustRequest[AgentDefinition]) -> bool:
        """Whether a file may replace files farther away and built-in types."""
        return not wish.is_projects or (self._gate is not None and self._gate.allows(wish))

    def _drop_invalid(self, kind: AgentDefinition) -> AgentDefinition:
        """The type without invalid definitions."""
        if kind.hooks:
            from handaxe.hooks.config import find_bad_conditions, read_hooks

            book = read_hooks(kind.hooks, source=kind.source)
            self.problems += [
                f"{kind.source}: {told}" for told in (*book.problems, *find_bad_conditions(book))
            ]
        if servers := get_inline_servers(kind):
            from handaxe.config.mcp_definitions import read_definitions

            try:
                read_definitions(self._root, given=[servers], is_strict=True)
            except SetupError as error:
                self.problems.append(f"{kind.source}: {error}")
                names = tuple(entry for entry in kind.mcp_servers if isinstance(entry, str))
                kind = msgspec.structs.replace(kind, mcp_servers=names)
        return kind


def get_inline_servers(kind: AgentDefinition) -> dict[str, Any]:
    """The servers that a type defines, by name."""
    return {
        name: definition
        for entry in kind.mcp_servers
        if isinstance(entry, dict)
        for name, definition in entry.items()
    }


def find_agent_requests(root: str) -> list[TrustRequest[AgentDefinition]]:
    """The agents of a project; each may at least request to replace another."""
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
    """The possible directories of agent files: from the working directory up, then the user's.

    Above the project's root the search continues to the root of its repository.
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
    """The agent files in a directory."""
    return sorted(place.rglob("*.md"))
