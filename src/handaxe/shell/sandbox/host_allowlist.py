"""Allowed hosts. Names are compared by whole labels, never by a part of their text."""

import re
from collections.abc import Iterable, Sequence

from handaxe.text.ip_addresses import read_address
from handaxe.text.urls import is_address, is_local_name

_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")


def normalize_host(host: str) -> str | None:
    """A host name in its normalized form; None if it is not valid."""
    name = host.lower()
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if ":" in name:
        found = read_address(name) if "%" not in name else None
        return str(found) if found is not None else None
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    name = name.removesuffix(".")
    return name if len(name) <= 253 and _NAME.fullmatch(name) else None


def find_pattern_problem(pattern: str) -> str | None:
    """The problem of a pattern."""
    body = pattern.removeprefix("*.")
    if pattern == "*" or (body and "*" not in body and normalize_host(body) is not None):
        return None
    return f"{pattern!r} is not a host: write `example.com`, `*.example.com` or `*`"


def is_host_match(pattern: str, host: str) -> bool:
    """Whether a pattern matches a normalized host; `*.x` matches subdomains of `x`."""
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        base = normalize_host(pattern[2:])
        return base is not None and host.endswith(f".{base}") and not is_address(host)
    return normalize_host(pattern) == host


def explain_denial(host: str, denied: Iterable[str]) -> str | None:
    """Why a normalized host is blocked, whatever is allowed."""
    is_denied = any(is_host_match(pattern, host) for pattern in denied)
    return "is in sandbox.network.deniedDomains" if is_denied else None


def explain_refusal(host: str, allowed: Sequence[str], denied: Sequence[str]) -> str | None:
    """Why a normalized host is not allowed; None if it is."""
    if (why := explain_denial(host, denied)) is not None:
        return why
    spelled_out = [pattern for pattern in allowed if "*" not in pattern]
    if is_address(host):
        if any(is_host_match(pattern, host) for pattern in spelled_out):
            return None
        return "is an address; addresses need an exact entry in sandbox.network.allowedDomains"
    if any(is_host_match(pattern, host) for pattern in allowed):
        return None
    return "is not in sandbox.network.allowedDomains"


def can_be_private(host: str, allowed: Iterable[str]) -> bool:
    """Whether a listed host is meant to be in the user's own network."""
    is_listed = any(is_host_match(pattern, host) for pattern in allowed if "*" not in pattern)
    return is_listed and is_local_name(host)
