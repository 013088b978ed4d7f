"""Confine by Landlock, where namespaces are not to be had: a plan for the launcher.

Landlock only grants, and what it grants holds for everything below. So a hidden place is left
out by granting all its neighbours, and protected files in a root are put back after the command.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from handaxe.disk.places import end_of_links
from handaxe.host.sandbox.policy import SandboxPolicy, is_below, is_readable

LAUNCHER = str(Path(__file__).with_name("landlock_launcher.py"))
_DEVICES = (
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
    "/dev/pts",
)  # fmt: skip
MOST_NEIGHBOURS = 20_000


def plan(policy: SandboxPolicy) -> bytes:
    """What is granted, for the launcher."""
    items = ["n"] if policy.network == "open" else []
    if not policy.confines_files:
        items.append("-")
    else:
        items.append("l/")
        items += [f"r{path}" for path in _readable(policy)]
        items += [f"w{path}" for path in (*policy.roots, policy.temp_directory)]
        items += [f"d{path}" for path in _DEVICES]
    return "\0".join(items).encode("utf-8", "surrogateescape")


def hides_in_roots(policy: SandboxPolicy) -> list[str]:
    """Denied places inside a root: a grant for the root covers them, so they cannot be hidden."""
    writable = (*policy.roots, policy.temp_directory)
    return [
        path
        for path in policy.deny_read
        if any(is_below(path, root) for root in writable) and not is_readable(policy, path)
    ]


def _readable(policy: SandboxPolicy) -> list[str]:
    denied = {end_of_links(path) for path in policy.deny_read}
    if not denied:
        return ["/"]
    above = {parent for path in denied for parent in _parents(path)}
    granted = [end_of_links(path) for path in policy.allow_read]
    pending = ["/"]
    while pending and len(granted) < MOST_NEIGHBOURS:
        place = pending.pop()
        if place in denied:
            continue
        if place not in above:
            granted.append(place)
            continue
        try:
            with os.scandir(place) as entries:
                # A link is followed when it is opened, and then its target is judged.
                pending += [entry.path for entry in entries if not entry.is_symlink()]
        except OSError:
            continue
    return granted


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path
