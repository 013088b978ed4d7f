"""A server at an address: streamable HTTP, and the older transport with server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from handaxe.config.mcp_definitions import RemoteConfig
from handaxe.mcp.header_helper import MAY_REPEAT, REFUSALS
from handaxe.mcp.line_framing import MAX_LINE_BYTES

CONNECT_S = 30.0
QUIET_S = 24 * 3600.0
"""How long a stream may be silent; calls have their own deadlines."""


class ResponseTooLarge(httpx2.StreamError):
    """A body exceeded the limit."""


@asynccontextmanager
async def open_remote_streams(
    config: RemoteConfig,
    refused: Callable[[httpx2.Response], None],
    known_by: httpx2.Auth | None = None,
) -> AsyncGenerator[tuple[Any, Any]]:
    """The two streams of a remote server; `refused` is called when it rejects the credentials."""

    async def look(response: httpx2.Response) -> None:
        is_known = "mcp-session-id" in response.request.headers
        is_last = not response.request.extensions.get(MAY_REPEAT)
        is_refused = response.status_code in REFUSALS and is_last
        if is_refused or (response.status_code == 404 and is_known):
            refused(response)
        # Streams of events have a limit of their own.
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(response.stream)

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=headers or config.headers,
            timeout=timeout or httpx2.Timeout(CONNECT_S, read=QUIET_S),
            auth=auth or known_by,
            event_hooks={"response": [look]},
        )

    if config.kind == "sse":
        async with sse_client(
            config.url,
            headers=dict(config.headers),
            sse_read_timeout=QUIET_S,
            httpx_client_factory=client,
        ) as streams:
            yield streams
        return
    async with (
        client() as http,
        streamable_http_client(
            config.url, http_client=http, max_sse_event_size=MAX_LINE_BYTES
        ) as streams,
    ):
        yield streams


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that is aborted above the size limit."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > MAX_LINE_BYTES:
                raise ResponseTooLarge(f"the answer is longer than {MAX_LINE_BYTES:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
