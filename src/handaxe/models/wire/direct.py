"""HTTP/1.1 over asyncio and h11.

A tenth of httpx2's start-up time (bench/model_start.py), and model servers need no more than
this: one POST at a time per connection, a streamed answer, connections kept for the next turn.
"""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from handaxe.models.wire import (
    ANSWER_TIMEOUT_S,
    CONNECT_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    Answer,
    Wire,
    WireFailed,
)

if TYPE_CHECKING:
    import h11

_READ_BYTES = 64 * 1024
_MAX_IDLE = 8
_DRAIN_S = 2.0
"""How long the end of an answer may follow its last event."""

_Origin = tuple[str, str, int]


class DirectWire(Wire):
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

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send a request and wait for the head of the answer."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        origin = (parts.scheme, parts.hostname or "", port)
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        head = {"host": parts.netloc.rpartition("@")[2], "content-length": str(len(body))}
        fields = [*head.items(), *headers.items()]
        kept = self._kept(origin)
        if kept is not None:
            try:
                return await self._ask(kept, target, fields, body)
            except WireFailed as failed:
                # The server may have closed it while nobody looked: a new one will tell.
                if failed.how == "timed_out" or kept.has_answered:
                    raise
        return await self._ask(await self._connect(origin), target, fields, body)

    def _kept(self, origin: _Origin) -> "_Connection | None":
        for connection in reversed(self._idle):
            if connection.origin == origin:
                self._idle.remove(connection)
                if connection.is_usable:
                    return connection
                connection.drop()
                return self._kept(origin)
        return None

    async def _connect(self, origin: _Origin) -> "_Connection":
        scheme, host, port = origin
        tls: dict[str, Any] = {}
        if scheme == "https":
            self._tls = self._tls or _tls_context(self._env)
            tls = {"ssl": self._tls, "server_hostname": host}
        place = f"{scheme}://{host}:{port}"
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                reader, writer = await asyncio.open_connection(host, port, **tls)
        except TimeoutError:
            sentence = f"No connection to {place} within {self._connect_timeout_s:g} s."
            raise WireFailed("unreachable", sentence) from None
        except ssl.SSLError as error:
            sentence = f"{place} did not prove who it is ({error.reason or error})."
            raise WireFailed("unreachable", sentence) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise WireFailed("unreachable", f"No connection to {place}: {reason}.") from error
        return _Connection(origin, reader, writer)

    async def _ask(
        self, connection: "_Connection", target: str, fields: list[tuple[str, str]], body: bytes
    ) -> Answer:
        try:
            async with asyncio.timeout(self._answer_timeout_s):
                head = await connection.ask(target, fields, body)
        except TimeoutError:
            connection.drop()
            sentence = f"The server sent nothing for {self._answer_timeout_s:g} s."
            raise WireFailed("timed_out", sentence) from None
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
        """Read to the end of an answer in the background and keep the connection."""
        self._draining[connection] = asyncio.create_task(self._drain(connection))

    async def _drain(self, connection: "_Connection") -> None:
        try:
            async with asyncio.timeout(_DRAIN_S):
                await connection.skip_rest()
        except (TimeoutError, WireFailed):
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
    """One TCP connection and what HTTP thinks of it."""

    def __init__(
        self, origin: _Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        from h11 import CLIENT, Connection

        self.origin = origin
        self.has_answered = False
        """Whether anything came back for the last request."""
        self._reader = reader
        self._writer = writer
        self._http = Connection(CLIENT)

    @property
    def is_usable(self) -> bool:
        """Whether the other side has kept it open, as far as one can know."""
        return not self._reader.at_eof() and not self._writer.transport.is_closing()

    async def ask(self, target: str, fields: list[tuple[str, str]], body: bytes) -> "h11.Response":
        """Send a request; the head of its answer."""
        import h11

        self.has_answered = False
        request = h11.Request(method="POST", target=target, headers=fields)
        pieces = [self._http.send(request), self._http.send(h11.Data(body))]
        pieces.append(self._http.send(h11.EndOfMessage()))
        try:
            self._writer.write(b"".join(piece for piece in pieces if piece))
            await self._writer.drain()
        except OSError as error:
            raise WireFailed("unreachable", f"The connection broke: {error}.") from error
        while True:
            event = await self.next_event()
            if isinstance(event, h11.Response):
                return event

    async def next_event(self) -> Any:  # noqa: ANN401 - one of h11's events
        """What comes next of the answer."""
        import h11

        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                chunk = await self._reader.read(_READ_BYTES)
                self.has_answered = self.has_answered or bool(chunk)
                self._http.receive_data(chunk)
        except h11.RemoteProtocolError as error:
            raise WireFailed(
                "broken_stream", f"The server's answer broke off ({error})."
            ) from error
        except OSError as error:
            raise WireFailed("broken_stream", f"The connection broke: {error}.") from error
        if isinstance(event, h11.ConnectionClosed):
            raise WireFailed("broken_stream", "The server closed the connection.")
        return event

    async def skip_rest(self) -> None:
        """Read on until the answer is over."""
        import h11

        while not isinstance(await self.next_event(), h11.EndOfMessage):
            pass

    def can_go_on(self) -> bool:
        """Whether another request may follow; if so, it is ready for one."""
        import h11

        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return self.is_usable

    def drop(self) -> None:
        """Close it at once."""
        self._writer.transport.abort()


class _DirectAnswer(Answer):
    def __init__(
        self, wire: DirectWire, connection: _Connection, head: "h11.Response", idle_timeout_s: float
    ) -> None:
        self.status = head.status_code
        self.headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        self._wire = wire
        self._connection: _Connection | None = connection
        self._idle_timeout_s = idle_timeout_s

    async def chunks(self) -> AsyncIterator[bytes]:
        import h11

        while self._connection is not None:
            try:
                async with asyncio.timeout(self._idle_timeout_s):
                    event = await self._connection.next_event()
            except TimeoutError:
                await self.close()
                sentence = f"The stream paused for more than {self._idle_timeout_s:g} s."
                raise WireFailed("timed_out", sentence) from None
            except WireFailed:
                await self.close()
                raise
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
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


def _tls_context(env: Mapping[str, str]) -> "ssl.SSLContext":
    file, directory = env.get("SSL_CERT_FILE"), env.get("SSL_CERT_DIR")
    if file or directory:
        return ssl.create_default_context(cafile=file or None, capath=directory or None)
    if sys.platform in ("darwin", "win32"):
        # There the system's certificates are not where OpenSSL looks for them.
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()
