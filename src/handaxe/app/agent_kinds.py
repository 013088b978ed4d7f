"""The types of agents that count for a project: the host's, files near to far, built-in ones.

A project's own file may not start programs before the user trusts it: its hooks and its MCP
servers count once `handaxe trust` has seen them, as they were then.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec

from handaxe.agent.kinds import BadAgentFile, built_in_kinds, kinds_from, read_kind
from handaxe.app.configuration import Configuration
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import AgentKind
from handaxe.settings.places import is_users_own


class AgentKinds:
    """Read once; what is wrong with a file is said and stops nothing else."""

    def __init__(
        self,
        given: Mapping[str, Any] | None,
        directories: Sequence[Path],
        configuration: Configuration | None = None,
        managed: Sequence[Path] = (),
    ) -> None:
        """`directories` are searched in order; the first file of a name counts.

        `managed` are an organisation's, which count before everything else.
        Files below the user's directories are the user's own; those of a project may not choose
        a vendor, and start programs only with the user's word.
        """
        found: dict[str, AgentKind] = {}
        self.problems: list[str] = []
        self._configuration = configuration
        try:
            own, remarks = kinds_from((given or {}).items())
        except BadAgentFile as error:
            raise SetupError(str(error)) from None
        self.problems += remarks
        for kind in own:
            found[kind.name] = self._sound(kind)
        # What an organisation says takes the place of all else, its first word last.
        theirs = [path for place in managed for path in sorted(place.rglob("*.md"))]
        others = [path for place in directories for path in sorted(place.rglob("*.md"))]
        for path in (*reversed(theirs), *others):
            is_managed = path in theirs
            try:
                kind, remarks = read_kind(path.read_text(encoding="utf-8"), str(path))
            except (BadAgentFile, OSError, UnicodeError) as error:
                self.problems.append(f"An agent file was skipped. {error}")
                continue
            self.problems += remarks
            if is_managed or kind.name not in found:
                is_trusted = is_managed or is_users_own(path)
                found[kind.name] = self._sound(kind if is_trusted else self._within_trust(kind))
        for kind in built_in_kinds():
            found.setdefault(kind.name, kind)
        self._kinds = tuple(sorted(found.values(), key=lambda kind: kind.name))

    def __call__(self) -> tuple[AgentKind, ...]:
        """All types, sorted by name."""
        return self._kinds

    def _within_trust(self, kind: AgentKind) -> AgentKind:
        if kind.model and any(char in kind.model for char in "/:"):
            self.problems.append(
                f"{kind.source}: a project may not choose a vendor; `model` ignored"
            )
            kind = msgspec.structs.replace(kind, model=None)
        configuration = self._configuration
        digest = powers_digest(kind)
        if not digest or (configuration is not None and _is_approved(kind, digest, configuration)):
            return kind
        root = configuration.root if configuration is not None else "DIR"
        self.problems.append(
            f"{kind.source}: its `hooks` and `mcpServers` start programs, and nobody has approved "
            f"them. If you trust the project, run `handaxe trust {quote(root)}`."
        )
        names = tuple(entry for entry in kind.mcp_servers if isinstance(entry, str))
        return msgspec.structs.replace(kind, hooks={}, mcp_servers=names)

    def _sound(self, kind: AgentKind) -> AgentKind:
        """The type without definitions that are wrong."""
        if kind.hooks:
            from handaxe.app.hook_conditions import bad_conditions
            from handaxe.runtime.hooks.config import read_hooks

            book = read_hooks(kind.hooks, source=kind.source)
            self.problems += [
                f"{kind.source}: {told}" for told in (*book.problems, *bad_conditions(book))
            ]
        if servers := inline_servers(kind):
            from handaxe.settings.mcp_servers import read_definitions

            root = self._configuration.root if self._configuration is not None else "/"
            try:
                read_definitions(root, given=[servers], is_strict=True)
            except SetupError as error:
                self.problems.append(f"{kind.source}: {error}")
                names = tuple(entry for entry in kind.mcp_servers if isinstance(entry, str))
                kind = msgspec.structs.replace(kind, mcp_servers=names)
        return kind


def inline_servers(kind: AgentKind) -> dict[str, Any]:
    """The servers that a type defines itself, by name."""
    return {
        name: definition
        for entry in kind.mcp_servers
        if isinstance(entry, dict)
        for name, definition in entry.items()
    }


def powers_digest(kind: AgentKind) -> str:
    """What the programs that a type would start are known by; empty if it starts none."""
    servers = inline_servers(kind)
    if not kind.hooks and not servers:
        return ""
    plain = msgspec.json.encode([kind.hooks, servers], order="deterministic", enc_hook=repr)
    return sha256(plain).hexdigest()


def approval_name(kind: AgentKind) -> str:
    """Under which name a type is approved, beside the project's servers."""
    return f"agent:{kind.name}"


def agent_directories(directory: str, root: str, users: Sequence[str]) -> list[Path]:
    """Where files of agents may lie: from the working directory up to the project, then the user's.

    Above the project's root the search goes on to the root of its repository.
    """
    places: list[Path] = []
    here = Path(directory)
    for place in (here, *here.parents):
        places += (place / ".handaxe" / "agents", place / ".claude" / "agents")
        is_repository = (place / ".git").exists()
        if is_repository or (place == Path(root) and not _is_in_repository(place)):
            break
    places += [Path(user) / "agents" for user in users]
    return [place for place in dict.fromkeys(places) if place.is_dir()]


def project_agents(root: str) -> tuple[AgentKind, ...]:
    """The types of a project's own files that would start programs, for whoever trusts it."""
    found: list[AgentKind] = []
    for place in agent_directories(root, root, ()):
        for path in sorted(place.rglob("*.md")):
            try:
                kind, _ = read_kind(path.read_text(encoding="utf-8"), str(path))
            except (BadAgentFile, OSError, UnicodeError):
                continue
            if powers_digest(kind) and not is_users_own(path):
                found.append(kind)
    return tuple(found)


def _is_approved(kind: AgentKind, digest: str, configuration: Configuration) -> bool:
    if configuration.trusts_servers:
        return True
    try:
        known = configuration.trust.servers(configuration.root)
    except SetupError:
        return False
    return known.get(approval_name(kind)) == digest


def _is_in_repository(place: Path) -> bool:
    return any((above / ".git").exists() for above in place.parents)
