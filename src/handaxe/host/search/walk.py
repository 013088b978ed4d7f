"""A walk through a directory tree: no link is followed, ignored directories are left aside.

Directories that cannot be read, or vanish meanwhile, are counted and passed by.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter

from handaxe.contract.ports.search import Hides
from handaxe.host.search import ignores as ignore_files
from handaxe.host.search.arguments import VCS_NAMES
from handaxe.host.search.ignores import NAMES, Ignores
from handaxe.host.search.watch import Watch

Visit = tuple[str, list[os.DirEntry[str]], Ignores | None]
"""A directory by its relative path with a slash, its entries, and who may ignore some of them."""

PIECE = 5_000
"""So many entries of a directory are looked at at a time, so that none is too large."""
_NEVER = frozenset(VCS_NAMES)
_SPECIAL = _NEVER.union(ignore_files.NAMES)
_name = attrgetter("name")


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
        by_level: bool = False,
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
            by_level: whether what lies near the root comes first, not what comes first by name.
        """
        self._base = root.rstrip("/") + "/"
        self._opened = self._base if opened_at is None else opened_at + "/"
        self._watch = watch
        self._hides = hides
        self._enters = enters
        self._rescues = rescues
        self._by_level = by_level
        self._waiting: deque[tuple[str, Ignores | None]] = deque([("", ignores)])
        self.ignored_directories: list[str] = []
        """Relative to the root."""
        self.unreadable = 0
        self.is_complete = True

    def __iter__(self) -> Iterator[Visit]:
        """Every directory in turn, a very large one in pieces; ignored files are among these."""
        take = self._waiting.popleft if self._by_level else self._waiting.pop
        while self._waiting:
            if self._watch.is_over():
                self.is_complete = False
                return
            directory, ignores = take()
            try:
                with os.scandir(self._opened + directory) as listing:
                    entries = list(islice(listing, PIECE))
                    if len(entries) == PIECE:
                        yield from self._in_pieces(directory, entries, listing, ignores)
                        continue
            except OSError:
                self.unreadable += 1
                continue
            if not _SPECIAL.isdisjoint(map(_name, entries)):
                ignores = self._below(directory, map(_name, entries), ignores)
                entries = [entry for entry in entries if entry.name not in _NEVER]
            self._go_on(directory, entries, ignores)
            yield directory, entries, ignores

    def _in_pieces(
        self,
        directory: str,
        entries: list[os.DirEntry[str]],
        rest: Iterator[os.DirEntry[str]],
        ignores: Ignores | None,
    ) -> Iterator[Visit]:
        inside = self._below(directory, NAMES, ignores)
        while entries:
            entries = [entry for entry in entries if entry.name not in _NEVER]
            self._go_on(directory, entries, inside)
            yield directory, entries, inside
            if self._watch.is_over():
                self._waiting.append((directory, ignores))
                return
            entries = list(islice(rest, PIECE))

    def _below(
        self, directory: str, names: Iterable[str], ignores: Ignores | None
    ) -> Ignores | None:
        """The ignore files that hold inside a directory with these names."""
        if ignores is None:
            return None
        return ignores.below(ignore_files.layer_of(self._base + directory, names))

    def ignored_names(self, visit: Visit) -> set[str]:
        """Names in a directory that are ignored if they are files."""
        directory, entries, ignores = visit
        if ignores is None or ignores.is_silent:
            return set()
        return ignores.left_out(self._base + directory, map(_name, entries), is_dir=False)

    @property
    def waiting(self) -> int:
        """How many directories the walk knows of and did not get to."""
        return len(self._waiting)

    def unvisited(self) -> list[str]:
        """Directories the walk did not get to, the topmost ones of each branch, the next first."""
        waiting = self._waiting if self._by_level else reversed(self._waiting)
        return [(self._base + directory).rstrip("/") for directory, _ in waiting]

    def _go_on(
        self, directory: str, entries: list[os.DirEntry[str]], ignores: Ignores | None
    ) -> None:
        """Queue the directories inside, so that the first by name comes next."""
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        if not names:
            return
        left_out: set[str] = set()
        if ignores is not None and not ignores.is_silent:
            left_out = ignores.left_out(self._base + directory, names, is_dir=True)
        names.sort(reverse=not self._by_level)
        if not left_out and self._enters is None and self._hides is None:
            self._waiting.extend([(f"{directory}{name}/", ignores) for name in names])
            return
        for name in names:
            path = f"{directory}{name}"
            if self._enters is not None and not self._enters(path):
                continue
            if self._hides is not None and self._hides(self._base + path):
                continue
            if name in left_out and not (self._rescues is not None and self._rescues(path)):
                self.ignored_directories.append(path)
            else:
                self._waiting.append((path + "/", ignores))
