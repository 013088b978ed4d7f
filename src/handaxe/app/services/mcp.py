"""The MCP servers of a session: found, approved, connected in the background, in the catalog."""

import asyncio
import os
import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

from handaxe.app.services.service import Arriving, SessionContext, SessionService
from handaxe.catalog.catalog import Catalog
from handaxe.config.mcp_definitions import (
    ApprovedServer,
    ServerDefinition,
    StdioConfig,
    make_server_request,
    read_definitions,
)
from handaxe.config.settings import split_prefix
from handaxe.contract.decision import Allow, PermissionRequest
from handaxe.contract.events import McpServerChanged
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.mcp_servers import McpServer, McpServers
from handaxe.contract.ports.questions import ElicitationForm
from handaxe.contract.tool import Tool
from handaxe.mcp.approval import SortedServers, sort_servers
from handaxe.pipeline.elicitation import elicit_input
from handaxe.session.port_registry import Offered
from handaxe.storage.home import make_private_directory
from handaxe.version import __version__

if TYPE_CHECKING:
    from handaxe.mcp.client_context import ElicitationRequest


McpArguments = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
"""Servers of a host: a dict, a file, a JSON text, or several of these."""

CONNECT_S = 5.0
"""Seconds that a first answer waits for servers of settings."""
START_S = 30.0
_NONBLOCKING = "MCP_CONNECTION_NONBLOCKING"
START_PAUSE_S = 0.02
"""Seconds until servers start, so that a short session starts none."""
CHARS_PER_TOKEN = 4


