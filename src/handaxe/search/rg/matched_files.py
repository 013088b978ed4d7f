"""The files with a match, of which a page is wanted, and how many there are in all."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from handaxe.contract.ports.search import FileMatch, TextFound
from handaxe.search.pagination import FirstRows
from handaxe.search.rg.open_files import OpenFiles, open_files
from handaxe.search.rg.rg_process import Feed, RipgrepProcess
from handaxe.search.rg_arguments import RipgrepOptions
from handaxe.search.rg_output import CountStream, Take
from handaxe.search.walk.root import SearchPlace
from handaxe.search.walk.unchanged_paths import UnchangedPaths

FileRow = tuple[Any, bytes, int]
"""What a file is sorted by, its path, and its number of matching lines."""


class MatchedFiles:
    """Takes files in any order; keeps those that can be on the page."""

    def __init__(self, end: int | None, *, counts_lines: bool = False) -> None:
        self._end = end
        self._counts_lines = counts_lines
        self._least = FirstRows[FileRow](end)
        self._files: Counter[bytes] = Counter()
        self._matches: Counter[bytes] = Counter()

    def add(self, rows: list[FileRow]) -> None:
        """Take some more files."""
        self._least.add(rows)
        self._files.update([path.rpartition(b"/")[0] for _, path, _ in rows])
        if self._counts_lines:
            for _, path, count in rows:
                self._matches[path.rpartition(b"/")[0]] += count

    @property
    def directories(self) -> Iterable[bytes]:
        """The directories that hold them."""
        return self._files

    def correct(
        self,
        moving: set[bytes],
        unsure: Callable[[list[bytes]], list[bytes]],
        search_again: Callable[[list[bytes]], Mapping[bytes, int]],
    ) -> None:
        """Search again what may have been another file; what does not match then is dropped.

        Args:
            moving: directories of which some entries may have been others.
            unsure: gives those paths that may have been.
            search_again: gives the numbers of matching lines of those that do have some.
        """
        rows = self._least.get_kept_rows()
        doubtful = [row[1] for row in rows if row[1].rpartition(b"/")[0] in moving]
        again = unsure(doubtful)
        counts, dropped = search_again(again), set(again)
        old, self._least = self._least, FirstRows[FileRow](self._end)
        files = sum(self._files.pop(directory, 0) for directory in moving)
        for directory in moving:
            self._matches.pop(directory, None)
        self._least.total = old.total - files
        self._least.keep([row for row in rows if row[1].rpartition(b"/")[0] not in moving])
        self.add(
            [
                (key, path, counts.get(path, count) if self._counts_lines else 0)
                for key, path, count in rows
                if path.rpartition(b"/")[0] in moving and (path not in dropped or path in counts)
            ]
        )

    @property
    def total(self) -> int:
        """How many files there are in all."""
        return self._least.total

    def list_entries(self, prefix: str, offset: int = 0) -> list[FileMatch]:
        """The page; `prefix` makes its paths absolute."""
        rows = self._least.rows(offset)
        return [FileMatch(prefix + os.fsdecode(path), count) for _, path, count in rows]

    def found(self, prefix: str, offset: int) -> TextFound:
        """The page as an answer."""
        entries, total = self.list_entries(prefix, offset), self.total
        return TextFound(
            entries=entries,
            total_files=total,
            total_matches=sum(self._matches.values()) if self._counts_lines else None,
            has_more=offset + len(entries) < total,
        )


AT_A_TIME = 128

OpenHeld = Callable[[Feed, RipgrepOptions, OpenFiles[bytes]], RipgrepProcess]
OpenHeldLines = Callable[[Take, OpenFiles[bytes]], RipgrepProcess]


class MatchConfirmation:
    """For one run or some runs that begin now."""

    def __init__(self, place: SearchPlace, *, is_file: bool) -> None:
        self._place = place
        self._is_file = is_file
        self._unchanged = UnchangedPaths(place.fd)
        self.is_complete = True
        """False if time ran out before everything was confirmed."""

    def unsure(self, paths: Iterable[bytes]) -> list[bytes]:
        """Those paths that may have stood for other files."""
        return self._unchanged.unsure(paths, are_named=self._is_file)

    def find_moving(self, directories: Iterable[bytes]) -> set[bytes]:
        """Those directories whose files have to be looked at one by one."""
        found = set(directories)
        return found if self._is_file else self._unchanged.find_moving(found)

    def counts(
        self, paths: Sequence[bytes], manner: RipgrepOptions, open_run: OpenHeld
    ) -> dict[bytes, int]:
        """The numbers of matching lines of those files that have some."""
        counts: dict[bytes, int] = {}
        for at in range(0, len(paths), AT_A_TIME):
            with open_files(self._place.fd, paths[at : at + AT_A_TIME]) as held:

                def take(pairs: list[tuple[bytes, int]], held: OpenFiles[bytes] = held) -> bool:
                    counts.update((held.get_key(target), count) for target, count in pairs)
                    return False

                feed = CountStream(take).feed
                self._finish(held, lambda held, feed=feed: open_run(feed, manner, held))
        return counts

    def bodies(self, paths: Sequence[bytes], open_run: OpenHeldLines) -> dict[bytes, bytes]:
        """The lines to show of each file; none for those that have none."""
        parts: dict[bytes, list[bytes]] = {path: [] for path in paths}
        for at in range(0, len(paths), AT_A_TIME):
            with open_files(self._place.fd, paths[at : at + AT_A_TIME]) as held:

                def take(target: bytes, body: bytes, held: OpenFiles[bytes] = held) -> bool:
                    parts[held.get_key(target)].append(body)
                    return False

                self._finish(held, lambda held, take=take: open_run(take, held))
        return {path: b"".join(bodies) for path, bodies in parts.items()}

    def _finish(
        self, held: OpenFiles[bytes], open_run: Callable[[OpenFiles[bytes]], RipgrepProcess]
    ) -> None:
        if not held.targets:
            return
        run = open_run(held)
        try:
            if run.go() == "out_of_time":
                self.is_complete = False
        finally:
            run.end()
