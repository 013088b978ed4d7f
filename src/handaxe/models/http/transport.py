"""One request to a model server and its streamed answer: the interface and its limits."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Literal

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 600.0
"""How long a server may take for the first byte; a slow machine reads a long prompt slowly."""
IDLE_TIMEOUT_S = 180.0
"""How long a stream that has begun may pause."""
IDLE_VARIABLE = "CLAUDE_STREAM_IDLE_TIMEOUT_MS"
"""The environment variable that replaces `IDLE_TIMEOUT_S`."""


class TransportFailed(Exception):
    """The request did not arrive, or its answer broke off."""

    def __init__(
        self, how: Literal["unreachable", "broken_stream", "timed_out"], sentence: str
    ) -> None:
        super().__init__(sentence)
        self.how: Literal["unreachable", "broken_stream", "timed_out"] = how
        self.sentence = sentence


class HttpResponse(ABC):
    """The head of an answer whose body is still to be read."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""

    @abstractmethod
    def stream_chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives.

        Raises:
            TransportFailed: it broke off, or paused for too long.
        """

    @abstractmethod
    async def close(self) -> None:
        """Stop reading; the server notices at once if there was more."""

    async def release(self) -> None:
        """Give up the rest of the body, which is not needed, so that the connection is free."""
        await self.close()

    async def body(self, limit_bytes: int = 1_000_000) -> bytes:
        """The body, at most `limit_bytes` of it."""
        whole = bytearray()
        async with aclosing(self.stream_chunks()) as chunks:
            async for chunk in chunks:
                whole += chunk
                if len(whole) > limit_bytes:
                    break
        return bytes(whole[:limit_bytes])


class HttpTransport(ABC):
    """Sends requests to one server."""

    @abstractmethod
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send a request and wait for the head of the answer.

        Raises:
            TransportFailed: there was no answer.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""
