"""What Monitor is told of a web socket, read before anybody is asked.

Connecting is the business of the `Shell` port.
"""

import re
from importlib.util import find_spec
from typing import Annotated

import msgspec

from handaxe.contract.ports.shell import Confiner, Socket
from handaxe.text.urls import BadSocketAddress, read_socket_address
from handaxe.tools.shell.command_faults import BadSocket, NoSocketClient

MAX_PROTOCOLS = 20
MAX_PROTOCOL_CHARS = 100
END_WORDS = "[watch ended: "
"""How the line begins that says why a watch of a socket is over."""
_TOKEN = re.compile(rf"[!#$%&'*+.^_`|~0-9A-Za-z-]{{1,{MAX_PROTOCOL_CHARS}}}")


class SocketArgs(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The input `ws` of Monitor."""

    url: Annotated[str, "Its address: wss://host/path."]
    protocols: Annotated[list[str], "Subprotocols; the server has to take one."] = []


def parse_socket(args: SocketArgs) -> Socket:
    """The socket that is meant; a fault if none can be."""
    try:
        address = read_socket_address(args.url)
    except BadSocketAddress as bad:
        raise BadSocket(f"the address {args.url[:200]!r}", str(bad)) from None
    protocols = tuple(args.protocols)
    for name in protocols:
        if not _TOKEN.fullmatch(name):
            raise BadSocket(
                f"the subprotocol {name[:200]!r}",
                f"a name is made of 1 to {MAX_PROTOCOL_CHARS} letters, digits and signs",
            )
    if len(protocols) > MAX_PROTOCOLS or len(set(protocols)) < len(protocols):
        raise BadSocket(
            f"the list of {len(protocols)} subprotocols",
            f"it may name {MAX_PROTOCOLS} at most and each of them once",
        )
    return Socket(url=address.url, host=address.host, port=address.port, protocols=protocols)


def read_socket_host(args: SocketArgs) -> str:
    """The host that permission is about; empty if none can be read."""
    try:
        return read_socket_address(args.url).host
    except BadSocketAddress:
        return ""


def refuse_closed_host(socket: Socket, confiner: Confiner | None) -> None:
    """Raise a fault if settings close the host to whatever is started here."""
    why = None if confiner is None else confiner.explain_closed_host(socket.host)
    if why is not None:
        raise BadSocket(f"the host {socket.host}", f"it {why}")


def refuse_without_client() -> None:
    """Raise a fault if the library is missing."""
    if find_spec("websockets") is None:
        raise NoSocketClient
