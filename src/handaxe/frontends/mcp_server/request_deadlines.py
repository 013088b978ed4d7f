"""How long a request may take to arrive, and how many connections may wait for theirs.

Without this, connections that send half a request stay open for as long as the client likes.
"""

import asyncio
from typing import Any, ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

REQUEST_S = 10.0
"""From the first moment of a connection, or the first byte of a later request, to the last byte."""
MAX_ARRIVING = 64
"""So many requests may be on their way at once; the oldest makes way for one more."""
MAX_CONNECTIONS = 512

_ARRIVING = frozenset({h11.IDLE, h11.SEND_BODY})
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class DeadlineProtocol(H11Protocol):
    """Uvicorn's connection, ended when its request does not arrive in time."""

    arriving: ClassVar[dict["DeadlineProtocol", asyncio.TimerHandle]]
    """Connections of one server whose request is on its way, oldest first."""

    @classmethod
    def create_for_server(cls) -> "type[DeadlineProtocol]":
        """The protocol with a count of its own."""
        return type(cls.__name__, (cls,), {"arriving": {}})

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - uvicorn says which
        """Wait for its first request, for a while."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, and see whether the request is whole now."""
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
        """End the connection; what did not come in time is not waited for."""
        self._stop_waiting()
        # There is none before the first request, whatever uvicorn's types say.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_TOO_LATE)
        self.transport.close()
