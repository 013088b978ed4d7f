"""The access of a confined command, as one value."""

import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from handaxe.contract.readable_files import ReadableFiles, is_below
from handaxe.disk.safe_open import find_links, resolve_links

NetworkState = Literal["off", "listed", "open"]

GIT_DIRECTORY_INSIDE = ("config", "hooks", "info/attributes")
"""Files that make git run programs: read-only in every repository."""
GIT_ABSENT_INSIDE = ("commondir", "config.worktree")
"""Files that could redirect git to another configuration; they must not appear."""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command may write and read, and which hosts it may reach. Paths are absolute."""

    roots: tuple[str, ...]
    """Directories and files it may write to."""
    shallow_roots: tuple[str, ...] = ()
    """Roots such as caches, where new protected names count only at the top."""
    temp_directory: str
    """Its own directory for temporary files, also visible as `/tmp`."""
    aside_directory: str
    """Where forbidden new files are moved; the command has no access."""
    own_places: tuple[str, ...] = ()
    """handaxe's own data and settings: never writable, and directories above them cannot be
    renamed.
    """
    deny_write: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()
    """Paths it may not read; `/`: everything that no other list names."""
    allow_read: tuple[str, ...] = ()
    """Exceptions inside denied paths: the more specific of two paths wins."""
    home_directory: str | None = None
    """Exists inside, possibly as an empty directory."""
    protected_names: frozenset[str] = frozenset()
    """Names that are read-only anywhere in a root; in lower case."""
    protected_endings: tuple[str, ...] = ()
    """Suffixes of such names."""
    protected_pairs: frozenset[tuple[str, str]] = frozenset()
    """Such names that count only in a directory with the given name."""
    masked_names: tuple[str, ...] = ()
    """Names at the top of a root that cannot be created while they are missing."""
    confines_files: bool = True
    network: NetworkState = "off"
    allowed_domains: tuple[str, ...] = ()
    denied_domains: tuple[str, ...] = ()
    unix_sockets: tuple[str, ...] = ()
    """Sockets it may connect to."""
    all_unix_sockets: bool = False
    local_binding: bool = False

    @property
    def has_unix_sockets(self) -> bool:
        """Whether a command may open Unix sockets."""
        return self.all_unix_sockets or bool(self.unix_sockets)


def drop_replaced_paths(policy: SandboxPolicy) -> SandboxPolicy:
    """The policy without paths that a command replaced by a link to another place.

    A command that can write next to a path can replace it, and the next command would write to the
    link's target.
    """
    places = (*policy.roots, *policy.unix_sockets)
    writable = (*policy.roots, policy.temp_directory)
    exchanged = {path for path in places if _has_link_inside(path, writable)}
    if not exchanged:
        return policy
    return msgspec.structs.replace(
        policy,
        roots=tuple(path for path in policy.roots if path not in exchanged),
        unix_sockets=tuple(path for path in policy.unix_sockets if path not in exchanged),
    )


def _has_link_inside(path: str, writable: tuple[str, ...]) -> bool:
    """Whether a link on the way to a path, or the path itself, is inside one of these."""
    around = [place for place in writable if place != path and is_below(path, place)]
    return bool(around) and any(
        place != root and is_below(place, root) for place, _ in find_links(path) for root in around
    )


def is_readable(policy: SandboxPolicy, path: str) -> bool:
    """Whether the policy allows reading a path; the most specific entry wins, deny on equality."""
    files = find_readable_files(policy)
    return files is None or files.can_read(path)


def is_closed(policy: SandboxPolicy) -> bool:
    """Whether only listed paths can be read."""
    return policy.confines_files and "/" in policy.deny_read


@lru_cache(maxsize=16)
def find_readable_files(policy: SandboxPolicy) -> ReadableFiles | None:
    """The files that commands can read, under all names; None if reading is not limited."""
    if not policy.confines_files:
        return None
    shown = (*list_visible_paths(policy), *policy.roots, policy.temp_directory)
    return ReadableFiles(shown=_add_link_targets(shown), hidden=_add_link_targets(policy.deny_read))


@lru_cache(maxsize=16)
def list_hidden_paths(policy: SandboxPolicy) -> tuple[str, ...]:
    """The paths to hide; none if nothing is shown by default."""
    if not is_closed(policy):
        return policy.deny_read
    files = find_readable_files(policy)
    shown = files.shown if files is not None else ()
    return tuple(
        path
        for path in policy.deny_read
        if path != "/"
        and any(is_below(name, place) for name in (path, resolve_links(path)) for place in shown)
    )


@lru_cache(maxsize=16)
def list_visible_paths(policy: SandboxPolicy) -> tuple[str, ...]:
    """The paths of `allow_read` that commands cannot replace.

    A command can replace a writable path by a link, whose target the next command would see. A path
    in a root is readable as part of it anyway.
    """
    return tuple(path for path in policy.allow_read if not _is_in_reach(path, policy))


def _is_in_reach(path: str, policy: SandboxPolicy) -> bool:
    writable = (*policy.roots, policy.temp_directory)
    if any(is_below(place, root) for place, _ in find_links(path) for root in writable):
        return True
    inside = [root for root in writable if is_below(path, root)]
    # What is hidden in a root cannot be written there either.
    hidden = [place for place in policy.deny_read if is_below(path, place)]
    return any(not any(is_below(place, root) for place in hidden) for root in inside)


def _add_link_targets(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths and their link targets."""
    return tuple(dict.fromkeys((*paths, *map(resolve_links, paths))))


