"""Addresses of the network as numbers: whose they are, whatever they are wrapped in."""

import ipaddress
from typing import Literal

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Scope = Literal["public", "private", "loopback", "unsafe"]

_METADATA = frozenset(
    {
        "100.100.100.200",
        "168.63.129.16",
        "169.254.0.23",
        "169.254.42.42",
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "192.0.0.192",
        "fd00:42::42",
        "fd00:ec2::23",
        "fd00:ec2::254",
        "fd20:ce::254",
    }
)
"""Where clouds keep the credentials of a machine."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_TEREDO = ipaddress.IPv6Network("2001::/32")
_NOT_GLOBAL = (
    ipaddress.IPv4Network("0.0.0.0/8"),
    ipaddress.IPv4Network("192.0.0.0/24"),
    ipaddress.IPv4Network("240.0.0.0/4"),
    ipaddress.IPv6Network("100::/64"),
    ipaddress.IPv6Network("2001:db8::/32"),
    ipaddress.IPv6Network("fec0::/10"),
)
"""Ranges that some versions of Python count as global."""
_ISATAP = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")
_LOW = (12, 13, 14, 15)
_NAT64_PLACES = ((6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), _LOW)
"""Where a local NAT64 prefix of 48, 56, 64 or 96 bits leaves the bytes of the IPv4 address."""
_ALL_PLACES = (*_NAT64_PLACES, (4, 5, 6, 7), (5, 6, 7, 9), (2, 3, 4, 5))
"""With the prefixes of 32 and 40 bits, and 6to4."""


def read_address(text: str) -> Address | None:
    """The address that a text spells; None if it spells none."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def classify_address(address: str) -> Scope:
    """Whose an address is.

    `unsafe` is never an intended server: cloud metadata, link-local, groups of machines, and
    invalid addresses. An address that wraps others has the worst scope of them.
    """
    found = read_address(address.partition("%")[0])
    if found is None:
        return "unsafe"
    scopes = {_classify(one) for one in _list_destinations(found)}
    return next(scope for scope in ("unsafe", "loopback", "private", "public") if scope in scopes)


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet."""
    return classify_address(address) == "public"


def is_unsafe_address(address: str) -> bool:
    """Whether nothing may connect to an address, whatever is allowed."""
    return classify_address(address) == "unsafe"


def _classify(address: Address) -> Scope:
    if isinstance(address, ipaddress.IPv6Address) and _wraps_metadata(address.packed):
        return "unsafe"
    if str(address) in _METADATA or address.is_link_local or address.is_multicast:
        return "unsafe"
    if address.is_unspecified or str(address) == "255.255.255.255":
        return "unsafe"
    if address.is_loopback:
        return "loopback"
    if not address.is_global or any(address in network for network in _NOT_GLOBAL):
        return "private"
    return "public"


def _wraps_metadata(packed: bytes) -> bool:
    """Whether a translator with a prefix of its own would lead to a cloud's metadata."""
    return any(str(_pick(packed, places)) in _METADATA for places in _ALL_PLACES)


def _list_destinations(address: Address) -> list[Address]:
    """Where packets to an address may go: the IPv4 addresses in it, or else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    packed = address.packed
    inner = [address.ipv4_mapped, address.sixtofour]
    if address in _NAT64 or packed[8:12] in _ISATAP:
        inner.append(_pick(packed, _LOW))
    if address in _LOCAL_NAT64:
        inner += [_pick(packed, places) for places in _NAT64_PLACES]
    if address in _TEREDO:
        # The relay counts as much as the client, whose address is written inverted.
        inner += [_pick(packed, (4, 5, 6, 7)), ipaddress.IPv4Address(_invert(packed[12:]))]
    if packed[:12] == bytes(12) and int(address) > 1:
        inner.append(_pick(packed, _LOW))
    found: list[Address] = [one for one in inner if one is not None]
    is_only_a_wrapper = address.ipv4_mapped is not None or address in _NAT64
    return found if found and is_only_a_wrapper else [address, *found]


def _pick(packed: bytes, places: tuple[int, ...]) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(bytes(packed[place] for place in places))


def _invert(packed: bytes) -> bytes:
    return bytes(byte ^ 0xFF for byte in packed)
