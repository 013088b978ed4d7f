"""What a search passes by, found out by a short walk of our own.

ripgrep can tell it too, but writes a line in many pieces for every single file, which in a tree of
binary files takes longer than the search. The walk goes level by level: what projects ignore lies
near their root, so that much is known even of a tree too large to be walked to the end.
"""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from handaxe.contract.ports.search import VERSION_CONTROL, BadQuery, SkippedFiles, TextQuery
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.walk.file_list import select_ignores
from handaxe.search.walk.ignore_files import NAMES as IGNORE_NAMES
from handaxe.search.walk.ignore_files import FileFilter
from handaxe.search.walk.root import SearchPlace, open_beneath
from handaxe.search.walk.tree_cache import CachedWalk, TreeCache
from handaxe.search.walk.walk import DirectoryWalk, Visit, WalkFilter
from handaxe.text.secrets import can_name_env_file, is_env_file

SMALL_TREE = 3_000
"""A tree of at most so many entries is small, every directory counted ten times for what it costs
to be opened: it is walked in a moment before every search."""
DIRECTORY_WEIGHT = 10
MAX_TARGETS = 1_000
MAX_TARGET_BYTES = 1 << 18
_HEAD_BYTES = 1 << 16


class IgnoredEntries(NamedTuple):
    """Ignored entries, relative to the root; what is in the directories is not among the files."""

    directories: list[str]
    files: list[str]


