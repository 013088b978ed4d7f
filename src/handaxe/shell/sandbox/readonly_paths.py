"""The read-only paths inside the roots, found by a cached walk.

An existing path can be mounted read-only. A missing one is masked or watched: a file that appears
there is removed after the command. The same walk afterwards finds new protected names at any depth
and in any case.
"""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from handaxe.contract.readable_files import is_below
from handaxe.disk.safe_open import resolve_links
from handaxe.git.discovery import has_repository_names
from handaxe.git.submodules import (
    find_inner_repositories,
    find_link,
    find_redirecting_links,
    list_names,
)
from handaxe.shell.sandbox.mount_points import is_held
from handaxe.shell.sandbox.path_walk import OpenUp, allow_directory_access
from handaxe.shell.sandbox.sandbox_policy import (
    GIT_ABSENT_INSIDE,
    GIT_DIRECTORY_INSIDE,
    SandboxPolicy,
    drop_replaced_paths,
)
from handaxe.shell.sandbox.saved_states import compute_stamp
from handaxe.text.secrets import fold_name

DEEPEST = 3
MOST_MOUNTED = 60
"""Deeper protected paths, or more than this number, are watched instead, because each mount costs
time.
"""
MOST_DIRECTORIES = 20_000
_NOT_ENTERED = frozenset({"node_modules", ".venv", "venv", "__pycache__", ".tox"})
"""Directories filled by tools, from packages that contain such names."""


class ProtectedNames(msgspec.Struct, frozen=True, kw_only=True):
    """Every protected name in the roots."""

    found: frozenset[str] = frozenset()
    repositories: frozenset[str] = frozenset()
    """Directories that git treats as repositories; some are also names."""
    is_cut: bool = False
    """Whether there are too many directories to check all."""


NO_NAMES = ProtectedNames()


class Protection(msgspec.Struct, frozen=True, kw_only=True):
    """The current protected paths of one policy."""

    fixed: tuple[str, ...] = ()
    """Existing paths to mount read-only."""
    anchored: tuple[str, ...] = ()
    """Writable directories that must not be renamed, because they contain a read-only path."""
    missing: tuple[str, ...] = ()
    """Missing paths to mask."""
    watched: tuple[str, ...] = ()
    """Paths that cannot be masked: links, deep ones, and names that must not appear."""
    hidden: tuple[str, ...] = ()
    """Existing paths in a root that may not be read."""
    names: ProtectedNames = NO_NAMES


class _Listing(msgspec.Struct):
    inode: int = 0
    changed_ns: int = 0
    """The directory's change time; 0 if it is not reliable."""
    found: list[str] = []
    inside: list[str] = []
    hidden: list[str] = []
    kept: list[str] = []
    repositories: list[str] = []
    has_names: bool = False
    """Whether it has entries other than directories."""
    is_cut: bool = False


class RootPathRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules about single files and directories in a root."""

    hides: Callable[[str], bool] | None = None
    """Whether a path may not be read."""
    keeps: Callable[[str], bool] | None = None
    """Whether a path may not be changed."""
    rests_on: object = None
    """The answers stay valid while this is unchanged."""


NO_RULES = RootPathRules()


class ProtectionFinder:
    """Finds protected paths; unchanged directories are not read again."""

    def __init__(self) -> None:
        self._listings: dict[str, _Listing] = {}
        self._key: object = None

    def hidden(self, policy: SandboxPolicy, ruled: RootPathRules = NO_RULES) -> tuple[str, ...]:
        """Existing paths in a root that may not be read."""
        if ruled.hides is None or not policy.confines_files:
            return ()
        self._note(policy, ruled)
        found = [path for root in policy.roots for path in self._walk(root, policy, ruled).hidden]
        return tuple(dict.fromkeys(found))

    def names(self, policy: SandboxPolicy, ruled: RootPathRules = NO_RULES) -> ProtectedNames:
        """Every existing protected name, also in directories that a command closed."""
        policy = drop_replaced_paths(policy)
        self._note(policy, ruled)
        with allow_directory_access() as open_up:
            walks = [self._walk(root, policy, ruled, open_up) for root in policy.roots]
            return _collect_names(policy, walks)

    def find(self, policy: SandboxPolicy, ruled: RootPathRules = NO_RULES) -> Protection:
        """The current protected paths."""
        if not policy.confines_files:
            return Protection()
        self._note(policy, ruled)
        sorting = _Sorting(policy.roots)
        hidden: dict[str, None] = {}
        walks: list[_Listing] = []
        for root in policy.roots:
            found = self._walk(root, policy, ruled)
            walks.append(found)
            hidden.update(dict.fromkeys(found.hidden))
            for path in found.kept:
                kind = _read_mode(path)
                if kind is not None:
                    (sorting.watched if stat.S_ISLNK(kind) else sorting.fixed)[path] = None
            for path in found.found:
                sorting.add(path, root)
            for path in found.repositories:
                sorting.add_repository(path, root)
            if root.endswith(".git"):
                sorting.add_git(root)
            else:
                _add_missing(root, policy, sorting.missing)
        for path in policy.own_places:
            _add_anchors(path, policy.roots, sorting.anchored, sorting.watched)
        for path in (*policy.deny_write, *policy.own_places):
            kind = _read_mode(path)
            real = path if kind is None else resolve_links(path)
            if kind is None and any(is_below(path, root) for root in policy.roots):
                sorting.watched[path] = None
            elif kind is not None and any(is_below(real, root) for root in policy.roots):
                sorting.fixed[real] = None
        sorting.keep_to_directories()
        # If a root is inside something protected, the root's own bind is mounted over it.
        return Protection(
            fixed=tuple(sorting.fixed),
            anchored=tuple(sorting.anchored),
            missing=tuple(sorting.missing),
            watched=tuple(sorting.watched),
            hidden=tuple(hidden),
            names=_collect_names(policy, walks),
        )

    def _note(self, policy: SandboxPolicy, ruled: RootPathRules) -> None:
        key = (
            policy.protected_names,
            policy.protected_endings,
            policy.protected_pairs,
            ruled.rests_on,
        )
        if key != self._key:
            self._listings.clear()
            self._key = key

    def _walk(
        self, root: str, policy: SandboxPolicy, ruled: RootPathRules, open_up: OpenUp | None = None
    ) -> _Listing:
        whole = _Listing()
        is_shallow = root in policy.shallow_roots
        has_rules = ruled.hides is not None or ruled.keeps is not None
        level, depth, visited = [root], 0, 0
        while level and (depth <= DEEPEST or has_rules or not is_shallow):
            following: list[str] = []
            for directory in level:
                visited += 1
                if visited > MOST_DIRECTORIES:
                    whole.is_cut = True
                    return whole
                listing = self._read_listing(directory, policy, ruled, open_up)
                if listing is None:
                    continue
                if listing.inside:
                    following += listing.inside
                if listing.has_names:
                    whole.hidden += listing.hidden
                    whole.kept += listing.kept
                    if depth <= DEEPEST or not is_shallow:
                        whole.found += listing.found
                    if not is_shallow:
                        whole.repositories += listing.repositories
            level, depth = following, depth + 1
        return whole

    def _read_listing(
        self, directory: str, policy: SandboxPolicy, ruled: RootPathRules, open_up: OpenUp | None
    ) -> _Listing | None:
        try:
            found = os.stat(directory)
            known = self._listings.get(directory)
            if known is not None and (known.changed_ns, known.inode) == (
                found.st_ctime_ns,
                found.st_ino,
            ):
                return known
            is_settled = bool(compute_stamp(found))
            listing = _Listing(found.st_ino, found.st_ctime_ns if is_settled else 0)
            _read_into(listing, directory, policy, ruled)
        except PermissionError:
            if open_up is None or not open_up(directory):
                return None
            return self._read_listing(directory, policy, ruled, None)
        except OSError:
            return None
        self._listings[directory] = listing
        return listing


def _read_into(
    listing: _Listing, directory: str, policy: SandboxPolicy, ruled: RootPathRules
) -> None:
    above = fold_name(directory.rpartition("/")[2])
    names: set[str] = set()
    with os.scandir(directory) as entries:
        for entry in entries:
            name = fold_name(entry.name)
            names.add(entry.name)
            is_protected = (
                name in policy.protected_names
                or (above, name) in policy.protected_pairs
                or (policy.protected_endings and name.endswith(policy.protected_endings))
                or name.endswith(".git")
            )
            # A file with a repository's ending is just a file.
            if is_protected and name.endswith(".git") and name != ".git":
                is_protected = entry.is_dir()
            if ruled.hides is not None and ruled.hides(entry.path):
                listing.hidden.append(entry.path)
            elif ruled.keeps is not None and ruled.keeps(entry.path):
                listing.kept.append(entry.path)
            elif is_protected:
                listing.found.append(entry.path)
            elif name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                listing.inside.append(entry.path)
    if has_repository_names(names):
        listing.repositories.append(directory)
    listing.has_names = bool(
        listing.found or listing.hidden or listing.kept or listing.repositories
    )


class _Sorting:
    """Protected paths, sorted by how they are protected."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self.fixed: dict[str, None] = {}
        self.anchored: dict[str, None] = {}
        self.missing: dict[str, None] = {}
        self.watched: dict[str, None] = {}

    def add(self, path: str, root: str) -> None:
        """Add an existing protected name."""
        kind = _read_mode(path)
        if kind is None or is_held(path):
            return
        is_far = self._is_far(path, root)
        if stat.S_ISLNK(kind):
            self._add_link(path)
        elif path.lower().endswith(".git") and stat.S_ISDIR(kind):
            self.add_repository(path, root)
        elif is_far:
            self.watched[path] = None
        else:
            self.fixed[path] = None
            # Perhaps another program's placeholder, which goes away under our mount when that ends.
            if stat.S_ISSOCK(kind) or (stat.S_ISDIR(kind) and not list_names(path)):
                self.watched[path] = None
            worktrees = f"{path}/worktrees"
            if path.endswith("/.claude") and os.path.isdir(worktrees):
                self.anchored[worktrees] = None

    def add_repository(self, path: str, root: str) -> None:
        """Add a directory that git treats as a repository."""
        is_far = self._is_far(path, root)
        if not is_far and path not in self._roots:
            self.anchored[path] = None
        self.add_git(path, is_far=is_far)

    def keep_to_directories(self) -> None:
        """Protect links themselves instead of the paths behind them.

        A mount through a link would open its target.
        """
        known: dict[str, bool] = {}
        for places in (self.fixed, self.anchored, self.missing, self.watched):
            for path in tuple(places):
                link = find_link(path, self._roots, known)
                if link is not None and (link != path or places is not self.watched):
                    del places[path]
                    self.watched[link] = None

    def _is_far(self, path: str, root: str) -> bool:
        return path.count("/") - root.count("/") > DEEPEST + 1 or len(self.fixed) > MOST_MOUNTED

    def _add_link(self, path: str) -> None:
        self.watched[path] = None
        target = resolve_links(path)
        # Other directories are not writable anyway, and may not be visible.
        if any(is_below(target, root) for root in self._roots):
            at_end = _read_mode(target)
            leads_nowhere = at_end is None or stat.S_ISLNK(at_end)
            (self.watched if leads_nowhere else self.fixed)[target] = None

    def add_git(self, git: str, *, is_far: bool = False) -> None:
        """Add what makes git run programs, in a repository and in those inside it."""
        for place in find_inner_repositories(git):
            for name in (*GIT_DIRECTORY_INSIDE, *GIT_ABSENT_INSIDE):
                path = f"{place}/{name}"
                kind = _read_mode(path)
                if kind is None or is_held(path):
                    is_masked = place == git and name == "hooks" and not is_far
                    (self.missing if is_masked else self.watched)[path] = None
                elif is_far or stat.S_ISLNK(kind):
                    self.watched[path] = None
                else:
                    self.fixed[path] = None


