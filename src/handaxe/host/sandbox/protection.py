"""Which places inside the roots stay read-only: what exists, found by a short cached walk.

A place that exists can be made read-only. One that does not exist is either masked, or watched:
what has appeared there after a command is taken away again.
"""

import os
import stat

import msgspec

from handaxe.host.sandbox.placeholders import is_held
from handaxe.host.sandbox.policy import (
    GIT_ABSENT_INSIDE,
    GIT_DIRECTORY_INSIDE,
    SandboxPolicy,
    is_below,
)

DEEPEST = 3
MOST_DIRECTORIES = 400
_NOT_ENTERED = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", "target", "build", "dist", ".tox", ".cache"}
)


class Protection(msgspec.Struct, frozen=True, kw_only=True):
    """The protected places of one policy, as they are now."""

    fixed: tuple[str, ...] = ()
    """Exist, and are made read-only."""
    anchored: tuple[str, ...] = ()
    """Stay writable, but may not be moved aside: something in them is read-only."""
    missing: tuple[str, ...] = ()
    """Do not exist, and are masked."""
    watched: tuple[str, ...] = ()
    """Cannot be masked: links, and names that must only not appear."""


class _Listing(msgspec.Struct):
    stamp: int
    found: list[str]
    inside: list[str]


class ProtectionFinder:
    """Finds protected places; directories that did not change are not read again."""

    def __init__(self) -> None:
        self._listings: dict[str, _Listing] = {}

    def find(self, policy: SandboxPolicy) -> Protection:
        """The protected places now."""
        if not policy.confines_files:
            return Protection()
        fixed: dict[str, None] = {}
        anchored: dict[str, None] = {}
        missing: dict[str, None] = {}
        watched: dict[str, None] = {}
        for root in policy.roots:
            for path in self._walk(root, policy.protected_names):
                _sort_in(path, fixed, anchored, missing, watched)
            _add_missing(root, policy, missing, watched)
        for path in policy.deny_write:
            kind = _kind(path)
            if kind is None and any(is_below(path, root) for root in policy.roots):
                watched[path] = None
            elif kind is not None:
                fixed[os.path.realpath(path)] = None
        # Where a root lies inside something protected, the root's own bind stands above it.
        return Protection(
            fixed=tuple(fixed),
            anchored=tuple(anchored),
            missing=tuple(missing),
            watched=tuple(watched),
        )

    def _walk(self, root: str, names: frozenset[str]) -> list[str]:
        found: list[str] = []
        level = [root]
        visited = 0
        for at in range(DEEPEST + 1):
            following: list[str] = []
            for directory in level:
                visited += 1
                # The top of a root is always looked at, however large the rest is.
                if visited > MOST_DIRECTORIES and at:
                    return found
                listing = self._listing(directory, names)
                if listing is not None:
                    found += listing.found
                    following += listing.inside
            level = following
        return found

    def _listing(self, directory: str, names: frozenset[str]) -> _Listing | None:
        try:
            stamp = os.stat(directory).st_mtime_ns
            known = self._listings.get(directory)
            if known is not None and known.stamp == stamp:
                return known
            listing = _Listing(stamp, [], [])
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = entry.name.lower()
                    if name in names or (name.endswith(".git") and entry.is_dir()):
                        listing.found.append(entry.path)
                    elif name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                        listing.inside.append(entry.path)
        except OSError:
            return None
        self._listings[directory] = listing
        return listing


def _sort_in(
    path: str,
    fixed: dict[str, None],
    anchored: dict[str, None],
    missing: dict[str, None],
    watched: dict[str, None],
) -> None:
    kind = _kind(path)
    if kind is None or is_held(path):
        return
    if stat.S_ISLNK(kind):
        watched[path] = None
        fixed[os.path.realpath(path)] = None
    elif not path.lower().endswith(".git"):
        fixed[path] = None
        # Perhaps another program's placeholder, which goes away under our mount when that ends.
        if stat.S_ISDIR(kind) and not os.listdir(path):
            watched[path] = None
        worktrees = f"{path}/worktrees"
        if path.endswith("/.claude") and os.path.isdir(worktrees):
            anchored[worktrees] = None
    elif not stat.S_ISDIR(kind):
        fixed[path] = None
    else:
        anchored[path] = None
        _inside_git(path, fixed, missing, watched)


def _inside_git(
    git: str, fixed: dict[str, None], missing: dict[str, None], watched: dict[str, None]
) -> None:
    places = [git]
    for group in ("modules", "worktrees"):
        try:
            places += [entry.path for entry in os.scandir(f"{git}/{group}") if entry.is_dir()]
        except OSError:
            continue
    for place in places:
        for name in GIT_DIRECTORY_INSIDE:
            path = f"{place}/{name}"
            kind = _kind(path)
            if kind is None or is_held(path):
                if place == git and name == "hooks":
                    missing[path] = None
                else:
                    watched[path] = None
            elif stat.S_ISLNK(kind):
                watched[path] = None
            else:
                fixed[path] = None
    for name in GIT_ABSENT_INSIDE:
        path = f"{git}/{name}"
        if _kind(path) is None:
            watched[path] = None
        else:
            fixed[path] = None


def _add_missing(
    root: str,
    policy: SandboxPolicy,
    missing: dict[str, None],
    watched: dict[str, None],
) -> None:
    if not os.path.isdir(root):
        return
    try:
        present = {name.lower() for name in os.listdir(root)}
    except OSError:
        return
    for name in policy.masked_names:
        if name.lower() not in present or is_held(f"{root}/{name}"):
            missing[f"{root}/{name}"] = None
    for name in sorted(policy.protected_names - present - set(policy.masked_names)):
        watched[f"{root}/{name}"] = None


def _kind(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None
