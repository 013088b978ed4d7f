"""One request, and the events of its answer as decoded JSON; errors as failed attempts."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Protocol, cast

import msgspec

from handaxe.contract.ports.model import ModelEvent
from handaxe.models.failures import Server, cut_off, not_a_stream, refusal, wire_failure
from handaxe.models.retries import AttemptFailed
from handaxe.models.sse import EventParser, EventTooLong, ServerEvent
from handaxe.models.wire import Answer, Wire, WireFailed

DONE = "[DONE]"
MAX_WHOLE_BYTES = 64 * 1024 * 1024
_LAST = (DONE, "message_stop")

Payload = dict[str, Any]


class AnswerReader(Protocol):
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


async def answer_events(
    reader: AnswerReader, wire: Wire, server: Server, headers: Mapping[str, str], body: bytes
) -> AsyncGenerator[ModelEvent, None]:
    """One request, and its answer as our events; an answer that breaks off is a failed attempt."""
    events = server_events(wire, server, headers, body)
    try:
        async for event in events:
            for given in reader.read(event):
                yield given
            if reader.is_done:
                break
    finally:
        await events.aclose()
    if not reader.is_complete:
        raise cut_off(server)
    for given in reader.end():
        yield given


async def server_events(
    wire: Wire, server: Server, headers: Mapping[str, str], body: bytes
) -> AsyncGenerator[Payload, None]:
    """The data of every event; a whole answer from a server that does not stream is one event.

    Where the server names its events, the name stands under `type`.

    Raises:
        AttemptFailed: refused, unreachable, cut off, or not a stream at all.
    """
    try:
        answer = await wire.post(server.url, headers, body)
    except WireFailed as failed:
        raise wire_failure(server, failed) from failed
    try:
        if answer.status != 200:
            raise refusal(server, answer.status, answer.headers, await answer.body())
        kind = answer.headers.get("content-type", "")
        if "text/html" in kind:
            raise not_a_stream(server, "a web page")
        if "application/json" in kind:
            yield _decoded(server, (await answer.body(MAX_WHOLE_BYTES)).decode("utf-8", "replace"))
            return
        async with aclosing(_events(server, answer)) as events:
            async for event in events:
                if event.get("type") in _LAST:
                    await answer.release()
                yield event
    except WireFailed as failed:
        raise wire_failure(server, failed) from failed
    finally:
        await answer.close()


async def _events(server: Server, answer: Answer) -> AsyncGenerator[Payload, None]:
    parser = EventParser()
    try:
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    yield _payload(server, event)
    except EventTooLong:
        raise not_a_stream(server, "an event without end") from None
    for event in parser.end():
        # The last event of a stream that was cut is half an event.
        with suppress(AttemptFailed):
            yield _payload(server, event)


def _payload(server: Server, event: ServerEvent) -> Payload:
    if event.data.startswith(DONE):
        return {"type": DONE}
    if event.event == "ping":
        return {"type": "ping"}
    payload = _decoded(server, event.data)
    return {"type": event.event, **payload} if event.event else payload


def _decoded(server: Server, data: str) -> Payload:
    try:
        payload: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise not_a_stream(server, f"{data[:80]!r}") from None
    if not isinstance(payload, dict):
        raise not_a_stream(server, f"{data[:80]!r}")
    return cast("Payload", payload)
