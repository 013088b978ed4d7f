"""A walk through a directory tree: no link is followed, ignored directories are left aside.

Directories that cannot be read, or vanish meanwhile, are counted and passed by.
"""

import os
from collections.abc import Callable, Iterator

from handaxe.contract.ports.search import Hides
from handaxe.host.search import ignores as ignore_files
from handaxe.host.search.arguments import VCS_NAMES
from handaxe.host.search.ignores import Ignores
from handaxe.host.search.watch import Watch

_NEVER = frozenset(VCS_NAMES)
_SPECIAL = _NEVER.union(ignore_files.NAMES)


class Walk:
    """One walk; afterwards it tells what it passed by."""

    def __init__(
        self,
        root: str,
        watch: Watch,
        *,
        ignores: Ignores | None,
        hides: Hides | None = None,
        enters: Callable[[str], bool] | None = None,
        rescues: Callable[[str], bool] | None = None,
        opened_at: str | None = None,
    ) -> None:
        """Plan a walk.

        Args:
            root: where it begins; paths are told relative to it.
            watch: when it ends.
            ignores: the ignore files above the root; None if no such file is to be looked at.
            hides: which entries do not exist for whoever asks.
            enters: which directories matter, by relative path.
            rescues: which directories are entered although they are ignored.
            opened_at: another name of the root, which nobody can turn into a link.
        """
        self._base = root.rstrip("/") + "/"
        self._opened = self._base if opened_at is None else opened_at + "/"
        self._watch = watch
        self._hides = hides
        self._enters = enters
        self._rescues = rescues
        self._waiting: list[tuple[str, Ignores | None]] = [("", ignores)]
        self.ignored_directories: list[str] = []
        """Relative to the root."""
        self.ignored = 0
        self.unreadable = 0
        self.is_complete = True

    def __iter__(self) -> Iterator[tuple[str, list[str], list[os.DirEntry[str]], set[str]]]:
        """Per directory: its relative path with a slash, its names, its entries, ignored names."""
        while self._waiting:
            if self._watch.is_over():
                self.is_complete = False
                return
            directory, ignores = self._waiting.pop()
            try:
                with os.scandir(self._opened + directory) as listing:
                    entries = list(listing)
            except OSError:
                self.unreadable += 1
                continue
            names = [entry.name for entry in entries]
            if not _SPECIAL.isdisjoint(names):
                entries = [entry for entry in entries if entry.name not in _NEVER]
                names = [entry.name for entry in entries]
                if ignores is not None:
                    ignores = ignores.below(ignore_files.layer_of(self._base + directory, names))
            directories = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            left_out = self._ignored_files(directory, names, directories, ignores)
            self._go_on(directory, directories, ignores)
            yield directory, names, entries, left_out

    def unvisited(self) -> list[str]:
        """Directories the walk did not get to, the topmost ones of each branch."""
        return [(self._base + directory).rstrip("/") for directory, _ in self._waiting]

    def _ignored_files(
        self, directory: str, names: list[str], directories: list[str], ignores: Ignores | None
    ) -> set[str]:
        if ignores is None or ignores.is_silent or len(names) == len(directories):
            return set()
        left_out = ignores.left_out(self._base + directory, names, is_dir=False)
        left_out.difference_update(directories)
        self.ignored += len(left_out)
        return left_out

    def _go_on(self, directory: str, names: list[str], ignores: Ignores | None) -> None:
        """Queue the directories inside, so that the first by name comes next."""
        left_out: set[str] = set()
        if ignores is not None and not ignores.is_silent and names:
            left_out = ignores.left_out(self._base + directory, names, is_dir=True)
        names.sort(reverse=True)
        for name in names:
            path = f"{directory}{name}"
            if self._enters is not None and not self._enters(path):
                continue
            if self._hides is not None and self._hides(self._base + path):
                continue
            if name in left_out and not (self._rescues is not None and self._rescues(path)):
                self.ignored += 1
                self.ignored_directories.append(path)
            else:
                self._waiting.append((path + "/", ignores))
