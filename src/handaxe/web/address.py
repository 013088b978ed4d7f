"""Read the address of a page once, the way browsers do; everything else uses what this gives."""

import re
from typing import Literal, cast

import msgspec

from handaxe.contract.faults.web import BadAddress, WebNotInstalled
from handaxe.contract.ports.web import WebAddress

MAX_CHARS = 8_000
_PORTS = {"http": 80, "https": 443}


def parse_address(url: str, base: str | None = None) -> WebAddress:
    """The address in its canonical form; with a base, the place that the base redirects to.

    Raises:
        BadAddress: the text is not an address, or the page cannot be fetched.
    """
    try:
        import ada_url
    except ImportError:
        raise WebNotInstalled from None
    if len(url) > MAX_CHARS:
        raise BadAddress(url, f"it has more than {MAX_CHARS:,} characters", redirected_from=base)
    try:
        found = ada_url.URL(url, base)
    except ValueError:
        raise BadAddress(url, "it cannot be read", redirected_from=base) from None
    scheme = found.protocol.removesuffix(":")
    if scheme not in _PORTS:
        raise BadAddress(url, f"its scheme is {scheme!r}", redirected_from=base)
    host = found.hostname.removesuffix(".")
    if not host or host.endswith(".") or not re.fullmatch(r"[\x21-\x7e]+", host):
        raise BadAddress(url, "it names no host", redirected_from=base)
    port = int(found.port) if found.port else _PORTS[scheme]
    if port == 0:
        raise BadAddress(url, "its port is 0", redirected_from=base)
    shown_port = "" if port == _PORTS[scheme] else f":{port}"
    target = f"{found.pathname}{found.search}"
    return WebAddress(
        url=f"{scheme}://{host}{shown_port}{target}",
        scheme=cast("Literal['http', 'https']", scheme),
        host=host,
        port=port,
        target=target,
        credentials=_read_credentials(found.username, found.password),
    )


def convert_to_https(address: WebAddress) -> WebAddress:
    """The same page over TLS; an address with a port of its own keeps it."""
    if address.scheme == "https":
        return address
    upgraded = parse_address(re.sub(r"^http:", "https:", address.url, count=1))
    return msgspec.structs.replace(upgraded, credentials=address.credentials)


def _read_credentials(user: str, password: str) -> str:
    from urllib.parse import unquote

    return f"{unquote(user)}:{unquote(password)}" if user or password else ""
