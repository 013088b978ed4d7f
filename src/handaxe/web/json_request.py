"""One request with JSON to a service that the user set up."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.faults.web import PageTooLarge
from handaxe.net.proxy import find_proxy
from handaxe.net.resolver import NoAddressError, look_up
from handaxe.text.ip_addresses import classify_address
from handaxe.version import __version__
from handaxe.web.address import parse_address

MAX_ANSWER_BYTES = 4 << 20
_SHOWN_CHARS = 300


class RequestFailed(Exception):
    """There is no answer, or none that can be used; the text says why."""


async def request_json(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: Any,  # noqa: ANN401 - any JSON
    *,
    timeout_s: float,
    env: Mapping[str, str],
) -> bytes:
    """The answer; redirects are not followed, since the key would go with them.

    Raises:
        RequestFailed: there was no usable answer.
    """
    from handaxe.net.pinned_http import NotConnectedError, send_pinned
    from handaxe.net.tls import create_tls_context
    from handaxe.web.body import ACCEPTED_ENCODINGS, read_body

    sent = {
        "user-agent": f"handaxe/{__version__}",
        "accept": "application/json",
        "accept-encoding": ACCEPTED_ENCODINGS,
        "content-type": "application/json",
        "connection": "close",
        **headers,
    }
    try:
        address = parse_address(url)
        proxy = find_proxy(address.scheme, address.host, address.port, env)
        async with asyncio.timeout(timeout_s):
            addresses = [] if proxy else await look_up(address.host)
            if any(classify_address(one) == "unsafe" for one in addresses):
                raise RequestFailed(f"{address.host} leads to an address that nothing may use")
            async with send_pinned(
                address,
                addresses,
                method=method,
                headers=sent,
                body=b"" if body is None else msgspec.json.encode(body),
                proxy=proxy,
                tls=create_tls_context(env),
                timeout_s=timeout_s,
            ) as response:
                encoding = response.headers.get("content-encoding", "")
                where = f"{address.scheme}://{address.host}"
                raw = await read_body(where, encoding, response.aiter_raw(), MAX_ANSWER_BYTES)
                status = response.status_code
    except TimeoutError:
        raise RequestFailed(f"no answer within {timeout_s:g} s") from None
    except PageTooLarge:
        raise RequestFailed(f"its answer has more than {MAX_ANSWER_BYTES:,} bytes") from None
    except (NotConnectedError, NoAddressError, SetupError, ToolFault) as error:
        raise RequestFailed(str(error).removesuffix(".")) from None
    if not 200 <= status < 300:
        said = " ".join(raw.decode("utf-8", "replace").split())[:_SHOWN_CHARS]
        raise RequestFailed(f"HTTP status {status}{f': {said}' if said else ''}")
    return raw
