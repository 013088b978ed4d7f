"""The methods of the protocol on a stdio connection, in every revision."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from handaxe.frontends.mcp_server.jsonrpc import JsonRpcPeer, JsonRpcRequest, Result
from handaxe.frontends.mcp_server.protocol import (
    BATCH_REVISIONS,
    FETCHABLE,
    FETCHING,
    FIRST_LEVEL,
    HANDSHAKE_REVISIONS,
    INSTRUCTIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LOG_LEVELS,
    METHOD_NOT_FOUND,
    REPORT_LEVEL,
    REVISION_KEY,
    SERVER_INFO,
    Params,
    RpcError,
)
from handaxe.frontends.mcp_server.request_params import (
    can_show_forms,
    check_cursor,
    create_progress_reporter,
    is_logging_enabled,
)
from handaxe.frontends.mcp_server.server_session import CallChannel, ServerSession, SessionFactory
from handaxe.frontends.mcp_server.stdio_transport import StdioTransport
from handaxe.frontends.signals import SignalListener

if TYPE_CHECKING:
    from handaxe.frontends.mcp_server.handlers_stateless import StatelessHandlers


class RequestHandlers:
    """One client on one connection."""

    def __init__(self, peer: JsonRpcPeer, server_session: ServerSession) -> None:
        self._peer = peer
        self._server_session = server_session
        self._modern: StatelessHandlers | None = None
        self._revision: str | None = None
        self._capabilities: Params = {}
        self._level = FIRST_LEVEL
        self._methods: dict[str, Callable[[JsonRpcRequest], Result | Awaitable[Result]]] = {
            "ping": lambda _: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "logging/setLevel": self._set_level,
            **dict.fromkeys(FETCHING, self._fetch),
        }
        peer.on_request = self._on_request
        peer.on_notification = self._on_notification
        server_session.on_offer = self._on_offer
        server_session.on_warning = self._on_warning

    @property
    def is_listening(self) -> bool:
        """Whether the client wants notifications about changed tools."""
        return self._revision is not None or (
            self._modern is not None and self._modern.is_listening
        )

    def close(self) -> None:
        """Close the session of the client."""
        if self._modern is not None:
            self._modern.close()

    def _on_request(self, request: JsonRpcRequest) -> Result | Awaitable[Result]:
        if request.method == "initialize":
            return self._initialize(request.params)
        if REVISION_KEY in request.meta:
            return self._get_stateless().answer(request)
        if self._revision is None and request.method != "ping":
            if request.method not in self._methods:
                raise RpcError(METHOD_NOT_FOUND, f"There is no method {request.method!r}.")
            raise RpcError(
                INVALID_REQUEST,
                f"Send initialize first, or name a revision in `_meta` under {REVISION_KEY!r}.",
            )
        method = self._methods.get(request.method)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {request.method!r}.")
        return method(request)

    def _get_stateless(self) -> "StatelessHandlers":
        """The handler of revisions without a handshake, loaded on first use."""
        if self._modern is None:
            from handaxe.frontends.mcp_server.handlers_stateless import StatelessHandlers

            self._modern = StatelessHandlers(self._peer, self._server_session)
        return self._modern

    def _initialize(self, params: Params) -> Result:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "`protocolVersion` must be a string.")
        # Some clients send initialize twice on one connection: the last one counts.
        capabilities = params.get("capabilities")
        self._capabilities = cast("Params", capabilities) if isinstance(capabilities, dict) else {}
        self._revision = wanted if wanted in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[-1]
        self._peer.takes_batches = self._revision in BATCH_REVISIONS
        return {
            "protocolVersion": self._revision,
            "capabilities": {"tools": {"listChanged": True}, "logging": {}, **FETCHABLE},
            "serverInfo": SERVER_INFO,
            "instructions": INSTRUCTIONS,
        }

    def _on_notification(self, method: str, params: Params) -> None:  # noqa: ARG002 - none has any
        is_about_roots = method in {
            "notifications/initialized",
            "notifications/roots/list_changed",
        }
        if is_about_roots and isinstance(self._capabilities.get("roots"), dict):
            self._server_session.expect_roots(self._ask_roots())

    async def _ask_roots(self) -> list[str] | None:
        from handaxe.frontends.mcp_server.request_params import parse_roots

        try:
            return parse_roots(await self._peer.request("roots/list", {}))
        except RpcError as error:
            self._on_warning(f"The client did not name its roots ({error.message}).")
            return None

    async def _list_tools(self, request: JsonRpcRequest) -> Result:
        check_cursor(request.params)
        return {"tools": await self._server_session.tools()}

    async def _fetch(self, request: JsonRpcRequest) -> Result:
        check_cursor(request.params)
        return await self._server_session.fetch(request.method, request.params)

    async def _call_tool(self, request: JsonRpcRequest) -> Result:
        line = PeerCallChannel(
            self._peer,
            request,
            can_ask=can_show_forms(self._capabilities),
            log=self._log if is_logging_enabled(self._level) else None,
        )
        return await self._server_session.call(request.params, line, request.set_cancel_handler)

    def _set_level(self, request: JsonRpcRequest) -> Result:
        level = request.params.get("level")
        if level not in LOG_LEVELS:
            raise RpcError(INVALID_PARAMS, f"`level` must be one of {', '.join(LOG_LEVELS)}.")
        self._level = level
        return {}

    def _on_offer(self) -> None:
        if self._revision is not None:
            self._peer.notify("notifications/tools/list_changed")
        if self._modern is not None:
            self._modern.notify_tools_changed()

    def _on_warning(self, sentence: str) -> None:
        if self._revision is not None and _is_at_least("warning", self._level):
            told = {"level": "warning", "logger": "handaxe", "data": sentence}
            self._peer.notify("notifications/message", told)

    def _log(self, tool: str, text: str) -> None:
        told = {"level": REPORT_LEVEL, "logger": tool, "data": text}
        self._peer.notify("notifications/message", told)


def _is_at_least(level: str, wanted: str) -> bool:
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)


class PeerCallChannel(CallChannel):
    """Requests to the client in revisions where the server may send them."""

    def __init__(
        self,
        peer: JsonRpcPeer,
        request: JsonRpcRequest,
        *,
        can_ask: bool,
        log: Callable[[str, str], None] | None,
    ) -> None:
        self._peer = peer
        self._can_ask = can_ask
        self._progress = create_progress_reporter(peer, request)
        if self._progress is None and log is not None:
            self._progress = partial(log, str(request.params.get("name")))

    @property
    def can_ask(self) -> bool:
        """Whether the client declared that it can show forms."""
        return self._can_ask

    @property
    def wants_progress(self) -> bool:
        """Whether the client gave a progress token or reads the log."""
        return self._progress is not None

    async def ask(self, form: dict[str, Any]) -> object:
        """Show a form in the client."""
        return await self._peer.request("elicitation/create", form)

    def progress(self, text: str) -> None:
        """Report the progress of the call."""
        if self._progress is not None:
            self._progress(text)


GRACE_S = 1.5
"""Seconds for running calls after the client closed its side."""
LOOK_EVERY_S = 2.0
"""Seconds between checks for changed settings without calls."""


async def serve(
    blueprint: SessionFactory, source: int, sink: int, signals: SignalListener | None = None
) -> int | None:
    """Serve until the client disconnects or a signal comes, and return the signal."""
    ended = asyncio.Event()
    caught: list[int] = []

    def end_by(number: int) -> None:
        caught.append(number)
        ended.set()

    if signals is not None:
        signals.tell(end_by)
    pipes = StdioTransport(source, sink)
    peer = JsonRpcPeer(pipes.send)
    server_session = ServerSession(blueprint)
    conversation = RequestHandlers(peer, server_session)
    pipes.open(peer.receive, ended.set)
    looking = asyncio.ensure_future(_watch_settings(server_session, conversation))
    await ended.wait()
    looking.cancel()
    peer.leave()
    conversation.close()
    is_heard = not pipes.is_broken and not caught
    await peer.finish(GRACE_S if is_heard else 0)
    await server_session.close()
    if is_heard:
        await asyncio.wait([asyncio.ensure_future(pipes.drain())], timeout=GRACE_S)
    pipes.close()
    return caught[0] if caught else None


async def _watch_settings(server_session: ServerSession, conversation: RequestHandlers) -> None:
    """Check for changed settings without calls, to notify the client."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if conversation.is_listening:
            server_session.look()
