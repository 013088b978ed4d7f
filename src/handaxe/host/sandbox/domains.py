"""Which hosts a list allows. Names are compared by whole labels, never by a part of their text."""

import ipaddress
import re
from collections.abc import Iterable, Sequence

_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_LOCAL_ENDINGS = frozenset({"local", "internal", "lan", "test", "intranet", "corp", "home"})


def normalize_host(host: str) -> str | None:
    """A host name in the one form that is compared; None if it is no proper one."""
    name = host.lower()
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if ":" in name:
        found = _address(name) if "%" not in name else None
        return str(found) if found is not None else None
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    name = name.removesuffix(".")
    return name if len(name) <= 253 and _NAME.fullmatch(name) else None


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a pattern of a list."""
    body = pattern.removeprefix("*.")
    if pattern == "*" or (body and "*" not in body and normalize_host(body) is not None):
        return None
    return f"{pattern!r} is not a host: write `example.com`, `*.example.com` or `*`"


def covers(pattern: str, host: str) -> bool:
    """Whether a pattern names a normalized host; `*.x` is what lies below `x`."""
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        base = normalize_host(pattern[2:])
        return base is not None and host.endswith(f".{base}") and not is_address(host)
    return normalize_host(pattern) == host


def is_address(host: str) -> bool:
    """Whether a normalized host is an address, in any spelling that a resolver takes for one."""
    return _address(host) is not None or _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def refusal(host: str, allowed: Sequence[str], denied: Sequence[str]) -> str | None:
    """Why a normalized host may not be reached; None if it may."""
    if any(covers(pattern, host) for pattern in denied):
        return "is in sandbox.network.deniedDomains"
    spelled_out = [pattern for pattern in allowed if "*" not in pattern]
    if is_address(host):
        if any(covers(pattern, host) for pattern in spelled_out):
            return None
        return "is an address; only addresses that sandbox.network.allowedDomains spells out count"
    if any(covers(pattern, host) for pattern in allowed):
        return None
    return "is not in sandbox.network.allowedDomains"


def may_be_private(host: str, allowed: Iterable[str]) -> bool:
    """Whether a listed host is meant to lie in the user's own network."""
    is_listed = any(covers(pattern, host) for pattern in allowed if "*" not in pattern)
    labels = host.split(".")
    is_local = len(labels) == 1 or labels[-1] in _LOCAL_ENDINGS or is_address(host)
    return is_listed and is_local


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet, whatever it is wrapped in."""
    found = _address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if inner is None and found in ipaddress.IPv6Network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return found is not None and found.is_global and not found.is_multicast


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
