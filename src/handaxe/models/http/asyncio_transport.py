"""Requests over asyncio and h11, with connections that are kept between requests."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from handaxe.models.http.transport import (
    ANSWER_TIMEOUT_S,
    CONNECT_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    HttpResponse,
    HttpTransport,
    TransportFailed,
)
from handaxe.net.tls import create_tls_context

if TYPE_CHECKING:
    from h11 import Request

    from handaxe.models.http.connection import HttpConnection, Origin

_MAX_IDLE = 8
_DRAIN_S = 2.0
"""How long the end of an answer may follow its last event."""
_AWAIT_DRAIN_S = 0.1
"""How long the next request waits for that; a new TLS connection takes several round trips."""


class DirectTransport(HttpTransport):
    """Connections of its own, one request at a time on each."""

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
    ) -> None:
        self._env = env
        self._connect_timeout_s = connect_timeout_s
        self._answer_timeout_s = answer_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._idle: list[HttpConnection] = []
        self._draining: dict[HttpConnection, asyncio.Task[None]] = {}
        self._tls: ssl.SSLContext | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send a request and wait for the head of the answer."""
        # h11 is loaded with the first request, not with the model.
        from handaxe.models.http.connection import build_request

        request = build_request(url, headers, body)
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        origin = (parts.scheme, parts.hostname or "", port)
        kept = self._take_idle(origin) or await self._wait_for_draining(origin)
        if kept is not None:
            try:
                return await self._send(kept, request, body)
            except TransportFailed as failed:
                # The server may have closed an idle connection meanwhile: try a new one.
                if failed.how == "timed_out" or kept.has_answered:
                    raise
        return await self._send(await self._connect(origin), request, body)

    def _take_idle(self, origin: "Origin") -> "HttpConnection | None":
        for connection in reversed([c for c in self._idle if c.origin == origin]):
            self._idle.remove(connection)
            if connection.is_usable:
                return connection
            connection.drop()
        return None

    async def _wait_for_draining(self, origin: "Origin") -> "HttpConnection | None":
        """A connection whose last answer is about to end."""
        ending = [task for busy, task in self._draining.items() if busy.origin == origin]
        if ending:
            await asyncio.wait(ending, timeout=_AWAIT_DRAIN_S, return_when=asyncio.FIRST_COMPLETED)
        return self._take_idle(origin) if ending else None

    async def _connect(self, origin: "Origin") -> "HttpConnection":
        from handaxe.models.http.connection import HttpConnection

        scheme, host, port = origin
        tls: dict[str, Any] = {}
        if scheme == "https":
            self._tls = self._tls or create_tls_context(self._env)
            tls = {"ssl": self._tls, "server_hostname": host}
        place = f"{scheme}://{host}:{port}"
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return HttpConnection(origin, *await asyncio.open_connection(host, port, **tls))
        except TimeoutError:
            sentence = f"No connection to {place} within {self._connect_timeout_s:g} s."
            raise TransportFailed("unreachable", sentence) from None
        except ssl.SSLError as error:
            raise TransportFailed(
                "unreachable",
                f"No trusted TLS connection to {place} ({error.reason or error}). If the server "
                "has a certificate of its own, name it in SSL_CERT_FILE.",
            ) from error
        except (OSError, UnicodeError) as error:
            # A name that cannot be looked up at all is a UnicodeError.
            reason = getattr(error, "strerror", None) or str(error)
            raise TransportFailed("unreachable", f"No connection to {place}: {reason}.") from error

    async def _send(
        self, connection: "HttpConnection", request: "Request", body: bytes
    ) -> HttpResponse:
        try:
            async with asyncio.timeout(self._answer_timeout_s):
                status, headers = await connection.send(request, body)
        except TimeoutError:
            connection.drop()
            sentence = f"The server sent nothing for {self._answer_timeout_s:g} s."
            raise TransportFailed("timed_out", sentence) from None
        except BaseException:
            connection.drop()
            raise
        return _DirectResponse(self, connection, status, headers, self._idle_timeout_s)

    def keep(self, connection: "HttpConnection") -> None:
        """Keep a connection whose answer was read to its end for the next request."""
        if len(self._idle) < _MAX_IDLE and connection.start_next_request():
            self._idle.append(connection)
        else:
            connection.drop()

    def drain(self, connection: "HttpConnection") -> None:
        """Read an answer to its end, in the background if need be, and keep the connection."""
        connection.skip_received()
        if connection.is_over:
            self.keep(connection)
        else:
            self._draining[connection] = asyncio.create_task(self._drain(connection))

    async def _drain(self, connection: "HttpConnection") -> None:
        try:
            async with asyncio.timeout(_DRAIN_S):
                while await connection.read_piece():
                    pass
        except (TimeoutError, TransportFailed):
            connection.drop()
        else:
            self.keep(connection)
        finally:
            self._draining.pop(connection, None)

    async def close(self) -> None:
        """Close all connections."""
        draining, self._draining = self._draining, {}
        for connection, task in draining.items():
            task.cancel()
            connection.drop()
        await asyncio.gather(*draining.values(), return_exceptions=True)
        while self._idle:
            self._idle.pop().drop()
        # A dropped connection is closed in the next round of the event loop.
        await asyncio.sleep(0)


class _DirectResponse(HttpResponse):
    def __init__(
        self,
        transport: DirectTransport,
        connection: "HttpConnection",
        status: int,
        headers: Mapping[str, str],
        idle_timeout_s: float,
    ) -> None:
        self.status = status
        self.headers = headers
        self._transport = transport
        self._connection: HttpConnection | None = connection
        self._idle_timeout_s = idle_timeout_s

    def stream_chunks(self) -> AsyncGenerator[bytes, None]:
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding in ("", "identity"):
            return self._stream_pieces()
        from handaxe.models.http.connection import decompress_stream

        return decompress_stream(self._stream_pieces(), encoding)

    async def _stream_pieces(self) -> AsyncGenerator[bytes, None]:
        while self._connection is not None:
            try:
                async with asyncio.timeout(self._idle_timeout_s):
                    piece = await self._connection.read_piece()
            except TimeoutError:
                await self.close()
                sentence = f"The stream paused for more than {self._idle_timeout_s:g} s."
                raise TransportFailed("timed_out", sentence) from None
            except TransportFailed:
                await self.close()
                raise
            if piece:
                yield piece
            else:
                connection, self._connection = self._connection, None
                self._transport.keep(connection)

    async def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._transport.drain(connection)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.drop()
