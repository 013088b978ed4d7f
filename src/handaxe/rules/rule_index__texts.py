"""Comparing a rule's specifier with the texts of a call: names, hosts, input values.

Commands are compared by the shell package, paths by `scopes`.
"""

import re

_TOO_LONG_TO_SPELL = 1e18
_HOST = r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]"


def is_wildcard_match(pattern: str, text: str) -> bool:
    """Whether `text` is `pattern`, where each `*` stands for any characters; linear time."""
    first, *later = pattern.split("*")
    if not later:
        return pattern == text
    *middle, last = later
    if not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at <= end


def is_prefix_match(pattern: str, text: str) -> bool:
    """As `fits`, but a ` *` or `:*` at the end also stands for nothing, at a word's end."""
    for ending in (" *", ":*"):
        if pattern.endswith(ending):
            head = pattern.removesuffix(ending)
            return is_wildcard_match(head, text) or is_wildcard_match(head + " *", text)
    return is_wildcard_match(pattern, text)


def is_domain_match(pattern: str, text: str) -> bool:
    """Whether the host that `text` names, or whose address it is, lies in a rule's domain."""
    host = extract_host(text)
    if host is None:
        return False
    wanted = pattern.strip().lower().removesuffix(".")
    if wanted == "*":
        return True
    if wanted.startswith("*."):
        base = wanted[2:].split(".")
        parts = host.split(".")
        below = parts[-len(base) :]
        return len(parts) > len(base) and all(map(is_wildcard_match, base, below))
    wanted_parts, parts = wanted.split("."), host.split(".")
    return len(wanted_parts) == len(parts) and all(map(is_wildcard_match, wanted_parts, parts))


def is_host_match(pattern: str, host: str, *, allows: bool) -> bool:
    """Whether a host that a call would reach lies in a rule's domain.

    What is near (this machine, its network, any address) is allowed only by a rule that spells it
    out: who allows all of something has the internet in mind.
    """
    if allows and "*" in pattern:
        from handaxe.text.urls import is_local_name

        if is_local_name(host):
            return False
    return is_domain_match(pattern, host)


def extract_host(text: str) -> str | None:
    """The host of an address or of a bare host name; None where two readers could disagree."""
    text = text.removeprefix("domain:")
    if "\\" in text or not text.isascii() or any(char <= " " for char in text):
        return None
    _, scheme, rest = text.partition("://")
    authority = re.split(r"[/?#]", rest if scheme else text, maxsplit=1)[0]
    host = authority.rpartition("@")[2].lower()
    host = re.sub(r":\d*\Z", "", host) if not host.endswith("]") else host
    host = host.removesuffix(".")
    return host if re.fullmatch(_HOST, host) else None


def is_value_match(pattern: str, value: object) -> bool:
    """Whether a scalar of a call's input is the value that a rule names."""
    if isinstance(value, bool):
        spelled = "true" if value else "false"
    elif value is None:
        spelled = "null"
    elif isinstance(value, str):
        spelled = value
    elif isinstance(value, (int, float)) and abs(value) < _TOO_LONG_TO_SPELL:
        spelled = str(value)
    else:
        return False
    return is_wildcard_match(pattern, spelled)
