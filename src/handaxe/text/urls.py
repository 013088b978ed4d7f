"""Hosts of the network as text: which host an address names, and whether it lies near.

Nothing is looked up here; the code that connects resolves names.
"""

import re

import msgspec

_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_LOCAL_ENDINGS = frozenset(
    {"local", "internal", "lan", "test", "intranet", "corp", "home", "localhost"}
)
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>.*)")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?")
_PORTS = {"ws": 80, "wss": 443}
_MAX_CHARS = 8_000
_LOOPBACK = ("127.0.0.1", "[::1]")


class SocketAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a web socket is."""

    url: str
    """As it was given."""
    host: str
    """In the one form that is compared with rules; an IPv6 address is in brackets."""
    port: int


class BadSocketAddress(Exception):
    """This is not an address of a web socket; the text says why, as the end of a sentence."""


def read_socket_address(url: str) -> SocketAddress:
    """The parts of a `ws://` or `wss://` address that every reader understands alike."""
    if len(url) > _MAX_CHARS or not re.fullmatch(r"[\x21-\x7e]+", url):
        raise BadSocketAddress(
            "it has to be plain ASCII without blanks, at most 8,000 characters, so other "
            "characters have to be encoded"
        )
    found = _ADDRESS.fullmatch(url)
    scheme = found["scheme"].lower() if found else ""
    if found is None or scheme not in _PORTS:
        raise BadSocketAddress("it does not begin with ws:// or wss://")
    if "#" in found["rest"]:
        raise BadSocketAddress("a web socket has no part behind a '#'")
    if "@" in found["authority"]:
        raise BadSocketAddress("a name or password does not belong into it")
    parts = _AUTHORITY.fullmatch(found["authority"])
    port = int((parts and parts["port"]) or _PORTS[scheme])
    if parts is None or not 0 < port < 1 << 16:
        raise BadSocketAddress("behind the host there has to be a port from 1 to 65535 or nothing")
    return SocketAddress(url=url, host=_normalize_host(parts["host"].lower()), port=port)


def is_address(host: str) -> bool:
    """Whether a host is an address, in any spelling that a resolver takes for one."""
    return ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def is_local_name(host: str) -> bool:
    """Whether a host is by its name one of this machine or of the user's own network.

    An address counts as local: nothing else tells whose it is.
    """
    labels = host.split(".")
    return len(labels) == 1 or labels[-1] in _LOCAL_ENDINGS or is_address(host)


def list_spellings(host: str) -> tuple[str, ...]:
    """The host and its other names: `localhost` and the addresses of this machine are one host."""
    if host == "localhost" or host.endswith(".localhost"):
        return host, "localhost", *_LOOPBACK
    plain = _unwrap_address(host)
    is_this_machine = plain in _LOOPBACK or re.fullmatch(r"127(?:\.\d+){3}", plain) is not None
    return (host, plain, "localhost") if is_this_machine else (host, plain)


def _unwrap_address(host: str) -> str:
    """The IPv4 address that an IPv6 address only wraps; any other host as it is."""
    if not host.startswith("[::ffff:"):
        return host
    import ipaddress

    try:
        wrapped = ipaddress.IPv6Address(host[1:-1]).ipv4_mapped
    except ValueError:
        return host
    return host if wrapped is None else str(wrapped)


def _normalize_host(host: str) -> str:
    import ipaddress

    if host.startswith("["):
        try:
            found = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise BadSocketAddress(f"{host} is not an IPv6 address") from None
        if found.ipv4_mapped is not None:
            raise BadSocketAddress(f"{host} is the IPv4 address {found.ipv4_mapped}; write that")
        if found.scope_id is not None:
            raise BadSocketAddress(f"{host} names a network device, which is not possible")
        return f"[{found}]"
    host = host.removesuffix(".")
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise BadSocketAddress("it names no host")
    if is_address(host):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise BadSocketAddress(f"{host} is not an IPv4 address of four plain numbers") from None
    return host


_FILE_URI = re.compile(rb"file:(?://(?:localhost)?(?=/)|(?=/(?!/)))", re.IGNORECASE)


def parse_file_uri(uri: str) -> str | None:
    """The path that a `file:` address stands for; None for any other address."""
    from urllib.parse import unquote_to_bytes

    try:
        raw = uri.encode()
    except UnicodeEncodeError:
        return None
    found = _FILE_URI.match(raw)
    if found is None:
        return None
    # What follows ? or # belongs to the address; in a path both are written as escapes.
    decoded = unquote_to_bytes(re.split(rb"[?#]", raw[found.end() :])[0])
    return None if b"\0" in decoded else decoded.decode("utf-8", "surrogateescape")
