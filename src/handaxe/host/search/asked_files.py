"""The files a query asks for, found by a walk of our own, and what the walk passed by.

Which of them hold a match is not known here.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from handaxe.contract.ports.search import Hides, TextQuery
from handaxe.host.search.blocks import in_path_order
from handaxe.host.search.filters import FileFilter
from handaxe.host.search.ignores import Ignores, above
from handaxe.host.search.place import SearchPlace
from handaxe.host.search.walk import Choice, Walk
from handaxe.host.search.watch import Watch


class AskedFiles:
    """One walk; paths are relative to the directory the search runs in."""

    def __init__(
        self, query: TextQuery, place: SearchPlace, watch: Watch, hides: Hides | None
    ) -> None:
        self._place = place
        self._watch = watch
        self._hides = hides
        self._filter = FileFilter(query)
        self._single = place.target.removeprefix("./") if query.is_file else None
        self._walk = Walk(
            place.path,
            watch,
            ignores=ignores_for(query, place),
            choice=Choice(hides=hides, enters=self._filter.enters, rescues=self._filter.rescues),
            opened_at=place.directory,
        )
        self.ignored: list[str] = []
        """Files that would be searched if no ignore file named them."""
        self.links = 0
        """Links that were met and not followed."""
        self._pending: list[tuple[bytes, str]] = []
        self.has_ended = query.is_file
        """Whether the walk came to its end, so that everything was told and counted."""

    def __iter__(self) -> Iterator[str]:
        """As the walk meets them."""
        if self._single is not None:
            yield self._single
            return
        for files in self._by_directory():
            yield from files

    def in_path_order(self) -> Iterator[str]:
        """Sorted, and yet told as soon as nothing that comes before them can follow."""
        if self._single is not None:
            yield self._single
            return
        for files in self._by_directory():
            following = self._walk.following
            limit = None if following is None else _key(following)
            keyed = sorted([(_key(path), path) for path in files])
            if not self._pending and (not keyed or limit is None or keyed[-1][0] < limit):
                for _, path in keyed:
                    yield path
                continue
            for item in keyed:
                heappush(self._pending, item)
            while self._pending and (limit is None or self._pending[0][0] < limit):
                yield heappop(self._pending)[1]
        while self._pending:
            yield heappop(self._pending)[1]

    @property
    def has_pending(self) -> bool:
        """Whether files that were met are still to be told, in path order."""
        return bool(self._pending)

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
        files = [path for _, path in self._pending]
        files = files if not_searched is None else [not_searched, *files]
        begun = [self._place.prefix + path for path in files]
        parts = [path.rpartition("/")[0] or "/" for path in begun]
        return list(dict.fromkeys([*parts, *self._walk.unvisited()]))

    def below_ignored(self) -> Iterator[str]:
        """What was passed by as ignored: single files, and all that ignored directories hold."""
        yield from self.ignored
        for directory in self.ignored_directories:
            for inside, entries, _ in Walk(
                self._place.prefix + directory, self._watch, ignores=None
            ):
                for entry in entries:
                    path = f"{directory}/{inside}{entry.name}"
                    if (
                        not self._is_hidden(path)
                        and entry.is_file(follow_symlinks=False)
                        and self._filter.wants_file(path, entry.name, is_ignored=False)
                    ):
                        yield path

    def _by_directory(self) -> Iterator[list[str]]:
        walk, wants = self._walk, self._filter.wants_file
        for visit in walk:
            directory, entries, _ = visit
            left_out = walk.ignored_names(visit)
            files: list[str] = []
            for entry in entries:
                name = entry.name
                path = directory + name
                if self._is_hidden(path):
                    continue
                if not entry.is_file(follow_symlinks=False):
                    self.links += entry.is_symlink() and name not in left_out
                elif wants(path, name, is_ignored=name in left_out):
                    files.append(path)
                elif name in left_out and wants(path, name, is_ignored=False):
                    self.ignored.append(path)
            yield files
        self.has_ended = walk.is_complete

    def _is_hidden(self, path: str) -> bool:
        return self._hides is not None and self._hides(self._place.prefix + path)


def _key(path: str) -> bytes:
    return in_path_order(path.encode("utf-8", "surrogateescape"))


def ignores_for(query: TextQuery, place: SearchPlace) -> Ignores | None:
    """The ignore files above a search; None if none of any kind is to be looked at."""
    if not query.respect_ignore:
        return None
    return Ignores(()) if place.is_ignored else above(place.path)
