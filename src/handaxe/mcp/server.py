"""One server of a session: connected, reconnected, called, listed.

One task holds the connection. It reconnects a few times with growing pauses, then waits until the
server is needed.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from handaxe.config.mcp_definitions import RemoteConfig, ServerDefinition, StdioConfig
from handaxe.contract.faults.mcp import (
    ConnectionLost,
    NotConnected,
    ServerRefused,
    ServerTimedOut,
)
from handaxe.contract.ports.mcp_servers import ServerStatus
from handaxe.mcp.client_context import McpClientContext
from handaxe.text.escape import format_count

if TYPE_CHECKING:
    from handaxe.mcp.connection import McpConnection
    from handaxe.mcp.discovery import McpClientSession

R = TypeVar("R")
Request = Callable[["McpClientSession", Callable[[], None]], Awaitable[R]]
"""Sends a request in a session; the second argument is called on signs of progress."""

MAX_TRIES = 5
FIRST_PAUSE_S = 1.0
REASON_S = 1.0
"""How long a lost call waits for the reason."""
SETTLED_S = 30.0
"""After a connection of this duration, reconnect attempts start again at zero."""
FRESH_S = 1.0
"""A call does not retry a failure that is more recent than this."""


_SDK_PART = "handaxe.mcp.connection"


class McpTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts."""

    start_s: float = 30.0
    call_s: float = 100_000.0
    idle_stdio_s: float = 1800.0
    idle_remote_s: float = 300.0


