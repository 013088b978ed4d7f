"""Addresses of the network as numbers: whose they are, whatever they are wrapped in."""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset({"100.100.100.200", "168.63.129.16", "fd00:ec2::254"})
"""Where clouds keep the credentials of a machine, outside the link-local range."""


def read_address(text: str) -> Address | None:
    """The address that a text spells; None if it spells none."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet."""
    found = _unwrap(address)
    return found is not None and found.is_global and not found.is_multicast


def is_unsafe_address(address: str) -> bool:
    """Whether an address is never a server that somebody means: metadata, link-local, all of them.

    What cannot be read is none either.
    """
    found = _unwrap(address)
    if found is None or found.is_link_local or found.is_multicast or found.is_unspecified:
        return True
    return str(found) in _METADATA


def _unwrap(address: str) -> Address | None:
    found = read_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if inner is None and found in ipaddress.IPv6Network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return found
