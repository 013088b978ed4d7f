"""All servers of a session: their current tools, resources and prompts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from handaxe.config.mcp_definitions import ApprovedServer, RemoteConfig, ServerDefinition
from handaxe.contract.decision import ToolDefinition
from handaxe.contract.faults import ToolFault
from handaxe.contract.faults.mcp import LoginFailed, NotConnected, ServerRefused, UnknownServer
from handaxe.contract.ports.mcp_servers import (
    LOGIN_WAIT_S,
    McpContent,
    McpPrompt,
    McpResource,
    McpServer,
    McpServers,
)
from handaxe.contract.ports.result_store import ResultStore
from handaxe.contract.result import ToolResult
from handaxe.mcp.client_context import McpClientContext
from handaxe.mcp.remote_tool import (
    DEFAULT_RESULT_CHARS,
    RemoteTool,
    RemoteToolCatalog,
    build_tool_name,
)
from handaxe.mcp.server import McpClient, McpTimeouts
from handaxe.schema.repair import MAX_DOC_CHARS
from handaxe.text.escape import strip_hidden

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from handaxe.mcp.discovery import Entry, Listed, McpClientSession

REFRESH_PAUSE_S = 0.05
"""Changes within this time cause one refresh."""

SWITCHED_OFF = "it was turned off for this session"

_log = logging.getLogger("handaxe.mcp")

Lost = tuple[ServerDefinition, str]
"""A server that may not start, and why."""


class DebouncedTasks:
    """Runs background work once for a burst of requests."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def schedule(self, key: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run work in the background; a request for waiting work is ignored."""
        if key in self._waiting:
            return
        self._waiting.add(key)
        earlier = self._tasks.get(key)

        async def do() -> None:
            await asyncio.sleep(REFRESH_PAUSE_S)
            if earlier is not None and not earlier.done():
                await asyncio.wait([earlier])
            self._waiting.discard(key)
            await work()

        self._tasks[key] = asyncio.create_task(do())

    def cancel(self) -> None:
        """Cancel all work."""
        for task in self._tasks.values():
            task.cancel()


