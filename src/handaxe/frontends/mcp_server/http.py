"""The server over streamable HTTP on loopback, on the official SDK.

Each client session has a session. Clients of revisions without sessions share up to two: one for
clients that can show forms, one for others.
"""

import asyncio
import socket
import time
from typing import Any, TypeAlias, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from handaxe.contract.faults import SetupError
from handaxe.frontends.mcp_server.auth import (
    LOOPBACK_NAMES,
    App,
    AuthMiddleware,
    Receive,
    Scope,
    Send,
)
from handaxe.frontends.mcp_server.handlers_stateless import (
    MultiRoundChannel,
    complete_result,
    mark_cacheable,
)
from handaxe.frontends.mcp_server.protocol import (
    CACHED,
    ENVELOPE_REVISIONS,
    FETCHING,
    FIRST_LEVEL,
    INSTRUCTIONS,
    INTERNAL_ERROR,
    REPORT_LEVEL,
    SERVER_INFO,
    RpcError,
)
from handaxe.frontends.mcp_server.request_params import (
    can_show_forms,
    check_cursor,
    is_logging_enabled,
    parse_roots,
)
from handaxe.frontends.mcp_server.server_session import CallChannel, ServerSession, SessionFactory
from handaxe.frontends.signals import handle_hangup

PATH = "/mcp"
IDLE_S = 30 * 60
"""Idle seconds until a client's session is closed."""
LOOK_EVERY_S = 2.0
MAX_BODY_BYTES = 32 << 20

_FETCH_PARAMS: dict[str, Any] = {
    "prompts/get": types.GetPromptRequestParams,
    "resources/read": types.ReadResourceRequestParams,
    "completion/complete": types.CompleteRequestParams,
}

Context: TypeAlias = ServerRequestContext[Any, Any]


class HttpSession:
    """The server session of one MCP session."""

    def __init__(self, blueprint: SessionFactory) -> None:
        self.server_session = ServerSession(blueprint)
        self.used_at = time.monotonic()
        self.wants_roots = True
        self.level = FIRST_LEVEL


