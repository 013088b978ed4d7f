"""The ignored entries of a text search, from a scan of a small tree or a large one's top."""

import os
from typing import NamedTuple

from handaxe.contract.ports.search import BadQuery, SkippedFiles, TextQuery
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.walk.ignore_files import FileFilter
from handaxe.search.walk.root import SearchPlace, open_beneath
from handaxe.search.walk.tree_scan import TreeScan
from handaxe.text.secrets import can_name_env_file, is_env_file

MAX_TARGETS = 1_000
MAX_TARGET_BYTES = 1 << 18
_HEAD_BYTES = 1 << 16


class IgnoredEntries(NamedTuple):
    """Ignored entries, relative to the root; the files do not include those in the directories."""

    directories: list[str]
    files: list[str]


class IgnoredSurvey:
    """The ignored entries, links and secret files of a tree."""

    def __init__(
        self, query: TextQuery, place: SearchPlace, watch: SearchDeadline, screen: ExclusionFilter
    ) -> None:
        self._query = query
        self._place = place
        self._screen = screen
        self._filter = _build_filter(query)
        enters = None if query.glob is None else self._filter.enters
        rescues = None if query.glob is None else self._filter.rescues
        self.scan = TreeScan(place, watch, screen.hides, enters=enters, rescues=rescues)
        self.is_small: bool | None = True if query.is_file else None
        """Whether the scan read the whole tree; None before it."""

    def look_around(self) -> bool:
        """Scan the tree, once; gives whether it is small."""
        if self.is_small is None:
            self.is_small = self.scan.scan()
        return self.is_small

    def get_skipped(self) -> SkippedFiles:
        """The skipped entries of the search. For a large tree this is a lower bound."""
        ignored, denied = self.find_ignored(), self._screen.has_rules
        entries, withheld = len(ignored.directories) + len(ignored.files), self._count_withheld()
        if self.is_small:
            links = sum(not self._is_hidden(path) for path in self.scan.links)
            return SkippedFiles(ignored=entries, links=links, denied=denied, withheld=withheld)
        return SkippedFiles(
            ignored=entries or None,
            ignored_is_least=True,
            denied=denied,
            withheld=withheld or None,
            withheld_is_least=True,
        )

    def find_ignored(self) -> IgnoredEntries:
        """The ignored entries of the scan that the query is about."""
        return self.select_missed(
            IgnoredEntries(self.scan.ignored_directories, self.scan.ignored_files)
        )

    def select_missed(self, ignored: IgnoredEntries) -> IgnoredEntries:
        """The entries that would be searched if they were not ignored."""
        wants = self._filter.is_wanted_file
        files = [
            path
            for path in ignored.files
            if wants(path, is_ignored=False)
            and not wants(path, is_ignored=True)
            and not self._is_hidden(path)
        ]
        return IgnoredEntries(ignored.directories, files)

    def list_branches(self) -> list[str]:
        """The directories right below the root: where to continue if time ran out."""
        return [] if self._query.is_file else self.scan.list_branches()

    def choose_targets(self, ignored: IgnoredEntries) -> tuple[list[str], bool]:
        """The ignored entries to search, and whether these are all of them."""
        shown = [path for path in ignored.files if not self._screen.is_held_back(os.fsencode(path))]
        chosen, are_all = limit_targets([*ignored.directories, *shown])
        directories = set(ignored.directories)
        return [path for path in chosen if path in directories or self._is_text(path)], are_all

    def _count_withheld(self) -> int:
        """How many files the query asks for are left out because they may hold secrets."""
        scan, wants = self.scan, self._filter.is_wanted_file
        return sum(
            is_env_file(path.rpartition("/")[2])
            and wants(path, is_ignored=is_ignored)
            and self._screen.is_withheld(self._place.prefix + path)
            for paths, is_ignored in ((scan.files, False), (scan.ignored_files, True))
            if can_name_env_file("\0".join(paths))
            for path in paths
        )

    def _is_hidden(self, path: str) -> bool:
        hides = self._screen.hides
        return hides is not None and hides(self._place.prefix + path)

    def _is_text(self, path: str) -> bool:
        """Whether a file is not binary; ripgrep searches files given by name in any case."""
        try:
            fd = open_beneath(self._place.fd, path)
        except OSError:
            return False
        try:
            return b"\0" not in os.read(fd, _HEAD_BYTES)
        except OSError:
            return False
        finally:
            os.close(fd)


def limit_targets(paths: list[str]) -> tuple[list[str], bool]:
    """As many paths as fit on a command line, and whether these are all."""
    chosen: list[str] = []
    size = 0
    for path in paths[:MAX_TARGETS]:
        size += len(os.fsencode(path))
        if size > MAX_TARGET_BYTES:
            break
        chosen.append(path)
    return chosen, len(chosen) == len(paths)


def _build_filter(query: TextQuery) -> FileFilter:
    """The filter of a query; ripgrep complains about one that cannot be read."""
    try:
        return FileFilter(query)
    except BadQuery:
        return FileFilter(TextQuery(pattern="", root=query.root))
