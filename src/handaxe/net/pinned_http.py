"""HTTP requests to one checked address of a host, or through a proxy; redirects are not followed.

Certificates are checked against the name of the host, and the request names it.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from ssl import SSLContext

import httpx2

from handaxe.contract.ports.web import WebAddress
from handaxe.text.ip_addresses import read_address

CONNECT_TIMEOUT_S = 10.0


class NotConnectedError(Exception):
    """No address answered; the text says why."""


@asynccontextmanager
async def send_pinned(
    address: WebAddress,
    addresses: Sequence[str],
    *,
    method: str = "GET",
    headers: Mapping[str, str],
    body: bytes = b"",
    proxy: str | None = None,
    tls: SSLContext,
    timeout_s: float,
) -> AsyncGenerator[httpx2.Response]:
    """The answer of the first address that can be connected to; its body is still on the way.

    With a proxy the name is sent there, and `addresses` may be empty.

    Raises:
        NotConnectedError: none answered, the answer is not HTTP, or it breaks off.
    """
    problem = "no address is left"
    async with _create_transport(proxy, tls) as transport:
        for place in [address.host] if proxy else addresses:
            request = make_request(
                address, place, method=method, headers=headers, body=body, timeout_s=timeout_s
            )
            try:
                response = await transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
                problem = _describe_error(error)
                continue
            except httpx2.TransportError as error:
                raise NotConnectedError(_describe_error(error)) from None
            response.request = request
            try:
                if proxy is None:
                    _check_peer(response, addresses)
                yield response
            except (httpx2.TransportError, httpx2.StreamError) as error:
                raise NotConnectedError(
                    f"the answer broke off ({_describe_error(error)})"
                ) from None
            finally:
                await response.aclose()
            return
    raise NotConnectedError(problem)


def _create_transport(proxy: str | None, tls: SSLContext) -> httpx2.AsyncHTTPTransport:
    # The errors of the library may quote the password of the proxy.
    unusable = NotConnectedError("the address of the proxy cannot be used")
    try:
        if proxy is not None and not 0 <= (httpx2.URL(proxy).port or 0) < 1 << 16:
            raise unusable
        return httpx2.AsyncHTTPTransport(verify=tls, proxy=proxy, trust_env=False, retries=0)
    except ImportError:
        raise NotConnectedError("a SOCKS proxy needs: pip install 'httpx2[socks]'") from None
    except (ValueError, httpx2.InvalidURL):
        raise unusable from None


def make_request(
    address: WebAddress,
    place: str,
    *,
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    timeout_s: float,
) -> httpx2.Request:
    """The request to one place: a checked address, or the name where a proxy looks it up."""
    bare = address.host.strip("[]")
    default_port = {"http": 80, "https": 443}[address.scheme]
    shown_port = "" if address.port == default_port else f":{address.port}"
    url = httpx2.URL(
        scheme=address.scheme,
        host=place.strip("[]"),
        port=address.port,
        raw_path=address.target.encode("ascii"),
    )
    timeouts = dict.fromkeys(("read", "write", "pool"), timeout_s)
    extensions: dict[str, object] = {
        "timeout": {**timeouts, "connect": min(CONNECT_TIMEOUT_S, timeout_s)}
    }
    if read_address(bare) is None:
        extensions["sni_hostname"] = bare
    return httpx2.Request(
        method,
        url,
        headers={"host": f"{address.host}{shown_port}", **headers},
        content=body or None,
        extensions=extensions,
    )


def _check_peer(response: httpx2.Response, addresses: Sequence[str]) -> None:
    """The other end has to be one of the addresses that were checked."""
    stream = response.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    if peer is not None and read_address(str(peer[0]).partition("%")[0]) not in {
        read_address(one.partition("%")[0]) for one in addresses
    }:
        raise NotConnectedError(f"the connection went to {peer[0]}, which was not checked")


def _describe_error(error: Exception) -> str:
    return str(error).removesuffix(".") or type(error).__name__
