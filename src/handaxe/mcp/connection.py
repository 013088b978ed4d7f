"""One connection to one server, from start to end.

Everything runs in the task that calls `run`, as the SDK's streams require; requests come from other
tasks and end with the connection.
"""

import asyncio
import contextlib
import logging
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, cast

import httpx2
import mcp_types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from pydantic import FileUrl, ValidationError

from handaxe.config.mcp_definitions import HostConfig, RemoteConfig, ServerDefinition, StdioConfig
from handaxe.contract.ports.processes import Child, ChildProgram
from handaxe.mcp.client_context import ElicitationRequest, McpClientContext
from handaxe.mcp.discovery import McpClientSession
from handaxe.mcp.header_helper import HeaderHelperAuth, run_header_helper
from handaxe.mcp.http_transport import open_remote_streams
from handaxe.mcp.oauth_tokens import SHORT_OF_SCOPE, StoredTokenAuth
from handaxe.mcp.stdio_transport import open_child_streams
from handaxe.text.escape import strip_hidden

LAST_WORDS_CHARS = 600

_log = logging.getLogger("handaxe.mcp")
# The SDK's log messages are for those who enable them, not for every terminal.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class McpConnection:
    """A connected server."""

    def __init__(
        self,
        definition: ServerDefinition,
        context: McpClientContext,
        heard: Callable[[object], Awaitable[None]],
    ) -> None:
        self._definition = definition
        self._context = context
        self._heard = heard
        self._child: Child | None = None
        self._over = asyncio.Event()
        self.ended = asyncio.Event()
        self.why = ""
        """The problem, if any."""
        self._is_late = False
        self.wants_login = False
        self.is_locked_out = False
        """Whether the server rejected the credentials."""
        self.is_short_of_scope = False
        """Whether the last request needs more rights than the login has."""
        self.is_forgotten = False
        """Whether the server lost the session, as after a restart."""
        self.is_unreachable = False
        """Whether the last problem is that the server could not be reached."""

    async def run(
        self, start_s: float, ready: Callable[[McpClientSession], Awaitable[None]]
    ) -> None:
        """Connect within `start_s`, report that, and stay until the end."""
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(start_s):
                    reading, writing = await stack.enter_async_context(self._streams())
                    session = await stack.enter_async_context(self._session(reading, writing))
                    await _negotiate(session)
                    await ready(session)
                stack.callback(asyncio.ensure_future(self._listen(session)).cancel)
                await self._over.wait()
        except Exception as error:  # noqa: BLE001 - whatever a server does stays its own affair
            self._explain(error, start_s)
        finally:
            self.ended.set()

    def end(self) -> None:
        """End `run`."""
        self._over.set()

    @property
    def reason(self) -> str:
        """Why it ended, with the last output of a program."""
        code = self._child.exit_code if self._child is not None else None
        if code is None or self._is_late:
            told = self.why
        else:
            told = f"it ended with exit code {code}" if code >= 0 else f"signal {-code} ended it"
        words = self._child.read_stderr_tail(LAST_WORDS_CHARS) if self._child is not None else ""
        return f"{told}; its last output:\n{words}" if words else told

    def _session(self, reading: Any, writing: Any) -> McpClientSession:  # noqa: ANN401 - SDK streams
        return McpClientSession(
            JSONRPCDispatcher[Any](reading, writing),
            list_roots_callback=self._roots,
            elicitation_callback=self._handle_elicitation if self._context.elicit() else None,
            message_handler=self._handle_message,
            client_info=mcp_types.Implementation(name="handaxe", version=self._context.version),
        )

    @contextlib.asynccontextmanager
    async def _streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        config = self._definition.config
        if isinstance(config, StdioConfig):
            async with self._started(config) as child:
                spill = self._context.spill
                name = self._definition.name
                redactor = self._context.redactor
                async with open_child_streams(
                    child, lambda: spill(name), self.end, redactor
                ) as streams:
                    yield streams
        elif isinstance(config, RemoteConfig):
            async with open_remote_streams(
                config, self._refused, self._create_auth(config)
            ) as streams:
                yield streams
        else:
            assert isinstance(config, HostConfig)
            async with config.open() as streams:
                yield streams

    def _create_auth(self, config: RemoteConfig) -> httpx2.Auth | None:
        helper, name, context = config.headers_helper, self._definition.name, self._context
        if helper is None:
            if not config.has_login:
                return None
            return StoredTokenAuth(
                self._definition.login_key, context.logins, config, self._refused
            )
        return HeaderHelperAuth(lambda: run_header_helper(helper, name, config.url, context))

    @contextlib.asynccontextmanager
    async def _started(self, config: StdioConfig) -> AsyncGenerator[Child]:
        context, argv = self._context, (config.command, *config.args)
        program = ChildProgram(
            argv=(*context.prefix, shlex.join(argv)) if context.prefix else argv,
            cwd=context.cwd,
            env={**context.env, **config.env},
            log_path=context.log_path(self._definition.name),
        )
        child = self._child = await context.processes.start(program)
        try:
            yield child
        finally:
            # Whatever ends this task, the program has to be gone afterwards.
            stopping = asyncio.ensure_future(child.stop())
            while not stopping.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(stopping)

    async def _listen(self, session: McpClientSession) -> None:
        """Subscribe to changes if the server requires it."""
        tools = session.server_capabilities.tools if session.server_capabilities else None
        if session.discover_result is None or tools is None or not tools.list_changed:
            return
        with contextlib.suppress(MCPError, SubscriptionLost, TimeoutError):
            async with listen(session, tools_list_changed=True) as changes:
                async for _ in changes:
                    await self._heard(mcp_types.ToolListChangedNotification())

    async def _handle_message(self, message: IncomingMessage) -> None:
        await self._heard(message)

    def _explain(self, error: Exception, start_s: float) -> None:
        """Record an exception in readable form; groups by their members."""
        _log.debug("%s failed", self._definition.name, exc_info=error)
        while isinstance(error, ExceptionGroup):
            error = cast("ExceptionGroup[Exception]", error).exceptions[0]
        self._is_late = isinstance(error, TimeoutError)
        self.is_unreachable = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
        if self._is_late:
            self.why = f"it did not answer within {start_s:g} s"
        else:
            self.why = self._hide_query(strip_hidden(str(error), 500)) or type(error).__name__

    def _hide_query(self, text: str) -> str:
        """An address without its query, which may contain secrets."""
        config = self._definition.config
        if isinstance(config, RemoteConfig):
            text = text.replace(config.url, config.url.partition("?")[0])
        return text

    def _refused(self, response: httpx2.Response) -> None:
        status = response.status_code
        self.wants_login = self.wants_login or status != 404
        self.is_forgotten = self.is_forgotten or status == 404
        self.is_locked_out = self.is_locked_out or status == 401
        said = response.headers.get("www-authenticate", "")
        self.is_short_of_scope = status == 403 and SHORT_OF_SCOPE in said

    async def _roots(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK names it
    ) -> mcp_types.ListRootsResult:
        urls = [FileUrl(f"file://{_quote_path(path)}") for path in self._context.roots()]
        return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri=url) for url in urls])

    async def _handle_elicitation(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK names it
        params: mcp_types.ElicitRequestParams,
    ) -> mcp_types.ElicitResult:
        elicit = self._context.elicit()
        wanted = ElicitationRequest(strip_hidden(params.message, 2000))
        if isinstance(params, mcp_types.ElicitRequestFormParams):
            wanted = ElicitationRequest(wanted.message, dict(params.requested_schema))
        else:
            url = strip_hidden(params.url, 2000)
            wanted = ElicitationRequest(
                wanted.message, url=url, elicitation_id=params.elicitation_id
            )
        filled = await elicit(self._definition.name, wanted) if elicit else None
        if filled is None:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content=filled)


async def _negotiate(session: ClientSession) -> None:
    """The usual handshake, or the newer one if a server refuses it."""
    try:
        await session.initialize()
    except (MCPError, RuntimeError) as refusal:
        try:
            await session.discover()
        except (MCPError, RuntimeError, ValidationError):
            raise refusal from None


def _quote_path(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
