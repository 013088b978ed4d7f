"""Limits for requests that arrive slowly: their time and their number.

Without them, connections that send half a request stay open forever.
"""

import asyncio
from typing import Any, ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

REQUEST_S = 10.0
"""Seconds from the start of a connection, or the first byte of a later request, to the last byte.
"""
MAX_ARRIVING = 64
"""Maximum incomplete requests; a new one closes the oldest."""
MAX_CONNECTIONS = 512

_ARRIVING = frozenset({h11.IDLE, h11.SEND_BODY})
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class DeadlineProtocol(H11Protocol):
    """A connection of uvicorn that closes when its request is late."""

    arriving: ClassVar[dict["DeadlineProtocol", asyncio.TimerHandle]]
    """Connections with an incomplete request, oldest first."""

    @classmethod
    def create_for_server(cls) -> "type[DeadlineProtocol]":
        """A protocol class with its own count."""
        return type(cls.__name__, (cls,), {"arriving": {}})

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - uvicorn says which
        """Wait for the first request, up to the limit."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle data, and check whether the request is complete."""
        super().data_received(data)
        if self.conn.their_state not in _ARRIVING:
            self._stop_waiting()
        elif self not in self.arriving:
            self._expect_request()

    def _expect_request(self) -> None:
        if len(self.arriving) >= MAX_ARRIVING:
            next(iter(self.arriving)).give_up()
        self.arriving[self] = self.loop.call_later(REQUEST_S, self.give_up)

    def _stop_waiting(self) -> None:
        timer = self.arriving.pop(self, None)
        if timer is not None:
            timer.cancel()

    def give_up(self) -> None:
        """Close the connection of a late request."""
        self._stop_waiting()
        # It is None before the first request, whatever uvicorn's types say.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_TOO_LATE)
        self.transport.close()
