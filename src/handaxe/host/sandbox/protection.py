"""Which places inside the roots stay read-only: what exists, found by a short cached walk.

A place that exists can be made read-only. One that does not exist is either masked, or watched:
what has appeared there after a command is taken away again.
"""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from handaxe.contract.readable_files import is_below
from handaxe.disk.places import end_of_links
from handaxe.host.sandbox.placeholders import is_held
from handaxe.host.sandbox.policy import (
    GIT_ABSENT_INSIDE,
    GIT_DIRECTORY_INSIDE,
    SandboxPolicy,
)

DEEPEST = 3
MOST_DIRECTORIES = 400
MOST_RULED_DIRECTORIES = 2_000
"""For what rules with patterns name there is no deepest level."""
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
    hidden: tuple[str, ...] = ()
    """Exist in a root, and may not be read."""


class _Listing(msgspec.Struct):
    stamp: int
    found: list[str] = []
    inside: list[str] = []
    hidden: list[str] = []
    kept: list[str] = []


class Ruled(msgspec.Struct, frozen=True, kw_only=True):
    """What rules say of single files and directories in a root."""

    hides: Callable[[str], bool] | None = None
    """Whether a path may not be read."""
    keeps: Callable[[str], bool] | None = None
    """Whether a path may not be changed."""
    rests_on: object = None
    """As long as this is the same, so are the answers."""


NO_RULES = Ruled()


class ProtectionFinder:
    """Finds protected places; directories that did not change are not read again."""

    def __init__(self) -> None:
        self._listings: dict[str, _Listing] = {}
        self._key: object = None

    def hidden(self, policy: SandboxPolicy, ruled: Ruled = NO_RULES) -> tuple[str, ...]:
        """What exists in a root now and may not be read."""
        if ruled.hides is None or not policy.confines_files:
            return ()
        self._note(policy, ruled)
        return tuple(
            dict.fromkeys(
                path
                for root in policy.roots
                for path in self._walk(root, policy.protected_names, ruled).hidden
            )
        )

    def find(self, policy: SandboxPolicy, ruled: Ruled = NO_RULES) -> Protection:
        """The protected places now."""
        if not policy.confines_files:
            return Protection()
        self._note(policy, ruled)
        fixed: dict[str, None] = {}
        anchored: dict[str, None] = {}
        missing: dict[str, None] = {}
        watched: dict[str, None] = {}
        hidden: dict[str, None] = {}
        for root in policy.roots:
            found = self._walk(root, policy.protected_names, ruled)
            hidden.update(dict.fromkeys(found.hidden))
            for path in found.kept:
                kind = _kind(path)
                if kind is not None:
                    (watched if stat.S_ISLNK(kind) else fixed)[path] = None
            for path in found.found:
                _sort_in(path, policy.roots, fixed, anchored, missing, watched)
            if root.endswith(".git"):
                _inside_git(root, fixed, missing, watched)
            else:
                _add_missing(root, policy, missing, watched)
        for path in policy.own_places:
            _anchor(path, policy.roots, anchored, watched)
        for path in (*policy.deny_write, *policy.own_places):
            kind = _kind(path)
            real = path if kind is None else end_of_links(path)
            if kind is None and any(is_below(path, root) for root in policy.roots):
                watched[path] = None
            elif kind is not None and any(is_below(real, root) for root in policy.roots):
                fixed[real] = None
        # Where a root lies inside something protected, the root's own bind stands above it.
        return Protection(
            fixed=tuple(fixed),
            anchored=tuple(anchored),
            missing=tuple(missing),
            watched=tuple(watched),
            hidden=tuple(hidden),
        )

    def _note(self, policy: SandboxPolicy, ruled: Ruled) -> None:
        if (policy.protected_names, ruled.rests_on) != self._key:
            self._listings.clear()
            self._key = (policy.protected_names, ruled.rests_on)

    def _walk(self, root: str, names: frozenset[str], ruled: Ruled) -> _Listing:
        whole = _Listing(0)
        has_rules = ruled.hides is not None or ruled.keeps is not None
        level, depth, visited = [root], 0, 0
        while level and (depth <= DEEPEST or has_rules):
            following: list[str] = []
            for directory in level:
                visited += 1
                # The top of a root is always looked at, however large the rest is.
                if visited > (MOST_RULED_DIRECTORIES if has_rules else MOST_DIRECTORIES) and depth:
                    return whole
                listing = self._listing(directory, names, ruled)
                if listing is None:
                    continue
                if depth <= DEEPEST and visited <= MOST_DIRECTORIES:
                    whole.found += listing.found
                whole.hidden += listing.hidden
                whole.kept += listing.kept
                following += listing.inside
            level, depth = following, depth + 1
        return whole

    def _listing(self, directory: str, names: frozenset[str], ruled: Ruled) -> _Listing | None:
        try:
            stamp = os.stat(directory).st_mtime_ns
            known = self._listings.get(directory)
            if known is not None and known.stamp == stamp:
                return known
            listing = _Listing(stamp)
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = entry.name.lower()
                    if ruled.hides is not None and ruled.hides(entry.path):
                        listing.hidden.append(entry.path)
                    elif ruled.keeps is not None and ruled.keeps(entry.path):
                        listing.kept.append(entry.path)
                    elif name in names or (name.endswith(".git") and entry.is_dir()):
                        listing.found.append(entry.path)
                    elif name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                        listing.inside.append(entry.path)
        except OSError:
            return None
        self._listings[directory] = listing
        return listing


def _sort_in(
    path: str,
    roots: Sequence[str],
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
        target = end_of_links(path)
        # Elsewhere nothing can be written anyway, and perhaps nothing is to be seen there.
        if any(is_below(target, root) for root in roots):
            at_end = _kind(target)
            leads_nowhere = at_end is None or stat.S_ISLNK(at_end)
            (watched if leads_nowhere else fixed)[target] = None
    elif not path.lower().endswith(".git"):
        fixed[path] = None
        # Perhaps another program's placeholder, which goes away under our mount when that ends.
        if stat.S_ISSOCK(kind) or (stat.S_ISDIR(kind) and not os.listdir(path)):
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
    root = root.rstrip("/")
    try:
        present = {name.lower() for name in os.listdir(root or "/")}
    except OSError:
        return
    # Without a repository of its own, a directory with these is taken for one itself.
    bare = ("HEAD",) if ".git" in policy.masked_names and ".git" not in present else ()
    for name in (*policy.masked_names, *bare):
        if name.lower() not in present or is_held(f"{root}/{name}"):
            missing[f"{root}/{name}"] = None
    for name in sorted(policy.protected_names - present - set(policy.masked_names)):
        watched[f"{root}/{name}"] = None


def _anchor(
    path: str, roots: Sequence[str], anchored: dict[str, None], watched: dict[str, None]
) -> None:
    """Keep every directory between a root and a place in it from being moved away."""
    for above in map(str, Path(path).parents):
        if not any(above != root and is_below(above, root) for root in roots):
            return
        kind = _kind(above)
        if kind is not None:
            (anchored if stat.S_ISDIR(kind) else watched)[above] = None


def _kind(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None
