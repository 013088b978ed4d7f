"""Find the addresses of a host: once, so that what is checked is what is connected to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from handaxe.text.ip_addresses import read_address

Lookup = Callable[[str], Awaitable[list[str]]]
"""The addresses of a name; raises `NoAddressError`."""

LOOKUP_TIMEOUT_S = 10.0
LOCALHOST = "localhost"
_LOOPBACK = ("127.0.0.1", "::1")
_HOSTS_FILE = "/etc/hosts"


class NoAddressError(Exception):
    """The name has no address; the text says why."""


async def look_up(host: str) -> list[str]:
    """The addresses of a host, as the system's resolver gives them."""
    bare = host.strip("[]")
    if read_address(bare) is not None:
        return [bare]
    if is_localhost(host):
        return list(_LOOPBACK)
    try:
        async with asyncio.timeout(LOOKUP_TIMEOUT_S):
            found = await asyncio.get_running_loop().getaddrinfo(
                host, None, type=socket.SOCK_STREAM
            )
    except TimeoutError:
        raise NoAddressError(f"no answer within {LOOKUP_TIMEOUT_S:g} s") from None
    except UnicodeError:
        raise NoAddressError("the name is not valid") from None
    except OSError as error:
        raise NoAddressError(error.strerror or str(error)) from None
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def is_localhost(host: str) -> bool:
    """Whether a name is this machine by definition (RFC 6761)."""
    return host == LOCALHOST or host.endswith(f".{LOCALHOST}")


def find_listed_addresses(host: str) -> list[str]:
    """The addresses that the hosts file of this machine gives a name, without a look-up."""
    try:
        text = Path(_HOSTS_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    return [
        words[0]
        for words in lines
        if len(words) > 1 and host in {name.lower() for name in words[1:]}
    ]
