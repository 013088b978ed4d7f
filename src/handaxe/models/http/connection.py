"""One connection to a model server: HTTP/1.1 by h11 over asyncio streams."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import h11

from handaxe.contract.faults import SetupError
from handaxe.models.http.transport import TransportFailed

MAX_HEAD_BYTES = 128 * 1024
_READ_BYTES = 64 * 1024
_GZIP_OR_ZLIB = 32 + 15

Origin = tuple[str, str, int]
"""Scheme, host and port."""


def build_request(url: str, headers: Mapping[str, str], body: bytes) -> h11.Request:
    """The head of a POST; a `SetupError` if the URL or a header cannot be sent."""
    parts = urlsplit(url)
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    length = {"content-length": str(len(body))}
    head = {"host": parts.netloc.rpartition("@")[2], **headers, **length}
    try:
        fields = [(name.encode(), value.encode("latin-1")) for name, value in head.items()]
        return h11.Request(method="POST", target=target, headers=fields)
    except (h11.LocalProtocolError, UnicodeError) as error:
        raise SetupError(
            f"The request to {url} cannot be sent: {error}. Check the address, the key and the "
            "extra headers for unusual characters."
        ) from None


class HttpConnection:
    """One TCP connection, and one request after the other on it."""

    def __init__(
        self, origin: Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.origin = origin
        self.has_answered = False
        """Whether any byte came back for the last request."""
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)

    @property
    def is_usable(self) -> bool:
        """Whether the server has not closed it yet, according to the local socket."""
        return not self._reader.at_eof() and not self._writer.transport.is_closing()

    async def send(self, request: h11.Request, body: bytes) -> tuple[int, dict[str, str]]:
        """Send a request and return status and headers of the answer."""
        self.has_answered = False
        parts = (request, h11.Data(data=body), h11.EndOfMessage())
        try:
            self._writer.write(b"".join(self._http.send(part) or b"" for part in parts))
            await self._writer.drain()
        except OSError as error:
            raise TransportFailed("unreachable", f"The connection broke: {error}.") from error
        with _convert_errors():
            while not isinstance(event := await self._read_event(), h11.Response):
                pass
        headers: dict[str, str] = {}
        for raw_name, raw_value in event.headers:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return event.status_code, headers

    async def read_piece(self) -> bytes:
        """The part of the body that has arrived; empty at the end of the body."""
        with _convert_errors():
            event = await self._read_event()
            if not isinstance(event, h11.Data):
                return b""
            pieces = [event.data]
            # The end of the answer stays for the next call: a piece is never empty.
            while self._http.their_state is h11.SEND_BODY:
                event = self._http.next_event()
                if not isinstance(event, h11.Data):
                    break
                pieces.append(event.data)
        return b"".join(pieces)

    async def _read_event(self) -> Any:  # noqa: ANN401 - h11 has no common type of its events
        if self.is_over:
            return h11.EndOfMessage()
        while (event := self._http.next_event()) is h11.NEED_DATA:
            chunk = await self._reader.read(_READ_BYTES)
            if not chunk and self._http.their_state is h11.SEND_RESPONSE:
                raise h11.RemoteProtocolError("the connection was closed before its end")
            self.has_answered = self.has_answered or bool(chunk)
            self._http.receive_data(chunk)
        return event

    @property
    def is_over(self) -> bool:
        """Whether the whole answer was read."""
        return self._http.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)

    def skip_received(self) -> None:
        """Drop the part of the answer that has arrived."""
        with suppress(h11.RemoteProtocolError):
            while isinstance(self._http.next_event(), h11.Data):
                pass

    def start_next_request(self) -> bool:
        """Prepare for another request; False if this connection cannot carry one."""
        is_ready = self._http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}
        if not is_ready or self._http.trailing_data != (b"", False) or not self.is_usable:
            return False
        self._http.start_next_cycle()
        return True

    def drop(self) -> None:
        """Close it at once."""
        self._writer.transport.abort()


@contextmanager
def _convert_errors() -> Generator[None]:
    """Raise errors of the connection and of the answer as `TransportFailed`."""
    try:
        yield
    except h11.RemoteProtocolError as error:
        sentence = f"The server's answer cannot be read: {error}."
        raise TransportFailed("broken_stream", sentence) from error
    except OSError as error:
        raise TransportFailed("broken_stream", f"The connection broke: {error}.") from error


async def decompress_stream(
    pieces: AsyncGenerator[bytes, None], encoding: str
) -> AsyncGenerator[bytes, None]:
    """Decompress a body piece by piece; some gateways compress without a request for it."""
    async with aclosing(pieces):
        if encoding not in ("gzip", "x-gzip", "deflate"):
            sentence = f"The server compressed its answer with {encoding[:40]!r}, unasked."
            raise TransportFailed("broken_stream", sentence)
        decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            async for piece in pieces:
                if plain := decompressor.decompress(piece):
                    yield plain
        except zlib.error as error:
            sentence = f"The compressed answer is damaged ({error})."
            raise TransportFailed("broken_stream", sentence) from error
        if not decompressor.eof:
            raise TransportFailed("broken_stream", "The compressed answer broke off.")
