"""ONE REQUEST TO A MODEL SERVER, and its answer piece by piece.

Belongs here: sending bytes over HTTP and reading bytes back, time limits, proxies.
Does not: what the bytes mean, retries, keys.
May import: contract; httpx2, where it is needed.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ssl import SSLContext

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 600.0
"""How long a server may think before the first byte; a slow machine reads a long prompt slowly."""
IDLE_TIMEOUT_S = 180.0
"""How long a stream that has begun may pause."""
IDLE_VARIABLE = "CLAUDE_STREAM_IDLE_TIMEOUT_MS"
"""Sets another limit for that."""


class TransportFailed(Exception):
    """The request did not arrive, or its answer broke off."""

    def __init__(
        self, how: Literal["unreachable", "broken_stream", "timed_out"], sentence: str
    ) -> None:
        super().__init__(sentence)
        self.how: Literal["unreachable", "broken_stream", "timed_out"] = how
        self.sentence = sentence


class HttpResponse(ABC):
    """The head of an answer; its body is still on the way."""

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
        """What is left says nothing more: the connection may serve the next request."""
        await self.close()

    async def body(self, limit_bytes: int = 1_000_000) -> bytes:
        """The whole body, or as much of it as an explanation may need."""
        whole = bytearray()
        async with aclosing(self.stream_chunks()) as chunks:
            async for chunk in chunks:
                whole += chunk
                if len(whole) > limit_bytes:
                    break
        return bytes(whole[:limit_bytes])


class HttpTransport(ABC):
    """A way to a server."""

    @abstractmethod
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send a request and wait for the head of the answer.

        Raises:
            TransportFailed: nobody answered.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of open connections."""


def create_tls_context(env: Mapping[str, str]) -> "SSLContext":
    """Whom a TLS connection trusts: the certificates that variables name, or the system's."""
    import ssl

    file, directory = env.get("SSL_CERT_FILE"), env.get("SSL_CERT_DIR")
    if file or directory:
        return ssl.create_default_context(cafile=file or None, capath=directory or None)
    if sys.platform in ("darwin", "win32"):
        # There the system's certificates are not where OpenSSL looks for them.
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()
