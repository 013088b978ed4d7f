"""Server-sent events of a model server, decoded; errors are failed attempts."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from handaxe.contract.ports.model import Model, ModelEvent
from handaxe.models.failures import (
    AttemptFailed,
    ModelServer,
    make_format_failure,
    make_status_failure,
    make_transport_failure,
    make_truncation_failure,
)
from handaxe.models.http.transport import HttpResponse, HttpTransport, TransportFailed
from handaxe.text.sanitize import scrub

_ENCODER = msgspec.json.Encoder()


def encode_body(body: dict[str, Any]) -> bytes:
    """The body as JSON; half a surrogate pair is spelled out, because no server accepts it."""
    try:
        return _ENCODER.encode(body)
    except UnicodeEncodeError:
        return _ENCODER.encode(scrub(body))


MAX_EVENT_BYTES = 64 * 1024 * 1024
"""The limit for one event."""

_BOM = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event; `event` is its name, which may be empty."""

    event: str
    data: str


class EventTooLong(Exception):
    """One event is longer than `MAX_EVENT_BYTES`."""


class EventParser:
    """Parses server-sent events from bytes, however the bytes are cut."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        """The beginning of a line that is not complete."""
        self._held_bytes = 0
        self._was_return = False
        self._is_first_line = True
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes."""
        if self._was_return and chunk:
            # The second half of a line break that was cut.
            chunk = chunk.removeprefix(b"\n")
            self._was_return = False
        self._held_bytes += len(chunk)
        if self._held_bytes > MAX_EVENT_BYTES:
            raise EventTooLong
        if b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                self._pieces.append(chunk)
            return []
        lines = b"".join((*self._pieces, chunk)).splitlines()
        self._pieces = []
        if chunk.endswith(b"\r"):
            self._was_return = True
        elif not chunk.endswith(b"\n"):
            self._pieces = [lines.pop()]
        events = self._read(lines)
        self._held_bytes = max(self._held_bytes, *(len(piece) for piece in (b"", *self._pieces)))
        return events

    def end(self) -> list[ServerEvent]:
        """The last event, if the server left out the empty line after it."""
        rest, self._pieces = b"".join(self._pieces), []
        return self._read([*rest.splitlines(), b""])

    def _read(self, lines: list[bytes]) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        for raw in lines:
            line = raw
            if self._is_first_line:
                line = line.removeprefix(_BOM)
                self._is_first_line = False
            if line:
                self._take(line.decode("utf-8", "replace"))
                continue
            if self._data:
                events.append(ServerEvent(self._event, "\n".join(self._data)))
            self._event, self._data = "", []
            self._held_bytes = 0
        return events

    def _take(self, line: str) -> None:
        # A line that begins with a colon is a comment: its field has no name.
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value


DONE = "[DONE]"
MAX_WHOLE_BYTES = 64 * 1024 * 1024
_LAST = (DONE, "message_stop")

Payload = dict[str, Any]


class ResponseReader(Protocol):
    """Turns the events of a vendor into model events."""

    @property
    def is_done(self) -> bool:
        """Whether the last event was read."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete."""
        ...

    def read(self, event: Payload, /) -> Iterable[ModelEvent]:
        """The model events for one event."""
        ...

    def end(self) -> Iterable[ModelEvent]:
        """The last model events of a complete answer."""
        ...


async def stream_model_events(
    reader: ResponseReader,
    transport: HttpTransport,
    server: ModelServer,
    headers: Mapping[str, str],
    body: bytes,
) -> AsyncGenerator[ModelEvent, None]:
    """Send a request and yield the model events; an incomplete answer is a failed attempt."""
    events = stream_server_events(transport, server, headers, body)
    try:
        async for event in events:
            for given in reader.read(event):
                yield given
            if reader.is_done:
                break
    finally:
        await events.aclose()
    if not reader.is_complete:
        raise make_truncation_failure(server)
    for given in reader.end():
        yield given


class HttpModel(Model):
    """A model behind an HTTP server."""

    def __init__(
        self,
        name: str,
        transport: HttpTransport,
        server: ModelServer,
        headers: Mapping[str, str],
        *,
        token: str | None,
        context_tokens: int,
        max_retries: int,
    ) -> None:
        self.name = name
        self.context_tokens = context_tokens
        self._transport = transport
        self._server = server
        self._max_retries = max_retries
        self._headers = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "handaxe",
            **({"authorization": f"Bearer {token}"} if token else {}),
            **{name.lower(): value for name, value in headers.items()},
        }

    def _exchange(self, reader: ResponseReader, body: bytes) -> AsyncGenerator[ModelEvent, None]:
        """Send one request."""
        return stream_model_events(reader, self._transport, self._server, self._headers, body)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()


async def stream_server_events(
    transport: HttpTransport, server: ModelServer, headers: Mapping[str, str], body: bytes
) -> AsyncGenerator[Payload, None]:
    """The data of every event; the answer of a server that does not stream is one event.

    If the server names its events, `type` is the name.

    Raises:
        AttemptFailed: the request failed, or the answer is incomplete or in another format.
    """
    try:
        answer = await transport.post(server.url, headers, body)
    except TransportFailed as failed:
        raise make_transport_failure(server, failed) from failed
    try:
        if answer.status != 200:
            raise make_status_failure(server, answer.status, answer.headers, await answer.body())
        kind = answer.headers.get("content-type", "")
        if "text/html" in kind:
            raise make_format_failure(server, "a web page")
        if "application/json" in kind:
            yield _decode_object(
                server, (await answer.body(MAX_WHOLE_BYTES)).decode("utf-8", "replace")
            )
            return
        async with aclosing(_stream_events(server, answer)) as events:
            async for event in events:
                if event.get("type") in _LAST:
                    await answer.release()
                yield event
    except TransportFailed as failed:
        raise make_transport_failure(server, failed) from failed
    finally:
        await answer.close()


async def _stream_events(
    server: ModelServer, answer: HttpResponse
) -> AsyncGenerator[Payload, None]:
    parser = EventParser()
    try:
        async with aclosing(answer.stream_chunks()) as chunks:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    yield _parse_payload(server, event)
    except EventTooLong:
        raise make_format_failure(server, "an event that is too long") from None
    for event in parser.end():
        # The last event of a stream that was cut is not complete.
        with suppress(AttemptFailed):
            yield _parse_payload(server, event)


def _parse_payload(server: ModelServer, event: ServerEvent) -> Payload:
    if event.data.startswith(DONE):
        return {"type": DONE}
    if event.event == "ping":
        return {"type": "ping"}
    payload = _decode_object(server, event.data)
    return {"type": event.event, **payload} if event.event else payload


def _decode_object(server: ModelServer, data: str) -> Payload:
    try:
        payload: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise make_format_failure(server, f"{data[:80]!r}") from None
    if not isinstance(payload, dict):
        raise make_format_failure(server, f"{data[:80]!r}")
    return cast("Payload", payload)
