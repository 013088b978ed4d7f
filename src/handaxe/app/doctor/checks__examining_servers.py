"""The MCP servers of a project as `handaxe doctor` sees them; none is started or spoken to."""

import os
import shutil
from collections.abc import Iterator
from urllib.parse import urlsplit

from handaxe.app.doctor.checks__findings import Finding
from handaxe.config.mcp_definitions import (
    RemoteConfig,
    ServerDefinition,
    StdioConfig,
    read_definitions,
)
from handaxe.config.project import Configuration
from handaxe.mcp.approval import sort_servers

_WAITING = "Say yes to it when a session asks, or name it in `enabledMcpjsonServers`."


def examine_servers(configuration: Configuration) -> Iterator[Finding]:
    """A finding for every server that is set up, and for every entry that does not count."""
    definitions = read_definitions(
        configuration.root,
        settings=configuration.settings.mcp_servers,
        sources=configuration.sources,
        environment={**os.environ, **configuration.settings.env},
    )
    found = sort_servers(definitions, configuration)
    count = len({server.name for server in definitions.found})
    value = f"{count or 'none'} set up"
    yield Finding(key="mcp.servers", standing="ok", value=value)
    for server in found.starting:
        yield _check_server(server, configuration)
    for server in found.waiting:
        value = f"{_describe_server(server)}; the project names it and nobody has said yes"
        yield Finding(
            key=f"mcp.server.{server.name}", standing="weak", value=value, advice=_WAITING
        )
    for server, reason in found.blocked:
        value = f"{_describe_server(server)}; it does not start: {reason}"
        yield Finding(key=f"mcp.server.{server.name}", standing="weak", value=value)
    for number, problem in enumerate((*definitions.problems, *definitions.unset), 1):
        yield Finding(key=f"mcp.problem.{number}", standing="weak", value=problem)


def _check_server(server: ServerDefinition, configuration: Configuration) -> Finding:
    config = server.config
    is_missing = isinstance(config, StdioConfig) and not _can_run(config, configuration)
    return Finding(
        key=f"mcp.server.{server.name}",
        standing="no" if is_missing else "ok",
        value=_describe_server(server) + ("; there is no such program" if is_missing else ""),
        advice="Install it, or mend the entry's `command`." if is_missing else "",
    )


def _describe_server(server: ServerDefinition) -> str:
    """The transport and whom it leads to; what could be secret in an address is left out."""
    config = server.config
    if isinstance(config, StdioConfig):
        what = f"stdio, {config.command}"
    elif isinstance(config, RemoteConfig):
        parts = urlsplit(config.url)
        what = f"{config.kind}, {parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    else:
        what = "in this process"
    return f"{what} ({server.scope})"


def _can_run(config: StdioConfig, configuration: Configuration) -> bool:
    if "/" in config.command:
        place = os.path.normpath(f"{configuration.root}/{config.command}")
        return shutil.which(config.command if config.command.startswith("/") else place) is not None
    settings = configuration.settings.env
    path = config.env.get("PATH", settings.get("PATH", os.environ.get("PATH")))
    return shutil.which(config.command, path=path) is not None
