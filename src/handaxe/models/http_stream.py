"""One request, and the events of its answer as decoded JSON; errors as failed attempts."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from handaxe.contract.ports.model import ModelEvent
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
    """JSON that every server reads: half of a UTF-16 pair is spelled out, not sent."""
    try:
        return _ENCODER.encode(body)
    except UnicodeEncodeError:
        return _ENCODER.encode(scrub(body))


MAX_EVENT_BYTES = 64 * 1024 * 1024
"""More in one event is a server out of its mind, not an answer."""

_BOM = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event: its name, empty where the server gave none, and its data."""

    event: str
    data: str


class EventTooLong(Exception):
    """One event passed `MAX_EVENT_BYTES` without coming to an end."""


class EventParser:
    """Bytes in, events out. The same bytes give the same events for every way to cut them."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        """The beginning of a line whose end has not come yet."""
        self._held_bytes = 0
        self._was_return = False
        self._is_first_line = True
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes."""
        if self._was_return and chunk:
            # The second half of a line break that was cut in two.
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
        """The last event where the server left out the empty line after it."""
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
    """Turns a vendor's events into ours."""

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to come."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the answer did not break off."""
        ...

    def read(self, event: Payload, /) -> Iterable[ModelEvent]:
        """What follows from one event."""
        ...

    def end(self) -> Iterable[ModelEvent]:
        """What is left to say when the answer is complete."""
        ...


async def stream_model_events(
    reader: ResponseReader,
    wire: HttpTransport,
    server: ModelServer,
    headers: Mapping[str, str],
    body: bytes,
) -> AsyncGenerator[ModelEvent, None]:
    """One request, and its answer as our events; an answer that breaks off is a failed attempt."""
    events = stream_server_events(wire, server, headers, body)
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


async def stream_server_events(
    wire: HttpTransport, server: ModelServer, headers: Mapping[str, str], body: bytes
) -> AsyncGenerator[Payload, None]:
    """The data of every event; a whole answer from a server that does not stream is one event.

    Where the server names its events, the name stands under `type`.

    Raises:
        AttemptFailed: refused, unreachable, cut off, or not a stream at all.
    """
    try:
        answer = await wire.post(server.url, headers, body)
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
        raise make_format_failure(server, "an event without end") from None
    for event in parser.end():
        # The last event of a stream that was cut is half an event.
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