class HttpSessions:
    """All clients of one HTTP server."""

    def __init__(self, blueprint: SessionFactory) -> None:
        self._blueprint = blueprint
        self._counters: dict[str, HttpSession] = {}
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self._telling: set[asyncio.Future[Any]] = set()

    def server(self) -> Server[Any]:
        """The SDK's server with the methods of handaxe."""
        server: Server[Any] = _ListChangedServer(
            SERVER_INFO["name"],
            version=SERVER_INFO["version"],
            title=SERVER_INFO["title"],
            instructions=INSTRUCTIONS,
            on_list_tools=cast("Any", self._list_tools),
            on_call_tool=cast("Any", self._call_tool),
            on_subscriptions_listen=self._listening,
        )
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        for method in FETCHING:
            kind = _FETCH_PARAMS.get(method, types.PaginatedRequestParams)
            server.add_request_handler(method, kind, self._create_fetcher(method))
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._handle_roots_changed
        )
        return server

    async def look(self) -> None:
        """Check for changed settings and idle sessions periodically."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            for name, counter in list(self._counters.items()):
                counter.server_session.look()
                if time.monotonic() - counter.used_at > IDLE_S:
                    await self.leave(name)

    async def leave(self, name: str) -> None:
        """Close the session of a client."""
        counter = self._counters.pop(name, None)
        if counter is not None:
            await counter.server_session.close()

    async def close(self) -> None:
        """End every session."""
        self._listening.close()
        for name in list(self._counters):
            await self.leave(name)

    def _counter(self, ctx: Context) -> HttpSession:
        name = ctx.request.headers.get("mcp-session-id", "") if ctx.request is not None else ""
        if ctx.protocol_version in ENVELOPE_REVISIONS:
            name = f"shared, {'asking' if _can_ask(ctx) else 'silent'}"
        counter = self._counters.get(name)
        if counter is None:
            counter = self._counters[name] = HttpSession(self._blueprint)
        counter.used_at = time.monotonic()
        if ctx.protocol_version in ENVELOPE_REVISIONS:
            counter.server_session.on_offer = lambda: self._tell(
                self._bus.publish(ToolsListChanged())
            )
        else:
            counter.server_session.on_offer = lambda: self._tell(
                ctx.session.send_tool_list_changed()
            )
        return counter

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        try:
            check_cursor({"cursor": params.cursor if params is not None else None})
            listed = {"tools": await self._counter(ctx).server_session.tools()}
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from None
        is_modern = ctx.protocol_version in ENVELOPE_REVISIONS
        return complete_result(mark_cacheable(listed)) if is_modern else listed

    def _create_fetcher(self, method: str) -> Any:  # noqa: ANN401 - a handler of the SDK's
        async def fetch(ctx: Context, params: Any) -> dict[str, Any]:  # noqa: ANN401 - by method
            given: dict[str, Any] = (
                params.model_dump(by_alias=True, mode="json", exclude_none=True) if params else {}
            )
            try:
                check_cursor(given)
                result = await self._counter(ctx).server_session.fetch(method, given)
            except RpcError as error:
                raise MCPError(error.code, error.message, error.data) from None
            if ctx.protocol_version not in ENVELOPE_REVISIONS:
                return result
            return complete_result(mark_cacheable(result) if method in CACHED else result)

        return fetch

    async def _call_tool(
        self,
        ctx: Context,
        params: types.CallToolRequestParams,
    ) -> dict[str, Any]:
        counter = self._counter(ctx)
        given = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            if ctx.protocol_version in ENVELOPE_REVISIONS:
                return await self._call_in_rounds(ctx, counter, given)
            return await self._call_asking(ctx, counter, given)
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from None

    async def _call_asking(self, ctx: Context, at: HttpSession, given: dict[str, Any]) -> Any:  # noqa: ANN401
        declared = ctx.session.client_capabilities
        if at.wants_roots and declared is not None and declared.roots is not None:
            at.server_session.expect_roots(_request_roots(ctx))
        at.wants_roots = False
        line = SdkCallChannel(ctx, log_for=given["name"] if is_logging_enabled(at.level) else None)
        try:
            return await at.server_session.call(given, line, lambda _: None)
        finally:
            await line.finish()

    async def _call_in_rounds(self, ctx: Context, at: HttpSession, given: dict[str, Any]) -> Any:  # noqa: ANN401
        told = SdkCallChannel(ctx)
        line = MultiRoundChannel(given, can_ask=_can_ask(ctx), progress=told.progress)
        try:
            result = await at.server_session.call(given, line, lambda _: None)
        finally:
            await told.finish()
        return complete_result(line.outcome(result))

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._counter(ctx).level = params.level
        return types.EmptyResult()

    async def _handle_roots_changed(self, ctx: Context, _: types.NotificationParams) -> None:
        # Ask with the next call: the question needs its response stream.
        self._counter(ctx).wants_roots = True

    def _tell(self, telling: Any) -> None:  # noqa: ANN401 - a coroutine of the SDK
        async def tell() -> None:
            try:
                await telling
            except MCPError:
                return

        task = asyncio.ensure_future(tell())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)


class SdkCallChannel(CallChannel):
    """Requests to the client through the SDK, on the stream of the call."""

    def __init__(self, ctx: Context, log_for: str | None = None) -> None:
        self._ctx = ctx
        has_token = ctx.meta is not None and "progress_token" in ctx.meta
        self._log_for = None if has_token else log_for
        """The tool whose progress goes to the log."""
        self._steps = 0
        self._told: asyncio.Queue[str | None] = asyncio.Queue()
        self._teller: asyncio.Future[None] | None = None

    @property
    def can_ask(self) -> bool:
        """Whether the client declared that it can show forms."""
        return _can_ask(self._ctx)

    @property
    def wants_progress(self) -> bool:
        """Whether the client may want progress; the SDK decides."""
        return True

    async def ask(self, form: dict[str, Any]) -> object:
        """Show a form in the client."""
        request = types.ElicitRequest(params=types.ElicitRequestFormParams.model_validate(form))
        try:
            answer = await self._ctx.session.send_request(
                request, types.ElicitResult, metadata=_build_metadata(self._ctx)
            )
        except MCPError as error:
            raise RpcError(INTERNAL_ERROR, error.error.message) from None
        return answer.model_dump(by_alias=True, mode="json")

    def progress(self, text: str) -> None:
        """Report the progress of the call."""
        self._told.put_nowait(text)
        if self._teller is None:
            self._teller = asyncio.ensure_future(self._tell())

    async def finish(self) -> None:
        """Deliver all progress before the result."""
        if self._teller is not None:
            self._told.put_nowait(None)
            await self._teller

    async def _tell(self) -> None:
        while (text := await self._told.get()) is not None:
            self._steps += 1
            if self._log_for is None:
                await self._ctx.session.report_progress(self._steps, message=text)
            else:
                await self._log(self._log_for, text)

    async def _log(self, tool: str, text: str) -> None:
        told = types.LoggingMessageNotificationParams(level=REPORT_LEVEL, logger=tool, data=text)
        await self._ctx.session.send_notification(
            types.LoggingMessageNotification(params=told), self._ctx.request_id
        )


class _ListChangedServer(Server[Any]):
    """The SDK's server, which declares that the list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """The options with `listChanged`."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def get_capabilities(self, *args: Any, **options: Any) -> types.ServerCapabilities:  # noqa: ANN401
        """The capabilities; only the list of tools may change."""
        found = super().get_capabilities(*args, **options)
        return found.model_copy(
            update={"prompts": types.PromptsCapability(), "resources": types.ResourcesCapability()}
        )


