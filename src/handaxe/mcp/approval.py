"""Which configured servers may start, and which need approval.

A user's server may start. A server in the project's `.mcp.json` needs approval: by a setting, by
trust in the folder, or by an earlier answer. An approval applies to exactly the approved
definition.
"""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from handaxe.config.mcp_definitions import (
    ApprovedServer,
    RemoteConfig,
    ServerDefinition,
    ServerDefinitions,
    StdioConfig,
    make_server_request,
)
from handaxe.config.project import Configuration
from handaxe.config.settings import Settings


class SortedServers(msgspec.Struct, frozen=True):
    """Servers by their status; each name is in one list only."""

    starting: tuple[ApprovedServer, ...] = ()
    waiting: tuple[ServerDefinition, ...] = ()
    """Servers that need approval."""
    blocked: tuple[tuple[ServerDefinition, str], ...] = ()
    """Servers that may not start, with the reason."""


def sort_servers(definitions: ServerDefinitions, configuration: Configuration) -> SortedServers:
    """For every name the highest definition that may start, or the one that needs approval."""
    settings = _apply_managed_list(configuration)
    starting: dict[str, ApprovedServer] = {}
    waiting: dict[str, ServerDefinition] = {}
    blocked: dict[str, tuple[ServerDefinition, str]] = {}
    for one in definitions.found:
        if one.name in starting:
            continue
        reason = find_blocking_reason(one, settings)
        if reason is not None:
            blocked.setdefault(one.name, (one, reason))
        elif one.scope != "project" or is_approved(one, configuration):
            starting[one.name] = ApprovedServer(one)
        else:
            waiting.setdefault(one.name, one)
    return SortedServers(
        tuple(starting.values()),
        tuple(one for name, one in waiting.items() if name not in starting),
        tuple(
            told for name, told in blocked.items() if name not in starting and name not in waiting
        ),
    )


def is_approved(server: ServerDefinition, configuration: Configuration) -> bool:
    """Whether a project's server is approved."""
    settings = configuration.settings
    if settings.enable_all_project_mcp_servers or server.name in settings.enabled_mcpjson_servers:
        return True
    return make_server_request(server, configuration.root).grant(configuration.gate)


def _apply_managed_list(configuration: Configuration) -> Settings:
    """The settings with the list of allowed servers that the organisation enforces."""
    settings = configuration.settings
    if not settings.allow_managed_mcp_servers_only:
        return settings
    listed = [
        entry
        for entry in configuration.merged.entries.get(("allowedMcpServers",), ())
        if entry.origin.source == "policy"
    ]
    allowed = tuple(entry.value for entry in listed if entry.kind == "item")
    return msgspec.structs.replace(settings, allowed_mcp_servers=allowed if listed else None)


def find_blocking_reason(server: ServerDefinition, settings: Settings) -> str | None:
    """Why settings block a server; None if they do not."""
    if server.scope == "project" and server.name in settings.disabled_mcpjson_servers:
        return "the setting `disabledMcpjsonServers` names it"
    if _is_listed(server, settings.denied_mcp_servers):
        return "the setting `deniedMcpServers` names it"
    allowed = settings.allowed_mcp_servers
    if allowed is not None and not _is_listed(server, allowed):
        return "the setting `allowedMcpServers` does not name it"
    return None


def _is_listed(server: ServerDefinition, entries: Iterable[dict[str, Any]]) -> bool:
    config = server.config
    for entry in entries:
        if entry.get("serverName") == server.name:
            return True
        if isinstance(config, StdioConfig) and entry.get("serverCommand") == [
            config.command,
            *config.args,
        ]:
            return True
        pattern = entry.get("serverUrl")
        if isinstance(config, RemoteConfig) and isinstance(pattern, str):
            expression = ".*".join(map(re.escape, pattern.split("*")))
            if re.fullmatch(expression, config.url, re.DOTALL):
                return True
    return False