class McpClient:
    """A server and its connection."""

    def __init__(
        self,
        definition: ServerDefinition,
        context: McpClientContext,
        limits: McpTimeouts,
        *,
        opened: Callable[["McpClient", "McpClientSession"], Awaitable[None]],
        heard: Callable[["McpClient", object], Awaitable[None]],
        changed: Callable[["McpClient"], None],
    ) -> None:
        self.definition = definition
        self.name = definition.name
        self.status: ServerStatus = "pending"
        self.error: str | None = None
        self.session: McpClientSession | None = None
        self._context = context
        self._limits = limits
        self._opened = opened
        self._heard = heard
        self._changed = changed
        self._keeper: asyncio.Task[None] | None = None
        self._connection: McpConnection | None = None
        self._wanted = asyncio.Event()
        self._news = asyncio.Event()
        self._attempts = 0
        self._has_stood = False
        self._asking = 0
        self._failed_at = 0.0
        self._is_closing = False
        self._abandoned: set[asyncio.Task[Any]] = set()

    def open(self) -> None:
        """Start to connect in the background."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name=f"mcp {self.name}")

    async def close(self) -> None:
        """End the connection and its processes."""
        self._is_closing = True
        for task in self._abandoned:
            task.cancel()
        if self._keeper is not None:
            if self._connection is not None:
                self._connection.end()
            self._wanted.set()
            _, late = await asyncio.wait([self._keeper], timeout=1.0)
            if late:
                # Still connecting, or slow to close: its program is ended in any case.
                self._keeper.cancel()
                await asyncio.wait([self._keeper])
        self.session = None
        self._news.set()

    async def reconnect(self) -> None:
        """Replace the connection; waits until it is open or failed."""
        before = self._attempts
        self._failed_at = 0.0
        self.open()
        if self._connection is not None:
            self._connection.end()
        self._wanted.set()
        while not self._is_closing and (self._attempts == before or self.status == "pending"):
            await self._wait_for_change()

    @property
    def may_be_tried_again(self) -> bool:
        """Whether it has failed, and not just now."""
        return self.status == "failed" and time.monotonic() - self._failed_at >= FRESH_S

    async def settled(self) -> None:
        """Wait for the result of the first attempt to connect."""
        while self._keeper is not None and self._attempts == 0 and not self._is_closing:
            await self._wait_for_change()

    async def ask(self, request: Request[R], *, timeout_s: float | None = None) -> R:
        """The answer to a request, with a new connection if necessary; raises a fault otherwise."""
        session = await self._live()
        try:
            return await self._answered(session, request, timeout_s)
        except _RequestNotSent:
            # Nothing reached the server, so asking again is not asking twice.
            self.drop()
            session = await self._live()
            try:
                return await self._answered(session, request, timeout_s)
            except _RequestNotSent as error:
                raise NotConnected(server=self.name, reason=str(error)) from None

    def drop(self) -> None:
        """Drop a broken connection."""
        self.session = None
        if self._connection is not None:
            self._connection.end()

    async def _live(self) -> "McpClientSession":
        if self.session is not None:
            return self.session
        if self.status in {"failed", "needs-auth"} and time.monotonic() - self._failed_at < FRESH_S:
            raise NotConnected(server=self.name, reason=self.error or "it failed a moment ago")
        before = self._attempts
        self.open()
        self._wanted.set()
        try:
            async with asyncio.timeout(self._limits.start_s):
                while self.session is None:
                    if self._is_closing or (self._attempts > before and self.error is not None):
                        raise NotConnected(
                            server=self.name, reason=self.error or "the session is closing"
                        )
                    await self._wait_for_change()
        except TimeoutError:
            reason = f"it is not ready after {self._limits.start_s:g} s"
            raise NotConnected(server=self.name, reason=reason) from None
        return self.session

    async def _answered(
        self, session: "McpClientSession", request: Request[R], timeout_s: float | None
    ) -> R:
        total_s = timeout_s or self.definition.timeout_s or self._limits.call_s
        is_program = isinstance(self.definition.config, StdioConfig)
        idle_s = self._limits.idle_stdio_s if is_program else self._limits.idle_remote_s
        ends_at = asyncio.get_running_loop().time() + total_s
        limit = asyncio.timeout(min(total_s, idle_s))

        def alive() -> None:
            if not limit.expired():
                limit.reschedule(min(ends_at, asyncio.get_running_loop().time() + idle_s))

        # A task of its own: who gives up waiting does not wait for the farewell either.
        asking = asyncio.ensure_future(request(session, alive))
        self._asking += 1
        try:
            async with limit:
                await asyncio.wait([asking])
            return await self._outcome(asking)
        except TimeoutError:
            raise ServerTimedOut(server=self.name, timeout_s=min(total_s, idle_s)) from None
        finally:
            self._asking -= 1
            if not asking.done():
                asking.cancel()
                self._abandoned.add(asking)
                asking.add_done_callback(self._abandoned.discard)

    async def _outcome(self, asked: "asyncio.Future[R]") -> R:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED
        from pydantic import ValidationError

        from handaxe.mcp.errors import is_too_large, to_tool_fault

        connection = self._connection
        try:
            return asked.result()
        except asyncio.CancelledError:
            raise await self._lost() from None
        except MCPError as error:
            if connection is not None and connection.is_forgotten:
                raise _RequestNotSent("it has lost this session") from None
            if connection is not None and connection.is_locked_out:
                self.drop()
                raise NotConnected(
                    server=self.name, reason=self._explain_login("it was refused")
                ) from None
            if connection is not None and connection.is_short_of_scope:
                connection.is_short_of_scope = False
                raise ServerRefused(
                    server=self.name, reason=self._explain_login("rights are missing")
                ) from None
            if error.code == CONNECTION_CLOSED and not is_too_large(error):
                raise await self._lost() from None
            raise to_tool_fault(self.name, error) from None
        except ValidationError as error:
            mistakes = format_count(error.error_count(), "mistake")
            reason = f"its answer does not follow the protocol ({mistakes})"
            raise ServerRefused(server=self.name, reason=reason) from None

    async def _lost(self) -> Exception:
        """Why a request got no answer, as soon as that is known."""
        connection, was_alone = self._connection, self._asking == 1
        self.drop()
        reason = ""
        if connection is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(REASON_S):
                    await connection.ended.wait()
            reason = connection.reason
            if connection.is_unreachable and was_alone:
                return _RequestNotSent(reason)
        return ConnectionLost(server=self.name, reason=reason or "the connection was closed")

    async def _keep(self) -> None:
        """Connect, stay connected, reconnect, until the end."""
        tries = 0
        while not self._is_closing:
            self._wanted.clear()
            began = time.monotonic()
            was_connected = await self._once()
            if self._is_closing:
                break
            tries = 1 if was_connected and time.monotonic() - began > SETTLED_S else tries + 1
            is_over = tries >= self._get_max_tries() or self.status == "needs-auth"
            if is_over and self.session is None:
                if self.status == "pending":
                    self._become("failed", self.error or "its connection is lost again and again")
                await self._wanted.wait()
                tries = 0
                continue
            await self._pause(FIRST_PAUSE_S * 2 ** (tries - 1))

    def _get_max_tries(self) -> int:
        if self._has_stood:
            return MAX_TRIES
        # What could not be started at all is not there, or broken; a network may be just away.
        return 1 if isinstance(self.definition.config, StdioConfig) else 3

    async def _pause(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._wanted.wait()
        except TimeoutError:
            return

    async def _once(self) -> bool:
        """Run one connection from start to end and return whether it was ever open."""
        try:
            connection_type = await _load_sdk()
        except ImportError:
            self._attempts += 1
            self._fail("the MCP client is not installed: pip install 'handaxe[mcp]'")
            return False
        connection = connection_type(self.definition, self._context, self._on_message)
        self._connection = connection
        stood = False

        async def ready(session: "McpClientSession") -> None:
            nonlocal stood
            await self._opened(self, session)
            stood = self._has_stood = True
            self.session = session
            self._attempts += 1
            self._become("connected", None)

        await connection.run(self._limits.start_s, ready)
        self.session = None
        if self._is_closing:
            return stood
        reason = connection.reason
        if connection.is_locked_out:
            self._attempts += not stood
            self._fail(reason or "it was refused", needs_login=True)
        elif stood:
            self._become("pending", reason or "the connection was closed")
        else:
            self._attempts += 1
            self._fail(reason or "it did not answer", needs_login=connection.wants_login)
        return stood

    def _fail(self, reason: str, *, needs_login: bool = False) -> None:
        self._failed_at = time.monotonic()
        if needs_login:
            self._become("needs-auth", self._explain_login(reason))
        else:
            self._become("failed", reason)

    async def notify_roots_changed(self) -> None:
        """Report changed working directories; later connections request them."""
        from mcp_types import RootsListChangedNotification

        if self.session is not None:
            await self.session.send_notification(RootsListChangedNotification())

    def _explain_login(self, reason: str) -> str:
        """The action that the user must take."""
        config = self.definition.config
        if isinstance(config, RemoteConfig) and config.has_login:
            return f"it requires a login ({reason}): run `handaxe mcp login {quote(self.name)}`"
        return f"it requires a login ({reason}); set its headers"

    def _become(self, status: ServerStatus, error: str | None) -> None:
        self.status, self.error = status, error
        self._changed(self)
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _wait_for_change(self) -> None:
        if not self._is_closing:
            await self._news.wait()

    async def _on_message(self, message: object) -> None:
        await self._heard(self, message)


class _RequestNotSent(Exception):
    """The request never reached the server."""


async def _load_sdk() -> "type[McpConnection]":
    """Load the part that needs the SDK, in a daemon thread."""
    if _SDK_PART not in sys.modules:
        loop = asyncio.get_running_loop()
        loaded: asyncio.Future[None] = loop.create_future()

        def load() -> None:
            with suppress(ImportError):
                import_module(_SDK_PART)
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: loaded.done() or loaded.set_result(None))

        threading.Thread(target=load, name="handaxe mcp", daemon=True).start()
        await loaded
    return import_module(_SDK_PART).McpConnection
