"""HTTP/1.1 over asyncio.

A small part of httpx2's start-up time (bench/model_start.py), and model servers need no more than
this: one POST at a time per connection, a streamed answer, connections kept for the next turn.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from handaxe.contract.faults import SetupError
from handaxe.models.http.http11 import BadResponse, ResponseHead, ResponseParser, post_request
from handaxe.models.http.transport import (
    ANSWER_TIMEOUT_S,
    CONNECT_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    HttpResponse,
    HttpTransport,
    TransportFailed,
    create_tls_context,
)

_READ_BYTES = 64 * 1024
_MAX_IDLE = 8
_DRAIN_S = 2.0
"""How long the end of an answer may follow its last event."""
_AWAIT_DRAIN_S = 0.1
"""How long the next request waits for that; a new connection takes several ways to the server."""

_Origin = tuple[str, str, int]


class DirectTransport(HttpTransport):
    """Own connections, one request at a time on each."""

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
        self._idle: list[_Connection] = []
        self._tls: ssl.SSLContext | None = None
        self._draining: dict[_Connection, asyncio.Task[None]] = {}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send a request and wait for the head of the answer."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        origin = (parts.scheme, parts.hostname or "", port)
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        head = {"host": parts.netloc.rpartition("@")[2], "content-length": str(len(body))}
        try:
            request = post_request(target, (*head.items(), *headers.items()), body)
        except ValueError as error:
            raise SetupError(f"No request can be made to {url}. {error}") from None
        kept = self._kept(origin) or await self._reuse_draining(origin)
        if kept is not None:
            try:
                return await self._ask(kept, request)
            except TransportFailed as failed:
                # The server may have closed it while nobody looked: a new one will tell.
                if failed.how == "timed_out" or kept.has_answered:
                    raise
        return await self._ask(await self._connect(origin), request)

    def _kept(self, origin: _Origin) -> "_Connection | None":
        for connection in reversed(self._idle):
            if connection.origin == origin:
                self._idle.remove(connection)
                if connection.is_usable:
                    return connection
                connection.drop()
                return self._kept(origin)
        return None

    async def _reuse_draining(self, origin: _Origin) -> "_Connection | None":
        """A connection whose last answer is just about to end."""
        ending = [task for busy, task in self._draining.items() if busy.origin == origin]
        if not ending:
            return None
        await asyncio.wait(ending, timeout=_AWAIT_DRAIN_S, return_when=asyncio.FIRST_COMPLETED)
        return self._kept(origin)

    async def _connect(self, origin: _Origin) -> "_Connection":
        scheme, host, port = origin
        tls: dict[str, Any] = {}
        if scheme == "https":
            self._tls = self._tls or create_tls_context(self._env)
            tls = {"ssl": self._tls, "server_hostname": host}
        place = f"{scheme}://{host}:{port}"
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                reader, writer = await asyncio.open_connection(host, port, **tls)
        except TimeoutError:
            sentence = f"No connection to {place} within {self._connect_timeout_s:g} s."
            raise TransportFailed("unreachable", sentence) from None
        except ssl.SSLError as error:
            sentence = f"{place} did not prove who it is ({error.reason or error})."
            raise TransportFailed("unreachable", sentence) from error
        except (OSError, UnicodeError) as error:
            # A name that no name server can be asked for is a UnicodeError.
            reason = getattr(error, "strerror", None) or str(error)
            raise TransportFailed("unreachable", f"No connection to {place}: {reason}.") from error
        return _Connection(origin, reader, writer)

    async def _ask(self, connection: "_Connection", request: bytes) -> HttpResponse:
        try:
            async with asyncio.timeout(self._answer_timeout_s):
                head = await connection.ask(request)
        except TimeoutError:
            connection.drop()
            sentence = f"The server sent nothing for {self._answer_timeout_s:g} s."
            raise TransportFailed("timed_out", sentence) from None
        except BaseException:
            connection.drop()
            raise
        return _DirectAnswer(self, connection, head, self._idle_timeout_s)

    def take_back(self, connection: "_Connection") -> None:
        """Keep a connection whose answer was read to its end for the next request."""
        if connection.can_go_on() and len(self._idle) < _MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.drop()

    def drain(self, connection: "_Connection") -> None:
        """Read to the end of an answer, in the background if need be, and keep the connection."""
        if connection.is_over():
            self.take_back(connection)
        else:
            self._draining[connection] = asyncio.create_task(self._drain(connection))

    async def _drain(self, connection: "_Connection") -> None:
        try:
            async with asyncio.timeout(_DRAIN_S):
                await connection.skip_rest()
        except (TimeoutError, TransportFailed):
            connection.drop()
        else:
            self.take_back(connection)
        finally:
            self._draining.pop(connection, None)

    async def close(self) -> None:
        """Let go of open connections."""
        draining, self._draining = self._draining, {}
        for connection, task in draining.items():
            task.cancel()
            connection.drop()
        await asyncio.gather(*draining.values(), return_exceptions=True)
        while self._idle:
            self._idle.pop().drop()
        # A dropped connection is closed in the next round of the event loop.
        await asyncio.sleep(0)


class _Connection:
    """One TCP connection and the answers on it."""

    def __init__(
        self, origin: _Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.origin = origin
        self.has_answered = False
        """Whether anything came back for the last request."""
        self._reader = reader
        self._writer = writer
        self._parser = ResponseParser()

    @property
    def is_usable(self) -> bool:
        """Whether the other side has kept it open, as far as one can know."""
        return not self._reader.at_eof() and not self._writer.transport.is_closing()

    async def ask(self, request: bytes) -> ResponseHead:
        """Send a request; the head of its answer."""
        self.has_answered = False
        try:
            self._writer.write(request)
            await self._writer.drain()
        except OSError as error:
            raise TransportFailed("unreachable", f"The connection broke: {error}.") from error
        with _convert_errors():
            while (head := self._parser.head()) is None:
                await self._read()
        return head

    async def read_piece(self) -> bytes:
        """The next piece of the body; empty at its end."""
        with _convert_errors():
            while not (piece := self._parser.body()) and not self._parser.is_over:
                await self._read()
        return piece

    async def _read(self) -> None:
        chunk = await self._reader.read(_READ_BYTES)
        self.has_answered = self.has_answered or bool(chunk)
        self._parser.feed(chunk)

    def is_over(self) -> bool:
        """Whether the end of the answer has come already; what is left before it is skipped."""
        with suppress(BadResponse):
            self._parser.body()
        return self._parser.is_over

    async def skip_rest(self) -> None:
        """Read on until the answer is over."""
        while await self.read_piece():
            pass

    def can_go_on(self) -> bool:
        """Whether another request may follow; if so, it is ready for one."""
        return self._parser.start_next_response() and self.is_usable

    def drop(self) -> None:
        """Close it at once."""
        self._writer.transport.abort()


@contextmanager
def _convert_errors() -> Generator[None]:
    """What goes wrong while an answer comes in, as a failure of the wire."""
    try:
        yield
    except BadResponse as error:
        sentence = f"The server's answer cannot be read: {error}."
        raise TransportFailed("broken_stream", sentence) from error
    except OSError as error:
        raise TransportFailed("broken_stream", f"The connection broke: {error}.") from error


class _DirectAnswer(HttpResponse):
    def __init__(
        self,
        wire: DirectTransport,
        connection: _Connection,
        head: ResponseHead,
        idle_timeout_s: float,
    ) -> None:
        self.status = head.status
        self.headers = head.headers
        self._wire = wire
        self._connection: _Connection | None = connection
        self._idle_timeout_s = idle_timeout_s

    def stream_chunks(self) -> AsyncGenerator[bytes, None]:
        pieces = self._pieces()
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding in ("", "identity"):
            return pieces
        from handaxe.models.http.http11 import decompress_stream

        return decompress_stream(pieces, encoding)

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
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
                self._wire.take_back(connection)

    async def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._wire.drain(connection)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.drop()
