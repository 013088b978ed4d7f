"""A walk through a directory tree: no link is followed, ignored directories are left aside.

Directories that cannot be read, or vanish meanwhile, are counted and passed by.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from operator import attrgetter

import msgspec

from handaxe.contract.ports.search import VERSION_CONTROL, Hides
from handaxe.search.deadline import SearchDeadline
from handaxe.search.walk import ignore_files
from handaxe.search.walk.ignore_files import NAMES, NOBODY, Ignores
from handaxe.search.walk.root import DIRECTORY, open_beneath

Visit = tuple[str, list[os.DirEntry[str]], Ignores | None]
"""A directory by its relative path with a slash, what is in it beside directories, and who may
ignore some of it, if anybody does."""

Listings = dict[str, list[os.DirEntry[str]]]
"""What directories hold, by their relative paths with a slash; no very large one is kept."""

PIECE = 5_000
"""So many entries of a directory are looked at at a time, so that none is too large."""
_NEVER = frozenset(VERSION_CONTROL)
_SPECIAL = _NEVER.union(ignore_files.NAMES)
_name = attrgetter("name")
_IGNORE_FILE = "ignore"
"""How the names of ignore files end."""
LOOK_UP = 250
"""After so many entries, a directory counting as one more, the time is looked at."""


class WalkFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What of a tree matters."""

    hides: Hides | None = None
    """Which entries do not exist for whoever asks, by absolute path."""
    enters: Callable[[str], bool] | None = None
    """Which directories matter, by relative path."""
    rescues: Callable[[str], bool] | None = None
    """Which directories are entered although they are ignored."""
    endings: tuple[str, ...] = ("",)
    """How the names end of what is told; "" is the end of every name."""


EVERYTHING = WalkFilter()