class _SessionDeleteMiddleware:
    """Reports when a client deletes its session."""

    def __init__(self, app: App, http_sessions: HttpSessions) -> None:
        self._app = app
        self._http_sessions = http_sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
        if scope["type"] == "http" and scope["method"] == "DELETE":
            for name, value in scope["headers"]:
                if name == b"mcp-session-id":
                    await self._http_sessions.leave(value.decode("latin-1"))


def build_app(http_sessions: HttpSessions, *, port: int, token: str | None) -> App:
    """The whole server as an ASGI application."""
    from mcp.server.transport_security import TransportSecuritySettings

    security = TransportSecuritySettings(
        allowed_hosts=[f"{name}:{port}" for name in LOOPBACK_NAMES],
        allowed_origins=[f"http://{name}:{port}" for name in LOOPBACK_NAMES],
    )
    app = http_sessions.server().streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        session_idle_timeout=IDLE_S,
        max_request_body_size=MAX_BODY_BYTES,
    )
    return AuthMiddleware(
        _SessionDeleteMiddleware(cast("App", app), http_sessions), port=port, token=token
    )


def bind(port: int) -> socket.socket:
    """A loopback socket; port 0 picks a free port."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise SetupError(f"Cannot use port {port} ({error}).") from None
    return listening


async def serve(
    blueprint: SessionFactory, listening: socket.socket, token: str | None
) -> int | None:
    """Serve until a signal comes and return it, unless uvicorn raises it again."""
    import uvicorn

    from handaxe.frontends.mcp_server.request_deadlines import DeadlineProtocol

    http_sessions = HttpSessions(blueprint)
    app = build_app(http_sessions, port=listening.getsockname()[1], token=token)
    config = uvicorn.Config(
        cast("Any", app),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        ws="none",
        http=DeadlineProtocol.create_for_server(),
    )
    server = uvicorn.Server(config)

    def leave() -> None:
        server.should_exit = True

    # uvicorn handles the other signals.
    with handle_hangup(leave) as heard:
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        looking = asyncio.ensure_future(http_sessions.look())
        try:
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            await serving
            looking.cancel()
            listening.close()
            await http_sessions.close()
    return heard[0] if heard else None


def _can_ask(ctx: Context) -> bool:
    declared = ctx.session.client_capabilities
    if declared is None:
        return False
    return can_show_forms(declared.model_dump(by_alias=True, mode="json", exclude_none=True))


async def _request_roots(ctx: Context) -> list[str] | None:
    try:
        answer = await ctx.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, metadata=_build_metadata(ctx)
        )
    except MCPError:
        return None
    return parse_roots(answer.model_dump(by_alias=True, mode="json"))


def _build_metadata(ctx: Context) -> ServerMessageMetadata:
    return ServerMessageMetadata(related_request_id=ctx.request_id)