class ConnectedServers(McpServers):
    """The servers that may start, and those that may not."""

    def __init__(
        self,
        definitions: Iterable[ApprovedServer],
        context: McpClientContext,
        *,
        limits: McpTimeouts,
        results: ResultStore,
        offer: Callable[[str, list[RemoteTool]], None],
        changed: Callable[[McpServer], None],
        result_chars: int = DEFAULT_RESULT_CHARS,
    ) -> None:
        self._context = context
        self._limits = limits
        self._results = results
        self._offer = offer
        self._changed = changed
        self._tools = RemoteToolCatalog(result_chars)
        self._refreshing = DebouncedTasks()
        self._disabled: dict[str, Lost] = {}
        self._servers: dict[str, McpClient] = {}
        for definition in sorted(definitions, key=lambda one: one.name):
            self.add(definition)

    def add(self, definition: ApprovedServer) -> None:
        """Add a server without connecting it."""
        self._disabled.pop(definition.name, None)
        self._servers[definition.name] = McpClient(
            definition,
            self._context,
            self._limits,
            opened=self._opened,
            heard=self._heard,
            changed=self._tell,
        )

    def disable(self, definition: ServerDefinition, reason: str) -> None:
        """List a server that may not start."""
        self._disabled[definition.name] = (definition, reason)

    def open(self) -> None:
        """Connect all of them in the background."""
        for server in self._servers.values():
            server.open()

    async def close(self) -> None:
        """Close all connections in parallel."""
        self._refreshing.cancel()
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def status(self) -> tuple[McpServer, ...]:
        """The status of every server, by name."""
        shown = {name: self._status(server) for name, server in self._servers.items()}
        for name, (definition, reason) in self._disabled.items():
            shown[name] = McpServer(
                name=name,
                status="disabled",
                error=reason,
                config=definition.shown,
                scope=definition.scope,
            )
        return tuple(shown[name] for name in sorted(shown))

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Every available tool, in the form to which approvals are bound."""
        return self._tools.definitions()

    async def settled(self, server: str | None = None) -> None:
        """Wait once for the first connection attempts."""
        self.open()
        waited = [s for name, s in self._servers.items() if server in {None, name}]
        await asyncio.gather(*(one.settled() for one in waited))

    async def tried(self, server: str) -> None:
        """Wait for a server's connection attempt; a failed one is tried once more."""
        self.open()
        one = self._servers[server]
        await (one.reconnect() if one.may_be_tried_again else one.settled())

    def server_of(self, tool: str) -> str | None:
        """The server that a tool's name belongs to, even if the tool is not known yet."""
        fitting = [n for n in self._servers if tool.startswith(build_tool_name(n, "x")[:-1])]
        return max(fitting, key=len, default=None)

    async def resources(self, server: str | None = None) -> tuple[McpResource, ...]:
        """The resources of servers."""
        if server is not None:
            return tuple(await _list_resources(self._find(server)))
        await self.settled()
        found: list[McpResource] = []
        for one in self._servers.values():
            if one.status == "connected":
                try:
                    found += await _list_resources(one)
                except ToolFault as fault:
                    _log.debug("no resources of %s", one.name, exc_info=fault)
        return tuple(found)

    async def read(self, server: str, uri: str, call_id: str) -> tuple[McpContent, ...]:
        """A resource; bytes are saved under the call's name."""
        answer = await self._find(server).ask(lambda session, _: session.read_resource(uri))
        from handaxe.mcp.results import convert_resource

        return await asyncio.to_thread(convert_resource, answer, self._keep(call_id))

    async def prompts(self) -> tuple[McpPrompt, ...]:
        """Every available prompt."""
        found: list[McpPrompt] = []
        for server in self._servers.values():
            if server.session is None:
                continue
            from handaxe.mcp.discovery import parse_prompt

            for entry in await _list_entries(server, "prompts"):
                name = build_tool_name(server.name, entry["name"])
                found.append(parse_prompt(server.name, name, entry))
        return tuple(sorted(found, key=lambda prompt: prompt.name))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """A filled-in prompt as one text."""
        owner = self.server_of(name)
        server = self._find(owner or name)
        for prompt in await _list_entries(server, "prompts"):
            if build_tool_name(server.name, prompt["name"]) == name:
                remote = prompt["name"]
                break
        else:
            raise ServerRefused(server=server.name, reason=f"it has no prompt {name!r}")
        answer = await server.ask(lambda session, _: session.get_prompt(remote, arguments))
        from handaxe.mcp.results import format_prompt

        return format_prompt(answer, server.name, self._keep(name))

    async def call_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a server's tool by its own name."""
        return await self.call(self._find(server), tool, arguments, f"hook_{tool}", lambda _: None)

    async def reconnect(self, server: str) -> None:
        """Replace a server's connection."""
        one = self._find(server)
        await one.reconnect()
        if one.session is None:
            raise NotConnected(server=server, reason=one.error or "it could not be reached")

    async def switch(self, server: str, *, on: bool) -> None:
        """Stop a server, or start it again."""
        if on and self._disabled.get(server, (None, ""))[1] == SWITCHED_OFF:
            # It ran before, so it is approved.
            self.add(ApprovedServer(self._disabled[server][0]))
            self._servers[server].open()
            await self._servers[server].settled()
            return
        one = self._find(server)
        if on:
            return
        del self._servers[server]
        self.disable(one.definition, SWITCHED_OFF)
        await one.close()
        self._tools.drop_tools(server)
        self._offer(server, [])
        self._changed(next(row for row in self.status() if row.name == server))

    async def login(
        self,
        server: str,
        show: Callable[[str], Awaitable[None]],
        *,
        client_secret: str | None = None,
        wait_s: float = LOGIN_WAIT_S,
    ) -> None:
        """Log in at a server; sessions use the tokens from then on."""
        from handaxe.mcp.oauth_login import OAuthLoginFailed, log_in

        definition = self._definition(server)
        config, key = definition.config, definition.login_key
        if server in self._disabled:
            raise LoginFailed(
                server=server, reason=f"it does not start: {self._disabled[server][1]}."
            )
        if not isinstance(config, RemoteConfig):
            raise LoginFailed(
                server=server, reason="it has no address, so there is nothing to log in to."
            )
        if not config.has_login:
            raise LoginFailed(
                server=server,
                reason="its `headers` or `headersHelper` already contain credentials.",
            )
        logins = self._context.logins
        known = logins.read(key)
        try:
            made = await log_in(config, known, show, client_secret=client_secret, wait_s=wait_s)
        except OAuthLoginFailed as why:
            raise LoginFailed(server=server, reason=f"{why}.") from None
        async with logins.alone(key):
            await logins.write(key, made)

    async def logout(self, server: str) -> bool:
        """Remove a login."""
        from handaxe.mcp.oauth_tokens import log_out

        return await log_out(self._definition(server), self._context.logins)

    async def call(
        self,
        server: McpClient,
        tool: str,
        arguments: dict[str, Any],
        call_id: str,
        report: Callable[[str], None],
    ) -> ToolResult:
        """Run a server's tool."""

        async def request(
            session: "McpClientSession", alive: Callable[[], None]
        ) -> "CallToolResult":
            from handaxe.mcp.multi_round import call_multi_round

            async def progressed(progress: float, total: float | None, message: str | None) -> None:
                alive()
                count = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
                report(f"{count} {message}" if message else count)

            return await call_multi_round(session, tool, arguments, progressed)

        answer = await server.ask(request)
        from handaxe.mcp.results import convert_tool_result

        return await asyncio.to_thread(
            convert_tool_result, answer, server.name, self._keep(call_id)
        )

    def roots_changed(self) -> None:
        """Report changed working directories to every server."""
        for server in self._servers.values():
            self._refreshing.schedule(f"roots {server.name}", server.notify_roots_changed)

    def _definition(self, name: str) -> ServerDefinition:
        return self._disabled[name][0] if name in self._disabled else self._find(name).definition

    def _find(self, name: str) -> McpClient:
        if name in self._disabled:
            raise NotConnected(server=name, reason=self._disabled[name][1])
        if name not in self._servers:
            raise UnknownServer(name, sorted(self._servers))
        return self._servers[name]

    def _keep(self, call_id: str) -> Callable[[bytes, str], str]:
        return lambda content, suffix: self._results.keep_bytes(call_id, content, suffix)

    async def _opened(self, server: McpClient, session: "McpClientSession") -> None:
        """A connection is open: load what the server offers."""
        self._take_tools(server, await session.listed("tools"))

    async def _heard(self, server: McpClient, message: object) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._refreshing.schedule(f"tools {server.name}", lambda: self._refresh(server))

    async def _refresh(self, server: McpClient) -> None:
        """Load the tools again; on failure the old ones stay."""
        try:
            listed = await server.ask(
                lambda session, _: session.listed("tools"), timeout_s=self._limits.start_s
            )
        except ToolFault as fault:
            _log.debug("the tools of %s are unchanged", server.name, exc_info=fault)
            return
        self._take_tools(server, listed)
        self._tell(server)

    def _take_tools(self, server: McpClient, listed: "list[Entry]") -> None:
        reached = self._context.redactor.redact(str(server.definition.shown))
        tools = self._tools.replace_tools(
            server.definition, listed, reached, partial(self.call, server)
        )
        self._offer(server.name, tools)

    def _status(self, server: McpClient) -> McpServer:
        session = server.session
        info = session.server_info if session is not None else None
        instructions = (session.instructions if session is not None else None) or ""
        return McpServer(
            name=server.name,
            status=server.status,
            error=server.error,
            server_info={"name": info.name, "version": info.version} if info else None,
            config=server.definition.shown,
            scope=server.definition.scope,
            tools=tuple(tool.status() for tool in self._tools.list_tools(server.name)),
            instructions=strip_hidden(instructions, MAX_DOC_CHARS) or None,
            log_path=self._context.log_path(server.name),
        )

    def _tell(self, server: McpClient) -> None:
        self._changed(self._status(server))


async def _list_resources(server: McpClient) -> list[McpResource]:
    entries = await _list_entries(server, "resources")
    from handaxe.mcp.discovery import parse_resource

    found = (parse_resource(server.name, entry) for entry in entries)
    return [resource for resource in found if resource is not None]


async def _list_entries(server: McpClient, what: "Listed") -> "list[Entry]":
    return await server.ask(lambda session, _: session.listed(what))