class DirectoryWalk:
    """One walk; afterwards it tells what it passed by."""

    def __init__(
        self,
        root: str,
        watch: SearchDeadline,
        *,
        fd: int,
        ignores: Ignores | None,
        choice: WalkFilter = EVERYTHING,
        by_level: bool = False,
        reached_by: str | None = None,
        listings: Listings | None = None,
    ) -> None:
        """Plan a walk.

        Args:
            root: where it begins; paths are told relative to it.
            watch: when it ends.
            fd: the root, open.
            ignores: the ignore files above the root; None if no such file is to be looked at.
            choice: what of the tree matters.
            by_level: whether what lies near the root comes first, not what comes first by name.
            reached_by: a path of the root, which is faster; then a link may have led elsewhere, and
                whoever shows names has to look into that. If left out, no link is followed.
            listings: what another walk of the same root has read, and this one adds to.
        """
        self._base = root.rstrip("/") + "/"
        self._fd = fd
        self._opened = None if reached_by is None else reached_by.rstrip("/") + "/"
        self._watch = watch
        self._hides = choice.hides
        self._enters = choice.enters
        self._rescues = choice.rescues
        self._by_level = by_level
        self._listings = listings
        self._endings = choice.endings
        self._telling = None if "" in choice.endings else (*choice.endings, _IGNORE_FILE)
        self._waiting: deque[tuple[str, Ignores | None]] = deque([("", ignores)])
        self.ignored_directories: list[str] = []
        """Relative to the root."""
        self.unreadable = 0
        self.is_complete = True

    def __iter__(self) -> Iterator[Visit]:
        """Every directory in turn, a very large one in pieces; ignored files are among these."""
        take = self._waiting.popleft if self._by_level else self._waiting.pop
        unwatched = LOOK_UP
        while self._waiting:
            if unwatched >= LOOK_UP:
                unwatched = 0
                if self._watch.is_over():
                    self.is_complete = False
                    return
            directory, ignores = take()
            listings = self._listings
            entries = None if listings is None else listings.get(directory)
            if entries is not None:
                unwatched += 1 + len(entries)
                yield self._visit(directory, entries, ignores)
                continue
            fd = -1
            try:
                # It stays open while it is told of: entries are looked at by way of it.
                opened = self._opened
                if opened is None:
                    fd = open_beneath(self._fd, directory, DIRECTORY)
                with os.scandir(fd if opened is None else opened + directory) as listing:
                    entries = list(islice(listing, PIECE))
                    if len(entries) == PIECE:
                        unwatched = LOOK_UP
                        yield from self._visit_in_pieces(directory, entries, listing, ignores)
                        continue
                    unwatched += 1 + len(entries)
                    visit = self._visit(directory, entries, ignores)
                    if listings is not None:
                        listings[directory] = entries
                    yield visit
            except OSError:
                self.unreadable += 1
            finally:
                if fd >= 0:
                    os.close(fd)

    def _visit_in_pieces(
        self,
        directory: str,
        entries: list[os.DirEntry[str]],
        rest: Iterator[os.DirEntry[str]],
        ignores: Ignores | None,
    ) -> Iterator[Visit]:
        inside = self._below(directory, NAMES, ignores)
        before = len(self._waiting)
        while entries:
            yield self._visit(directory, entries, inside, is_read=True)
            if self._watch.is_over():
                self._waiting.append((directory, ignores))
                return
            entries = list(islice(rest, PIECE))
        if not self._by_level:
            self._sort_waiting_from(before)

    def _sort_waiting_from(self, first: int) -> None:
        """Put directories in order that were met in several pieces of the one they are in."""
        met = {path[:-1]: ignores for path, ignores in islice(self._waiting, first, None)}
        for _ in met:
            self._waiting.pop()
        for path in sort_names([*met], reverse=True):
            self._waiting.append((path + "/", met[path]))

    def _visit(
        self,
        directory: str,
        entries: list[os.DirEntry[str]],
        ignores: Ignores | None,
        *,
        is_read: bool = False,
    ) -> Visit:
        """What is to be told of some entries, while the directories among them are queued.

        Most directories hold no ignore file and nothing that one could speak of; whoever asks is
        spared looking for it. `is_read` says that the ignore files in this very directory count.
        """
        inside: list[str] = []
        told: list[os.DirEntry[str]] = []
        endings = self._telling
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inside.append(entry.name)
            elif endings is None or entry.name.endswith(endings):
                told.append(entry)
        names = [entry.name for entry in told] + inside
        if not _SPECIAL.isdisjoint(names):
            if not is_read:
                ignores = self._below(directory, names, ignores)
            inside = [name for name in inside if name not in _NEVER]
            wanted = self._endings
            told = [e for e in told if e.name.endswith(wanted) and e.name not in _NEVER]
        speaking = ignores
        if ignores is not None and (
            ignores.is_silent or not ignores.can_ignore(self._base + directory, names)
        ):
            speaking = None
        if inside:
            self._go_on(directory, inside, ignores, speaking)
        return directory, told, speaking

    def _below(
        self, directory: str, names: Iterable[str], ignores: Ignores | None
    ) -> Ignores | None:
        """The ignore files that hold inside a directory with these names."""
        if ignores is None:
            return None
        return ignores.below(ignore_files.read_ignore_layer(self._base + directory, names))

    def find_ignored_names(self, visit: Visit) -> AbstractSet[str]:
        """Names in a directory that are ignored if they are files."""
        directory, entries, ignores = visit
        if ignores is None:
            return NOBODY
        return ignores.left_out(self._base + directory, [*map(_name, entries)], is_dir=False)

    @property
    def waiting(self) -> int:
        """How many directories the walk knows of and did not get to."""
        return len(self._waiting)

    def unvisited(self) -> list[str]:
        """Directories the walk did not get to, the topmost ones of each branch, the next first."""
        waiting = self._waiting if self._by_level else reversed(self._waiting)
        return [(self._base + directory).rstrip("/") for directory, _ in waiting]

    def _go_on(
        self, directory: str, names: list[str], ignores: Ignores | None, speaking: Ignores | None
    ) -> None:
        """Queue the directories inside, so that the first by name comes next."""
        left_out: AbstractSet[str] = NOBODY
        if speaking is not None:
            left_out = speaking.left_out(self._base + directory, names, is_dir=True)
        names = sort_names(names, reverse=not self._by_level)
        if not left_out and self._enters is None and self._hides is None:
            for name in names:
                self._waiting.append((f"{directory}{name}/", ignores))
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


def sort_names(names: list[str], *, reverse: bool = False) -> list[str]:
    """Names or paths in the order of their bytes."""
    is_plain = len(names) < 2 or "".join(names).isascii()
    return sorted(names, key=None if is_plain else os.fsencode, reverse=reverse)
