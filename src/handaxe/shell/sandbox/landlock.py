"""Landlock sandboxes, where namespaces are not available: a plan for the launcher.

Landlock only grants access, to everything below a path. So a hidden path is left out by granting
all its siblings, and protected files in a root are restored after the command.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from handaxe.contract.readable_files import is_below
from handaxe.disk.safe_open import resolve_links
from handaxe.shell.sandbox.sandbox_policy import (
    SandboxPolicy,
    is_closed,
    is_readable,
    list_hidden_paths,
    list_visible_paths,
)

LAUNCHER = str(Path(__file__).parents[2] / "process" / "landlock_launcher.py")
_DEVICES = (
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
)  # fmt: skip
"""Not `/dev/pts`: a grant for new terminals would also apply to the user's terminals."""
MOST_NEIGHBOURS = 20_000


def build_plan(policy: SandboxPolicy) -> bytes:
    """The grants, for the launcher."""
    items = ["n"] if policy.network == "open" else []
    if not policy.confines_files:
        items.append("-")
    else:
        if not is_closed(policy):
            items.append("l/")
        items += [f"r{path}" for path in _list_readable(policy)]
        items += [f"w{path}" for path in (*policy.roots, policy.temp_directory)]
        items += [f"d{path}" for path in _DEVICES]
    return "\0".join(items).encode("utf-8", "surrogateescape")


def find_denied_in_roots(policy: SandboxPolicy) -> list[str]:
    """Denied paths inside a root: a grant for the root covers them, so they cannot be hidden."""
    writable = (*policy.roots, policy.temp_directory)
    return [
        path
        for path in policy.deny_read
        if any(is_below(path, root) for root in writable) and not is_readable(policy, path)
    ]


def _list_readable(policy: SandboxPolicy) -> list[str]:
    # A grant for a place holds for all of it: where something in it is hidden, its neighbours are
    # granted instead, which costs time.
    denied = {resolve_links(path) for path in list_hidden_paths(policy) if _can_be_read(path)}
    if is_closed(policy):
        denied.add("/")
    if not denied:
        return ["/"]
    above = {parent for path in denied for parent in _list_parents(path)}
    granted: list[str] = []
    pending = [resolve_links(path) for path in list_visible_paths(policy) if path != "/dev"]
    pending.append("/")
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
    return list(dict.fromkeys(granted))


def _can_be_read(path: str) -> bool:
    """Whether it could be read without a sandbox; a missing path may be created later."""
    try:
        return os.stat(path).st_uid == os.geteuid() or any(
            os.access(path, how) for how in (os.R_OK, os.X_OK)
        )
    except PermissionError:
        return False
    except OSError:
        return True


def _list_parents(path: str) -> Iterator[str]:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def list_shortcomings(policy: SandboxPolicy) -> tuple[str, ...]:
    """Parts of a policy that Landlock cannot enforce."""
    notes: list[str] = []
    if policy.network == "listed":
        notes.append("Landlock cannot distinguish hosts, so commands have no network.")
    if policy.local_binding and policy.network != "open":
        notes.append("Landlock provides no separate network, so commands cannot listen.")
    if policy.confines_files:
        notes.append("Protected files in working directories are restored after a command.")
    return tuple(notes)
