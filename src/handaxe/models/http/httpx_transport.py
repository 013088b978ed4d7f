"""Requests through httpx2: for proxies, and for a client that the caller made."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

from handaxe.contract.faults import SetupError
from handaxe.models.http.transport import (
    ANSWER_TIMEOUT_S,
    CONNECT_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    HttpResponse,
    HttpTransport,
    TransportFailed,
)

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response


class ClientTransport(HttpTransport):
    """Requests through `client`; a client of the caller stays open at the end."""

    def __init__(
        self,
        client: "AsyncClient | None" = None,
        *,
        proxy: str | None = None,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
    ) -> None:
        self._client = client
        self._owns_client = client is None
        self._proxy = proxy
        self._answer_timeout_s = answer_timeout_s
        self._idle_timeout_s = idle_timeout_s

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send a request and wait for the head of the answer."""
        import httpx2

        client = self._open_client()
        timeout = httpx2.Timeout(self._answer_timeout_s, connect=CONNECT_TIMEOUT_S)
        request = client.build_request(
            "POST", url, headers=dict(headers), content=body, timeout=timeout
        )
        try:
            response = await client.send(request, stream=True)
        except (httpx2.ConnectTimeout, httpx2.ConnectError, httpx2.ProxyError) as error:
            raise TransportFailed("unreachable", f"No connection to {url}: {error}.") from error
        except httpx2.TimeoutException as error:
            sentence = f"The server sent nothing for {self._answer_timeout_s:g} s."
            raise TransportFailed("timed_out", sentence) from error
        except httpx2.HTTPError as error:
            sentence = f"The request to {url} failed: {error}."
            raise TransportFailed("unreachable", sentence) from error
        return _ClientResponse(response, self._idle_timeout_s)

    def _open_client(self) -> "AsyncClient":
        import httpx2

        if self._client is None:
            try:
                self._client = httpx2.AsyncClient(proxy=self._proxy, trust_env=False)
            except (ValueError, ImportError) as error:
                raise SetupError(
                    f"The proxy {self._proxy!r} cannot be used: {error} Check the proxy variables "
                    "of the environment."
                ) from error
        return self._client

    async def close(self) -> None:
        """Close the client if the caller did not make it."""
        if self._owns_client and self._client is not None:
            client, self._client = self._client, None
            await client.aclose()


class _ClientResponse(HttpResponse):
    def __init__(self, response: "Response", idle_timeout_s: float) -> None:
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._idle_timeout_s = idle_timeout_s

    async def stream_chunks(self) -> AsyncGenerator[bytes, None]:
        import httpx2

        pieces = self._response.aiter_bytes()
        try:
            while True:
                async with asyncio.timeout(self._idle_timeout_s):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                yield piece
        except (TimeoutError, httpx2.TimeoutException) as error:
            sentence = f"The stream paused for more than {self._idle_timeout_s:g} s."
            raise TransportFailed("timed_out", sentence) from error
        except httpx2.HTTPError as error:
            raise TransportFailed("broken_stream", f"The answer broke off ({error}).") from error
        finally:
            await self._response.aclose()

    async def close(self) -> None:
        await self._response.aclose()
