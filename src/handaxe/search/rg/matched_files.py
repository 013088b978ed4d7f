"""The files of an answer: the page of them, and how many there are in all."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from handaxe.contract.ports.search import FileMatch, TextFound
from handaxe.search.rg.open_files import OpenFiles, open_files
from handaxe.search.rg.rg_process import Feed, RipgrepProcess
from handaxe.search.rg_arguments import RipgrepOptions
from handaxe.search.rg_output import CountStream, Take
from handaxe.search.walk.root import SearchPlace
from handaxe.search.walk.unchanged_paths import UnchangedPaths

FileRow = tuple[Any, bytes, int]
"""The sort key of a file, its path, and its number of matching lines."""
SPARE = 20_000
"""Rows are dropped once this many more exist than the page can need."""


class MatchedFiles:
    """Takes files in any order and keeps those that can be on the page.

    `directories` counts all files by directory.
    """

    def __init__(self, end: int | None) -> None:
        self._end = end
        self._rows: list[FileRow] = []
        self.directories: Counter[bytes] = Counter()
        self._matches: Counter[bytes] = Counter()
        self.total = 0

    def add(self, rows: list[FileRow]) -> None:
        """Take some more files."""
        self.total += len(rows)
        self.directories.update([_get_directory(path) for _, path, _ in rows])
        for _, path, count in rows if rows and rows[0][2] else ():
            self._matches[_get_directory(path)] += count
        self._rows += rows
        if self._end is not None and len(self._rows) > 2 * self._end + SPARE:
            self._rows = sorted(self._rows)[: self._end]

    def correct(
        self,
        moving: set[bytes],
        select_unsure: Callable[[list[bytes]], list[bytes]],
        search_again: Callable[[list[bytes]], Mapping[bytes, int]],
    ) -> None:
        """Search files again that may have been replaced, and drop those that no longer match.

        Args:
            moving: directories in which files may have been replaced.
            select_unsure: gives those paths whose files may have been replaced.
            search_again: gives the numbers of matching lines, for paths that match.
        """
        doubtful = [row for row in self._rows if _get_directory(row[1]) in moving]
        unsure = set(select_unsure([path for _, path, _ in doubtful]))
        counts = search_again([path for _, path, _ in doubtful if path in unsure])
        self._rows = [row for row in self._rows if _get_directory(row[1]) not in moving]
        for directory in moving:
            self.total -= self.directories.pop(directory, 0)
            self._matches.pop(directory, None)
        self.add(
            [
                (key, path, counts.get(path, count) if count else 0)
                for key, path, count in doubtful
                if path not in unsure or path in counts
            ]
        )

    def list_entries(self, prefix: str, offset: int = 0) -> list[FileMatch]:
        """The page; `prefix` makes its paths absolute."""
        rows = sorted(self._rows)[offset : self._end]
        return [FileMatch(prefix + os.fsdecode(path), count) for _, path, count in rows]

    def build_answer(self, prefix: str, offset: int, *, has_counts: bool) -> TextFound:
        """The page as an answer."""
        entries = self.list_entries(prefix, offset)
        return TextFound(
            entries=entries,
            total_files=self.total,
            total_matches=self._matches.total() if has_counts else None,
            has_more=offset + len(entries) < self.total,
        )


def _get_directory(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


FILES_AT_A_TIME = 128
OpenHeld = Callable[[Feed, RipgrepOptions, OpenFiles[bytes]], RipgrepProcess]
OpenHeldLines = Callable[[Take, OpenFiles[bytes]], RipgrepProcess]


class MatchConfirmation:
    """Searches files again, by open descriptors, whose names may have led to others."""

    def __init__(self, place: SearchPlace, *, is_file: bool) -> None:
        self._fd = place.fd
        self.unchanged = UnchangedPaths(place.fd, are_named=is_file)
        self.is_complete = True
        """False if time ran out before everything was confirmed."""

    def count_matches(
        self, paths: Sequence[bytes], manner: RipgrepOptions, open_run: OpenHeld
    ) -> dict[bytes, int]:
        """The numbers of matching lines, of those files that match."""
        counts: dict[bytes, int] = {}

        def start(held: OpenFiles[bytes]) -> RipgrepProcess:
            def take(pairs: list[tuple[bytes, int]]) -> bool:
                counts.update((held.get_key(target), count) for target, count in pairs)
                return False

            return open_run(CountStream(take).feed, manner, held)

        self._search_again(paths, start)
        return counts

    def find_lines(self, paths: Sequence[bytes], open_run: OpenHeldLines) -> dict[bytes, bytes]:
        """The lines to show of each file; empty where it does not match."""
        parts: dict[bytes, list[bytes]] = {path: [] for path in paths}

        def start(held: OpenFiles[bytes]) -> RipgrepProcess:
            def take(target: bytes, body: bytes) -> bool:
                parts[held.get_key(target)].append(body)
                return False

            return open_run(take, held)

        self._search_again(paths, start)
        return {path: b"".join(bodies) for path, bodies in parts.items()}

    def _search_again(
        self, paths: Sequence[bytes], start: Callable[[OpenFiles[bytes]], RipgrepProcess]
    ) -> None:
        for at in range(0, len(paths), FILES_AT_A_TIME):
            with open_files(self._fd, paths[at : at + FILES_AT_A_TIME]) as held:
                if not held.targets:
                    continue
                run = start(held)
                try:
                    self.is_complete = run.go() != "out_of_time" and self.is_complete
                finally:
                    run.end()