_MOST_POLICIES = 16
_SETTLED_NS = 50_000_000
_filled: set[str] = set()
"""Shown directories with content, which are not checked again."""


def find_empty(allowed: Sequence[str]) -> frozenset[str]:
    """The empty directories."""
    found = frozenset(path for path in allowed if path not in _filled and _is_empty(path))
    _filled.update(path for path in allowed if path not in found)
    return found


class _Hidden(NamedTuple):
    rests_on: dict[str, tuple[int, int, int] | None]
    """The checked state: while it is unchanged, so is the answer."""
    files: tuple[str, ...]
    directories: tuple[str, ...]


_hidden_now: dict[SandboxPolicy, _Hidden] = {}


def find_hidden(policy: SandboxPolicy) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The existing files and directories to hide."""
    known = _hidden_now.get(policy)
    if known is None or any(_read_stamp(path) != stamp for path, stamp in known.rests_on.items()):
        known = _look_for_hidden(policy)
        newest = max((stamp[1] for stamp in known.rests_on.values() if stamp), default=0)
        if time.time_ns() - newest < _SETTLED_NS:
            # It could change again without getting another time.
            return known.files, known.directories
        while len(_hidden_now) >= _MOST_POLICIES:
            del _hidden_now[next(iter(_hidden_now))]
        _hidden_now[policy] = known
    return known.files, known.directories


def _look_for_hidden(policy: SandboxPolicy) -> _Hidden:
    files: list[str] = []
    directories: list[str] = []
    rests_on: dict[str, tuple[int, int, int] | None] = {}
    for path in list_hidden_paths(policy):
        above = _find_existing_parent(path)
        rests_on[above] = _read_stamp(above)
        if not os.path.lexists(path):
            continue
        real = resolve_links(path)
        # A link, or a part of its path, may lead elsewhere the next time.
        rests_on |= {
            place: _read_stamp(place) for place in (path, real, real.rpartition("/")[0] or "/")
        }
        with suppress(OSError):
            found = os.stat(real)
            if stat.S_ISDIR(found.st_mode):
                # Where nothing is and nothing can be put, nothing has to be hidden.
                if any(is_below(real, root) for root in policy.roots) or not _is_empty(real):
                    directories.append(real)
            elif found.st_size and _can_read(real, found):
                files.append(real)
    return _Hidden(rests_on, tuple(files), tuple(directories))


def _is_empty(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _find_existing_parent(path: str) -> str:
    """The existing directory above a path: creating something on the way changes it."""
    above = path.rpartition("/")[0]
    while above and not os.path.isdir(above):
        above = above.rpartition("/")[0]
    return above or "/"


def _read_stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_ctime_ns, found.st_size)


def _can_read(path: str, found: os.stat_result) -> bool:
    """Whether a command could read a file, possibly after changing its mode."""
    return found.st_uid == os.geteuid() or os.access(path, os.R_OK)
