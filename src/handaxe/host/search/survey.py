"""What a search passes by, found out by a short walk of our own.

ripgrep can tell it too, but writes a line in many pieces for every single file, which in a tree of
binary files takes longer than the search. The walk goes level by level: what projects ignore lies
near their root, so that much is known even of a tree too large to be walked to the end.
"""

import os
import time

from handaxe.contract.ports.search import BadQuery, Hides, TextQuery
from handaxe.host.search.filters import FileFilter
from handaxe.host.search.ignores import Ignores, above
from handaxe.host.search.place import SearchPlace
from handaxe.host.search.walk import Visit, Walk
from handaxe.host.search.watch import Watch

SMALL_TREE = 2_000
"""With at most so many entries a tree is small: walked in a moment before every search."""
MAX_TARGETS = 1_000
MAX_TARGET_BYTES = 1 << 18
_HEAD_BYTES = 1 << 16
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Survey:
    """The ignored entries and the links of a tree, as far as they were looked for."""

    def __init__(
        self, query: TextQuery, place: SearchPlace, watch: Watch, hides: Hides | None
    ) -> None:
        self._place = place
        self._hides = hides
        self._filter = FileFilter(query)
        self._walk = Walk(
            place.path,
            watch,
            ignores=ignores_for(query, place),
            hides=hides,
            enters=self._filter.enters,
            rescues=self._filter.rescues,
            opened_at=place.directory,
            by_level=True,
        )
        self._visits = iter(self._walk)
        self._files: list[str] = []
        self._seen = 0
        self.links = 0
        self.is_complete = False

    @classmethod
    def of(
        cls, query: TextQuery, place: SearchPlace, watch: Watch, hides: Hides | None
    ) -> "Survey | None":
        """The survey of a small tree, or the beginning of one; None where there is no tree.

        A filter that cannot be read is ripgrep's to complain about.
        """
        if query.is_file:
            return None
        try:
            survey = cls(query, place, watch, hides)
        except BadQuery:
            return None
        survey._go_on(SMALL_TREE, None)
        return survey

    @property
    def ignored(self) -> int:
        """Ignored directories, each counted once, and ignored files the query asks for."""
        return len(self._walk.ignored_directories) + len(self._files)

    def go_on_until(self, ends_at: float) -> None:
        """Look further; a tree that is not small may need longer than it is given."""
        if not self.is_complete:
            self._go_on(None, ends_at)

    def targets(self) -> tuple[list[str], bool]:
        """The ignored entries to search, relative to the root, and whether these are all."""
        directories = self._walk.ignored_directories
        everything = [*directories, *self._files]
        chosen: list[str] = []
        size = 0
        for number, path in enumerate(everything[:MAX_TARGETS]):
            size += len(os.fsencode(path))
            if size > MAX_TARGET_BYTES:
                return chosen, False
            if number < len(directories) or self._is_text(path):
                chosen.append(path)
        return chosen, self.is_complete and len(everything) <= MAX_TARGETS

    def _go_on(self, max_entries: int | None, ends_at: float | None) -> None:
        for visit in self._visits:
            self._take(visit)
            if max_entries is not None and self._seen > max_entries:
                return
            if ends_at is not None and time.monotonic() > ends_at:
                return
        self.is_complete = self._walk.is_complete

    def _take(self, visit: Visit) -> None:
        directory, entries, _ = visit
        self._seen += len(entries)
        left_out = self._walk.ignored_names(visit)
        for entry in entries:
            if entry.name in left_out:
                if entry.is_file(follow_symlinks=False) and self._is_missed(directory, entry.name):
                    self._files.append(directory + entry.name)
            elif entry.is_symlink() and not self._is_hidden(directory + entry.name):
                self.links += 1

    def _is_missed(self, directory: str, name: str) -> bool:
        """Whether an ignored file would be searched if it were not ignored, and only then."""
        path, wants = directory + name, self._filter.wants_file
        return (
            wants(path, name, is_ignored=False)
            and not wants(path, name, is_ignored=True)
            and not self._is_hidden(path)
        )

    def _is_hidden(self, path: str) -> bool:
        return self._hides is not None and self._hides(self._place.prefix + path)

    def _is_text(self, path: str) -> bool:
        """Whether a file is no binary one; a file named to ripgrep is searched in any case."""
        try:
            fd = os.open(path, _OPEN, dir_fd=self._place.fd)
        except OSError:
            return False
        try:
            return b"\0" not in os.read(fd, _HEAD_BYTES)
        except OSError:
            return False
        finally:
            os.close(fd)


def ignores_for(query: TextQuery, place: SearchPlace) -> Ignores | None:
    """The ignore files above a search; None if none of any kind is to be looked at."""
    if not query.respect_ignore:
        return None
    return Ignores(()) if place.is_ignored else above(place.path)