def _collect_names(policy: SandboxPolicy, walks: Sequence[_Listing]) -> ProtectedNames:
    found = frozenset(
        path
        for root, walk in zip(policy.roots, walks, strict=True)
        for path in walk.found
        if root not in policy.shallow_roots or path.rpartition("/")[0] == root
    )
    named = [path for path in found if path.lower().endswith(".git") and os.path.isdir(path)]
    named += [root for root in policy.roots if root.endswith(".git")]
    shaped = [path for walk in walks for path in walk.repositories]
    inside = [place for path in (*named, *shaped) for place in find_inner_repositories(path)]
    found |= {link for place in inside for link in find_redirecting_links(place)}
    return ProtectedNames(
        found=found, repositories=frozenset(inside), is_cut=any(walk.is_cut for walk in walks)
    )


def _add_missing(root: str, policy: SandboxPolicy, missing: dict[str, None]) -> None:
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


def _add_anchors(
    path: str, roots: Sequence[str], anchored: dict[str, None], watched: dict[str, None]
) -> None:
    """Protect every directory between a root and a path in it from being renamed."""
    for above in map(str, Path(path).parents):
        if not any(above != root and is_below(above, root) for root in roots):
            return
        kind = _read_mode(above)
        if kind is not None:
            (anchored if stat.S_ISDIR(kind) else watched)[above] = None


def _read_mode(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None
