"""Requests to addresses that a server names: resolved once, checked, and pinned.

A server that requires a login names the addresses of its metadata, registration and tokens. It may
name public addresses, and its own host, even a local one; not another service of this machine or of
the user's network. A host in the user's configuration may be anywhere. Cloud metadata addresses are
always blocked.
"""

import asyncio
import socket

import httpx2

from handaxe.config.mcp_definitions import RemoteConfig
from handaxe.text.escape import strip_hidden
from handaxe.text.ip_addresses import is_public, is_unsafe_address, read_address
from handaxe.text.urls import is_local_name


class AddressNotAllowed(httpx2.ConnectError):
    """The server named an address that is not allowed."""


class RestrictedTransport(httpx2.AsyncHTTPTransport):
    """Connects to checked addresses only; certificates are verified for the host name."""

    def __init__(self, config: RemoteConfig) -> None:
        # A connection is known by its address; another host's must not be used again.
        super().__init__(limits=httpx2.Limits(max_keepalive_connections=0))
        named = (config.url, config.oauth.auth_server_metadata_url)
        self._own, *vouched = (_read_host(httpx2.URL(url)) for url in named if url)
        self._vouched = {self._own, *vouched}
        self._found: dict[str, list[str]] = {}
        self._proxies: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request if its address is allowed."""
        host = _read_host(request.url)
        proxy = _find_proxy(request.url.scheme, host)
        if proxy is not None:
            # The proxy resolves names; it must not reach local names either.
            if host not in self._vouched and is_local_name(host):
                raise AddressNotAllowed(_explain_refusal(host, host))
            through = self._proxies.setdefault(proxy, httpx2.AsyncHTTPTransport(proxy=proxy))
            return await through.handle_async_request(request)
        *others, last = await self.find_addresses(str(request.url))
        for address in others:
            try:
                return await super().handle_async_request(_pin(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await super().handle_async_request(_pin(request, last))

    async def aclose(self) -> None:
        """Close every connection."""
        for through in self._proxies.values():
            await through.aclose()
        await super().aclose()

    async def find_addresses(self, url: str) -> list[str]:
        """The allowed addresses of a URL's host; raises `AddressNotAllowed` if there are none."""
        host = _read_host(httpx2.URL(url))
        found = await self._resolve(host)
        if public := [one for one in found if is_public(one)]:
            return public
        meant = [one for one in found if not is_unsafe_address(one)]
        if not meant:
            raise AddressNotAllowed(f"it leads to {_format_place(host, found[0])} is never allowed")
        if host not in self._vouched:
            # Another name of the host that the user has set up.
            own = await self._resolve(self._own)
            meant = [one for one in meant if one in own and not any(map(is_public, own))]
        if not meant:
            raise AddressNotAllowed(_explain_refusal(host, found[0]))
        return meant

    async def _resolve(self, host: str) -> list[str]:
        """The addresses of a host, cached for the lifetime of this object."""
        if host not in self._found:
            loop = asyncio.get_running_loop()
            try:
                found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                reason = getattr(error, "strerror", None) or error
                raise httpx2.ConnectError(f"{_clean_host(host)} has no address: {reason}") from None
            self._found[host] = list(dict.fromkeys(str(one[4][0]) for one in found))
        return self._found[host]


def _pin(request: httpx2.Request, address: str) -> httpx2.Request:
    """The request to one address of its host."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": _read_host(request.url)},
    )


def _read_host(url: httpx2.URL) -> str:
    return url.raw_host.decode("ascii")


def _find_proxy(scheme: str, host: str) -> str | None:
    """The proxy from the environment for a host, if any."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return None if not proxy or proxy_bypass(host) else proxy


def _explain_refusal(host: str, address: str) -> str:
    return (
        f"it leads to {_format_place(host, address)} is not a public address; to allow "
        "it, set `oauth.authServerMetadataUrl` of the entry to the metadata there"
    )


def _format_place(host: str, address: str) -> str:
    is_same = read_address(host) is not None or host == address
    return f"{address}, which" if is_same else f"{_clean_host(host)} at {address}, which"


def _clean_host(host: str) -> str:
    return strip_hidden(host, 200)
