"""The entries of a small tree, read directory by directory without starting ripgrep."""

import os
from collections import deque
from collections.abc import Callable
from itertools import islice

from handaxe.contract.ports.search import VERSION_CONTROL, Hides
from handaxe.search.deadline import SearchDeadline
from handaxe.search.walk.ignore_files import Ignores
from handaxe.search.walk.root import SearchPlace

SMALL_TREE = 3_000
"""A tree with up to this many entries is small. A directory counts as ten more entries."""
DIRECTORY_WEIGHT = 10
MAX_DIRECTORY = 5_000
"""In a directory with more entries only this many are read, and the tree counts as large."""


class TreeScan:
    """A scan level by level, which stops where the tree proves to be large.

    Paths are relative to the root. Version control directories and links are not entered.
    """

    def __init__(
        self,
        place: SearchPlace,
        watch: SearchDeadline,
        hides: Hides | None,
        *,
        enters: Callable[[str], bool] | None = None,
        rescues: Callable[[str], bool] | None = None,
    ) -> None:
        """Plan a scan.

        Args:
            place: the root.
            watch: when the scan has to end.
            hides: which absolute paths do not exist for the search.
            enters: which directories may hold what is wanted; all if left out.
            rescues: which directories are entered although they are ignored.
        """
        self._place = place
        self._watch = watch
        self._hides = hides
        self._enters = enters
        self._rescues = rescues
        self._waiting: deque[tuple[str, Ignores | None]] = deque([("", place.ignores)])
        self._visited = 0
        self.entries = 0
        """How many entries were found beside directories."""
        self.files: list[str] = []
        self.links: list[str] = []
        self.ignored_directories: list[str] = []
        self.ignored_files: list[str] = []
        self.unreadable = 0
        """How many directories could not be read."""

    def scan(self, *, times: int = 1) -> bool:
        """Read the tree. Return False if time ran out or the tree is too large."""
        while self._waiting:
            if self._watch.is_over():
                return False
            directory, ignores = self._waiting.popleft()
            self._visited += 1
            try:
                with os.scandir(f"{self._place.directory}/{directory}") as listing:
                    entries = list(islice(listing, MAX_DIRECTORY))
            except OSError:
                self.unreadable += 1
                continue
            self._take(directory, entries, ignores)
            directories = self._visited + len(self._waiting)
            weight = self.entries + DIRECTORY_WEIGHT * directories
            if weight > times * SMALL_TREE or len(entries) == MAX_DIRECTORY:
                return False
        return True

    def _take(
        self, directory: str, entries: list[os.DirEntry[str]], ignores: Ignores | None
    ) -> None:
        base = self._place.prefix
        if ignores is not None:
            ignores = ignores.enter(base + directory, {entry.name for entry in entries})
        inside: list[str] = []
        for entry in entries:
            name = entry.name
            if name in VERSION_CONTROL:
                continue
            path, is_dir = directory + name, entry.is_dir(follow_symlinks=False)
            is_ignored = ignores is not None and ignores.is_ignored(base + path, is_dir=is_dir)
            if is_dir:
                if is_ignored and not (self._rescues is not None and self._rescues(path)):
                    if self._is_wanted_directory(path):
                        self.ignored_directories.append(path)
                elif self._is_wanted_directory(path):
                    inside.append(path)
                continue
            self.entries += 1
            if entry.is_file(follow_symlinks=False):
                (self.ignored_files if is_ignored else self.files).append(path)
            elif entry.is_symlink() and not is_ignored:
                self.links.append(path)
        self._waiting.extend((f"{path}/", ignores) for path in sorted(inside))

    def _is_wanted_directory(self, path: str) -> bool:
        if self._enters is not None and not self._enters(path):
            return False
        return self._hides is None or not self._hides(self._place.prefix + path)

    def list_waiting(self) -> list[str]:
        """The directories that the scan did not read."""
        return [(self._place.prefix + path).rstrip("/") or "/" for path, _ in self._waiting]

    def list_branches(self) -> list[str]:
        """The directories right below the root: where to continue if time ran out."""
        with os.scandir(self._place.directory) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name not in VERSION_CONTROL and entry.is_dir(follow_symlinks=False)
            )
        return [self._place.prefix + name for name in names if self._is_wanted_directory(name)]