class McpService(SessionService):
    """Opens and closes with the session; costs nothing without servers."""

    def __init__(
        self,
        session_context: SessionContext,
        given: McpArguments = None,
        *,
        is_strict: bool = False,
    ) -> None:
        self._session_context = session_context
        configuration = session_context.configuration
        self._variables = ChainMap(configuration.settings.env, cast("dict[str, str]", os.environ))
        self._definitions = read_definitions(
            configuration.root,
            given=[given] if isinstance(given, str | Mapping) else given or (),
            settings=configuration.settings.mcp_servers,
            sources=configuration.sources,
            is_strict=is_strict,
            environment=self._variables,
        )
        self._sorted = sort_servers(self._definitions, configuration)
        self._catalog: Catalog | None = None
        self._beginning: asyncio.Task[None] | None = None
        self._roots = session_context.workdir.roots
        self.servers: McpServers | None = None
        if self._definitions.found:
            self.servers = self._connect_servers(self._sorted)

    @property
    def ports(self) -> Offered:
        """The port, if there are servers."""
        return {} if self.servers is None else {McpServers: self.servers}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Invalid entries, and servers that wait for approval."""
        told = [*self._definitions.problems, *self._definitions.unset]
        if self._sorted.waiting and not self._can_ask():
            configuration = self._session_context.configuration
            told.append(_describe_waiting(self._sorted.waiting, configuration.root))
            known = configuration.gate.approved()
            wishes = [make_server_request(one, configuration.root) for one in self._sorted.waiting]
            changed = [configuration.gate.refusal(wish) for wish in wishes if wish.key in known]
            told += filter(None, changed)
        return tuple(told)

    def open(self, catalog: Catalog) -> None:
        """Start to connect."""
        if self.servers is not None and self._beginning is None:
            self._catalog = catalog
            others = catalog.why_missing
            catalog.why_missing = lambda tool: self._explain_missing(tool) or others(tool)
            self._beginning = asyncio.create_task(self._begin(), name="mcp servers")

    def follow(self) -> None:
        """Notify servers of changed working directories."""
        roots = self._session_context.workdir.roots
        if roots != self._roots and self.servers is not None:
            self._roots = roots
            self._servers.roots_changed()

    async def expect(self, tool: str) -> None:
        """Wait for the server that a tool belongs to."""
        if self.servers is None:
            return
        name = self._servers.server_of(tool)
        if name is not None:
            await self._servers.tried(name)

    async def wait_ready(self, server_wait: Arriving) -> None:
        """Wait for servers before the first answer, as long as `server_wait` says."""
        if self.servers is None:
            return
        waits_for_all = server_wait != "needed" or self._variables.get(_NONBLOCKING, "") == "0"
        names = [one.name for one in self._sorted.starting if waits_for_all or one.always_load]
        limit_s = self._read_seconds("MCP_CONNECT_TIMEOUT_MS", CONNECT_S)
        if server_wait == "long":
            limit_s = max(limit_s, self._read_seconds("MCP_TIMEOUT", START_S))
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await asyncio.gather(*(self._servers.settled(name) for name in names))

    async def close(self) -> None:
        """Close all servers."""
        if self._beginning is not None:
            self._beginning.cancel()
            await asyncio.wait([self._beginning])
        if self.servers is not None:
            await self._servers.close()

    def _explain_missing(self, tool: str) -> str | None:
        name = self._servers.server_of(tool)
        shown = next((one for one in self._servers.status() if one.name == name), None)
        if shown is None or shown.status == "connected":
            return None
        why = f" ({shown.error})" if shown.error else " yet"
        return f"The MCP server {name!r} is not connected{why}."

    async def _begin(self) -> None:
        await asyncio.sleep(START_PAUSE_S)
        self._servers.open()
        for definition in self._sorted.waiting:
            await self._ask_for(definition)

    async def _ask_for(self, definition: ServerDefinition) -> None:
        """Ask the user to approve a server of the project."""
        asker = self._session_context.pipeline_context().asker
        if asker is None or not asker.is_there:
            return
        request = PermissionRequest(
            call_id=f"mcp_{definition.name}",
            tool=f"mcp__{definition.name}",
            input=definition.raw,
            reason=(
                f"{definition.file} wants to start the MCP server {definition.name!r}, and its "
                "tools would be offered. Your approval holds until its definition changes."
            ),
            cwd=self._session_context.workdir.current,
        )
        answer = await asker.ask(request)
        if not isinstance(answer, Allow):
            return
        if answer.remember in {"project", "always"}:
            configuration = self._session_context.configuration
            with suppress(SetupError):
                configuration.gate.approve([make_server_request(definition, configuration.root)])
        self._servers.add(ApprovedServer(definition))
        self._servers.open()

    def _connect_servers(self, found: SortedServers) -> McpServers:
        from handaxe.mcp.client_context import McpClientContext
        from handaxe.mcp.server import McpTimeouts
        from handaxe.mcp.server_group import ConnectedServers
        from handaxe.process.child_processes import LocalProcesses
        from handaxe.storage.mcp_logins import DiskMcpLogins

        session_context = self._session_context
        root = session_context.configuration.root
        env = {
            **session_context.configuration.settings.env,
            "CLAUDE_PROJECT_DIR": root,
            "HANDAXE_PROJECT_DIR": root,
            "CLAUDE_CODE_SESSION_ID": session_context.session_id,
        }
        surrounding = McpClientContext(
            version=__version__,
            processes=LocalProcesses(session_context.configuration.redactor),
            logins=DiskMcpLogins(session_context.data_home),
            cwd=root,
            env=env,
            prefix=split_prefix(session_context.configuration.settings.shell),
            roots=lambda: session_context.workdir.roots,
            log_path=self._log_path,
            spill=self._spill,
            redactor=session_context.configuration.redactor,
            elicit=lambda: self._elicit if self._can_fill_in() else None,
        )
        limits = McpTimeouts()
        start_s = self._read_seconds("MCP_TIMEOUT", limits.start_s)
        idle_s = self._read_seconds("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", 0)
        limits = McpTimeouts(
            start_s=start_s,
            call_s=self._read_seconds("MCP_TOOL_TIMEOUT", limits.call_s),
            idle_stdio_s=idle_s or limits.idle_stdio_s,
            idle_remote_s=idle_s or limits.idle_remote_s,
        )
        tokens = self._number("MAX_MCP_OUTPUT_TOKENS") or 25_000
        self._servers = ConnectedServers(
            found.starting,
            surrounding,
            limits=limits,
            results=session_context.results,
            offer=self._offer,
            changed=self._changed,
            result_chars=int(tokens * CHARS_PER_TOKEN),
        )
        for definition in found.starting:
            if isinstance(definition.config, StdioConfig):
                session_context.configuration.redactor.learn(definition.config.env)
        for definition, reason in found.blocked:
            self._servers.disable(definition, reason)
        for definition in found.waiting:
            self._servers.disable(definition, "it is not approved yet")
        return self._servers

    def _offer(self, server: str, tools: Sequence[Tool[Any]]) -> None:
        if self._catalog is not None:
            self._catalog.replace_external(f"mcp:{server}", tools)

    def _changed(self, server: McpServer) -> None:
        self._session_context.emit(
            McpServerChanged(
                server=server.name,
                status=server.status,
                error=server.error,
                tools=len(server.tools),
            )
        )

    def _can_ask(self) -> bool:
        context = self._session_context.pipeline_context()
        return any(one is not None and one.is_there for one in (context.asker, context.forms))

    def _can_fill_in(self) -> bool:
        return self._can_ask() or self._session_context.pipeline_context().hooks.watches(
            "Elicitation"
        )

    async def _elicit(self, server: str, wanted: "ElicitationRequest") -> dict[str, Any] | None:
        """The answer to a server's form: from hooks or the user; None declines it."""
        message, form = wanted.message, wanted.schema
        return await elicit_input(
            self._session_context.pipeline_context(),
            ElicitationForm(server, message, form, wanted.url, wanted.elicitation_id),
            self._ask_person,
        )

    async def _ask_person(self, form: ElicitationForm) -> dict[str, Any] | None:
        """The user's answer; without forms, a permission question for the defaults."""
        context = self._session_context.pipeline_context()
        if context.forms is not None and context.forms.is_there:
            return await context.forms.show(form)
        asker, server = context.asker, form.source
        filled = None if form.schema is None else fill_form_defaults(form.schema)
        if filled is None or asker is None or not asker.is_there:
            return None
        request = PermissionRequest(
            call_id=f"mcp_{server}",
            tool=f"mcp__{server}",
            input=filled,
            reason=f"The MCP server {server!r} asks: {form.message}",
            cwd=self._session_context.workdir.current,
        )
        return filled if isinstance(await asker.ask(request), Allow) else None

    def _log_path(self, server: str) -> str:
        return str(
            self._session_context.session_directory / "mcp" / f"{_make_file_name(server)}.log"
        )

    def _spill(self, server: str) -> str:
        directory = self._session_context.session_directory / "results"
        make_private_directory(directory)
        return str(directory / f"mcp-{_make_file_name(server)}-{os.urandom(4).hex()}.json")

    def _read_seconds(self, variable: str, default_s: float) -> float:
        number = self._number(variable)
        return default_s if number is None else number / 1000

    def _number(self, variable: str) -> float | None:
        try:
            number = float(self._variables.get(variable, ""))
        except ValueError:
            return None
        return number if number > 0 else None


def fill_form_defaults(form: dict[str, Any]) -> dict[str, Any] | None:
    """The values of an approved form: defaults and switches; None if it needs more."""
    filled: dict[str, Any] = {}
    properties: dict[str, dict[str, Any]] = form.get("properties") or {}
    for name, schema in properties.items():
        if "default" in schema:
            filled[name] = schema["default"]
        elif schema.get("type") == "boolean":
            filled[name] = True
        elif name in (form.get("required") or ()):
            return None
    return filled


def _describe_waiting(servers: Sequence[ServerDefinition], root: str) -> str:
    names = ", ".join(repr(server.name) for server in servers)
    return (
        f"{servers[0].file}: the MCP servers {names} wait for approval. If you trust them, run "
        f"`handaxe trust {quote(root)}`, or name them in `enabledMcpjsonServers` of your own "
        "settings."
    )


def _make_file_name(server: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", server)[:80]