class IgnoredSurvey:
    """The ignored entries and the links of a tree, as far as they were looked for."""

    def __init__(
        self,
        query: TextQuery,
        place: SearchPlace,
        watch: SearchDeadline,
        screen: ExclusionFilter,
        known: TreeCache | None = None,
    ) -> None:
        """Plan a survey; nothing is walked yet."""
        self._query = query
        self._place = place
        self._screen = screen
        # What a rule hides may change without a trace in the tree.
        self._known = None if screen.has_rules else known
        self._began_ns = time.time_ns()
        self._filter = _build_filter(query)
        ignores = None if query.is_file else select_ignores(query, place)
        self._above = None if ignores is None else ignores.sources
        self._walk = DirectoryWalk(
            place.path,
            watch,
            ignores=ignores,
            choice=WalkFilter(
                hides=screen.hides,
                enters=self._filter.enters if query.glob is not None else None,
                rescues=self._filter.rescues,
            ),
            fd=place.fd,
            reached_by=place.directory,
            by_level=True,
        )
        self._visits = iter(self._walk)
        self._seen: list[Visit] = []
        self.entries = 0
        """How many were met so far, beside directories."""
        self.is_complete = query.is_file
        self.is_small: bool | None = True if query.is_file else None
        """None until somebody looked around."""
        self._remembered: SkippedFiles | None = None
        self._env_files: list[str] = []

    def look_around(self) -> bool:
        """Walk a small tree to its end; of a large one, find out that it is large.

        What was walked the last time and has not changed is not walked again.

        Returns:
            Whether it is small.
        """
        if self.is_small is None:
            self.is_small = self._recall()
        if self.is_small is None:
            self._walk_if_small()
            self.is_small = self.is_complete
        return self.is_small

    def skipped(self) -> SkippedFiles:
        """What is known to be passed by; of a large tree only that there is at least so much."""
        if self._remembered is not None:
            withheld = sum(map(self._screen.is_withheld, self._env_files))
            is_least = self._remembered.withheld_is_least
            counted = withheld or (None if is_least else 0)
            return msgspec.structs.replace(self._remembered, withheld=counted)
        denied = self._screen.has_rules
        if self.is_complete:
            counted, links = self.ignored, self.links
            return SkippedFiles(ignored=counted, links=links, denied=denied, withheld=self.withheld)
        return SkippedFiles(
            ignored=self.ignored or None,
            ignored_is_least=True,
            denied=denied,
            withheld=self.withheld or None,
            withheld_is_least=True,
        )

    @property
    def ignored(self) -> int:
        """Ignored directories, each counted once, and ignored files the query asks for."""
        return len(self._walk.ignored_directories) + len(self._files())

    @property
    def links(self) -> int:
        """Links that were met and not followed."""
        return sum(
            entry.is_symlink()
            and entry.name not in self._walk.find_ignored_names(visit)
            and not self._is_hidden(visit[0] + entry.name)
            for visit in self._seen
            for entry in visit[1]
        )

    @property
    def withheld(self) -> int:
        """Files the query asks for that are left out because they may hold secrets."""
        self._env_files = [
            f"{self._place.prefix}{visit[0]}{name}"
            for visit in self._seen
            if can_name_env_file("\0".join([entry.name for entry in visit[1]]))
            for name in self._find_env_names(visit)
        ]
        return sum(map(self._screen.is_withheld, self._env_files))

    def _find_env_names(self, visit: Visit) -> list[str]:
        directory, entries, _ = visit
        left_out, wants = self._walk.find_ignored_names(visit), self._filter.is_wanted_file
        return [
            entry.name
            for entry in entries
            if is_env_file(entry.name)
            and entry.is_file(follow_symlinks=False)
            and wants(directory + entry.name, entry.name, is_ignored=entry.name in left_out)
        ]

    def list_branches(self) -> list[str]:
        """The directories right below the root: what to search one by one if all is too much."""
        if self._query.is_file:
            return []
        with os.scandir(self._place.directory) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name not in VERSION_CONTROL and entry.is_dir(follow_symlinks=False)
            )
        return [self._place.prefix + name for name in names if not self._is_hidden(name)]

    def continue_until(self, ends_at: float) -> None:
        """Look further; a tree that is not small may need longer than it is given."""
        self.look_around()
        if self._remembered is not None:
            self._remembered = None
            self._walk_if_small()
        if not self.is_complete:
            self._go_on(lambda: time.monotonic() > ends_at)

    def targets(self, told: IgnoredEntries | None) -> tuple[list[str], bool]:
        """The ignored entries to search, relative to the root, and whether these are all.

        They are those that ripgrep told of, or else those that were met so far.
        """
        found = told
        if found is None:
            found = IgnoredEntries(self._walk.ignored_directories, self._files())
        directories = found.directories
        everything = [*directories, *self._shown(found.files)]
        chosen: list[str] = []
        size = 0
        for number, path in enumerate(everything[:MAX_TARGETS]):
            size += len(os.fsencode(path))
            if size > MAX_TARGET_BYTES:
                return chosen, False
            if number < len(directories) or self._is_text(path):
                chosen.append(path)
        is_known = self.is_complete or told is not None
        return chosen, is_known and len(everything) <= MAX_TARGETS

    def _shown(self, files: list[str]) -> list[str]:
        screen = self._screen
        return [path for path in files if not screen.is_held_back(os.fsencode(path))]

    @property
    def _weight(self) -> int:
        """What the tree is known to hold so far, also where the walk did not get yet."""
        return self.entries + DIRECTORY_WEIGHT * (len(self._seen) + self._walk.waiting)

    def _recall(self) -> bool | None:
        """Whether the tree is a small one, if that is known from the last time."""
        if self._known is None:
            return None
        walked = self._known.find_walk(self._query, self._place.fd, self._above)
        if walked is None:
            return None
        self._remembered, self.entries = walked.skipped, walked.entries
        self._env_files = walked.env_files
        return walked.is_small

    def _walk_if_small(self) -> None:
        self.entries = 0
        self._go_on(lambda: self._weight > SMALL_TREE)
        is_settled = self.is_complete or self._weight > SMALL_TREE
        if self._known is None or not is_settled or self._walk.unreadable:
            return
        paths = [directory for directory, _, _ in self._seen]
        paths += [
            visit[0] + entry.name
            for visit in self._seen
            for entry in visit[1]
            if entry.name in IGNORE_NAMES
        ]
        skipped = self.skipped()
        walked = CachedWalk(
            skipped, self.entries, self.is_complete, self._above, {}, self._env_files
        )
        self._known.note_walk(self._query, self._place.fd, self._began_ns, paths, walked)

    def _go_on(self, is_enough: Callable[[], bool]) -> None:
        for visit in self._visits:
            self._seen.append(visit)
            self.entries += len(visit[1])
            if is_enough():
                return
        self.is_complete = self._walk.is_complete

    def _files(self) -> list[str]:
        """The ignored files the query asks for; found out only if somebody wants to know."""
        return [
            visit[0] + entry.name
            for visit in self._seen
            if (left_out := self._walk.find_ignored_names(visit))
            for entry in visit[1]
            if entry.name in left_out
            and entry.is_file(follow_symlinks=False)
            and self._is_missed(visit[0], entry.name)
        ]

    def _is_missed(self, directory: str, name: str) -> bool:
        """Whether an ignored file would be searched if it were not ignored, and only then."""
        path, wants = directory + name, self._filter.is_wanted_file
        return (
            wants(path, name, is_ignored=False)
            and not wants(path, name, is_ignored=True)
            and not self._is_hidden(path)
        )

    def _is_hidden(self, path: str) -> bool:
        hides = self._screen.hides
        return hides is not None and hides(self._place.prefix + path)

    def _is_text(self, path: str) -> bool:
        """Whether a file is no binary one; a file named to ripgrep is searched in any case."""
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


def _build_filter(query: TextQuery) -> FileFilter:
    """The filter of a query; one that cannot be read is ripgrep's to complain about."""
    try:
        return FileFilter(query)
    except BadQuery:
        return FileFilter(TextQuery(pattern="", root=query.root))
