"""The files a query asks for, found by a walk of our own, and what the walk passed by.

Which of them hold a match is not known here.
"""

import os
from bisect import bisect_left
from collections.abc import Iterator

from handaxe.contract.ports.search import TextQuery
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.rg_output import make_path_key
from handaxe.search.walk.ignore_files import FileFilter, Ignores
from handaxe.search.walk.root import DIRECTORY, SearchPlace, open_beneath
from handaxe.search.walk.walk import DirectoryWalk, WalkFilter, sort_names


class QueryFileList:
    """One walk; paths are relative to the directory the search runs in."""

    def __init__(
        self,
        query: TextQuery,
        place: SearchPlace,
        watch: SearchDeadline,
        screen: ExclusionFilter,
    ) -> None:
        self._place = place
        self._watch = watch
        self._screen = screen
        self._filter = FileFilter(query)
        self._single = place.target.removeprefix("./") if query.is_file else None
        self._walk = DirectoryWalk(
            place.path,
            watch,
            ignores=select_ignores(query, place),
            choice=WalkFilter(
                hides=screen.hides, enters=self._filter.enters, rescues=self._filter.rescues
            ),
            fd=place.fd,
            reached_by=place.directory,
        )
        self.ignored: list[str] = []
        """Files that would be searched if no ignore file named them."""
        self.links = 0
        """Links that were met and not followed."""
        self.withheld = 0
        """Files that are asked for and left out because they may hold secrets."""
        self._pending: list[tuple[str, list[str]]] = []
        """Directories whose files are still to be told, with their names: of both the last one
        comes first."""
        self.has_ended = query.is_file
        """Whether the walk came to its end, so that everything was told and counted."""

    def __iter__(self) -> Iterator[str]:
        """As the walk meets them."""
        if self._single is not None:
            yield self._single
            return
        for directory, names in self._walk_directories():
            for name in names:
                yield directory + name

    def list_sorted(self) -> Iterator[str]:
        """Sorted, and yet told as soon as nothing that comes before them can follow."""
        if self._single is not None:
            yield self._single
            return
        pending = self._pending
        for directory, names in self._walk_directories():
            yield from self._before(_make_sort_key(directory))
            # Of a very large directory the walk tells one piece after the other.
            earlier = pending.pop()[1] if pending and pending[-1][0] == directory else []
            pending.append((directory, sort_names([*earlier, *names], reverse=True)))
        yield from self._before(None)

    def _before(self, limit: bytes | None) -> Iterator[str]:
        """What is pending and comes before the directory that the walk is in now.

        Whatever comes behind that directory comes behind all that is in it.
        """
        while self._pending:
            directory, names = self._pending[-1]
            kept = 0
            if limit is not None:
                kept = bisect_left(
                    names, x=True, key=lambda name: _make_sort_key(directory + name) < limit
                )
            while len(names) > kept:
                yield directory + names.pop()
            if names:
                return
            self._pending.pop()

    @property
    def has_pending(self) -> bool:
        """Whether files that were met are still to be told, in path order."""
        return any(names for _, names in self._pending)

    @property
    def ignored_directories(self) -> list[str]:
        """Directories that were not entered."""
        return self._walk.ignored_directories

    @property
    def unreadable(self) -> int:
        """Directories that could not be read."""
        return self._walk.unreadable

    def unvisited(self, not_searched: str | None) -> list[str]:
        """Directories to go on with after time ran out, perhaps when a file was to be searched."""
        begun = [] if not_searched is None else [not_searched.rpartition("/")[0] + "/"]
        begun += [directory for directory, names in reversed(self._pending) if names]
        parts = [(self._place.prefix + directory).rstrip("/") or "/" for directory in begun]
        return list(dict.fromkeys([*parts, *self._walk.unvisited()]))

    def list_ignored(self) -> Iterator[str]:
        """What was passed by as ignored: single files, and all that ignored directories hold."""
        for path in self.ignored:
            if not self._screen.is_held_back(os.fsencode(path)):
                yield path
        for directory in self.ignored_directories:
            try:
                fd = open_beneath(self._place.fd, directory, DIRECTORY)
            except OSError:
                continue
            try:
                walk = DirectoryWalk(
                    self._place.prefix + directory, self._watch, fd=fd, ignores=None
                )
                for inside, entries, _ in walk:
                    yield from self._wanted(f"{directory}/{inside}", entries)
            finally:
                os.close(fd)

    def _wanted(self, directory: str, entries: list[os.DirEntry[str]]) -> Iterator[str]:
        for entry in entries:
            path = directory + entry.name
            if (
                not self._screen.is_held_back(os.fsencode(path))
                and entry.is_file(follow_symlinks=False)
                and self._filter.is_wanted_file(path, entry.name, is_ignored=False)
            ):
                yield path

    def _walk_directories(self) -> Iterator[tuple[str, list[str]]]:
        """Directories, with the names of the files in them that are asked for."""
        walk, wants, wants_all = self._walk, self._filter.is_wanted_file, self._filter.wants_all
        for visit in walk:
            directory, entries, _ = visit
            left_out = walk.find_ignored_names(visit)
            if (hides := self._screen.hides) is not None:
                here = self._place.prefix + directory
                entries = [entry for entry in entries if not hides(here + entry.name)]
            files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
            if len(files) < len(entries):
                self.links += sum(e.is_symlink() and e.name not in left_out for e in entries)
            if left_out or not wants_all:
                self.ignored += [
                    path
                    for name in files
                    if name in left_out
                    and wants(path := directory + name, name, is_ignored=False)
                    and not wants(path, name, is_ignored=True)
                ]
                files = [n for n in files if wants(directory + n, n, is_ignored=n in left_out)]
            withheld = self._screen.list_withheld(self._place.prefix + directory, files)
            if withheld:
                self.withheld += len(withheld)
                files = [name for name in files if name not in withheld]
            yield directory, files
        self.has_ended = walk.is_complete


def _make_sort_key(path: str) -> bytes:
    return make_path_key(path.encode("utf-8", "surrogateescape"))


def select_ignores(query: TextQuery, place: SearchPlace) -> Ignores | None:
    """The ignore files above a search; None if none of any kind is to be looked at."""
    if not query.respect_ignore:
        return None
    return Ignores(()) if place.is_ignored else place.ignores_above
