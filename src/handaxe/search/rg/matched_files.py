"""The files with a match, of which a page is wanted, and how many there are in all."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from handaxe.contract.ports.search import FileMatch, TextFound, TextQuery
from handaxe.search.pagination import FirstRows

FileRow = tuple[Any, bytes, int]
"""What a file is sorted by, its path, and its number of matching lines."""


class MatchedFiles:
    """Takes files in any order; keeps those that can be on the page."""

    def __init__(self, query: TextQuery) -> None:
        self._query = query
        self._counts_lines = query.mode == "count"
        self._least = FirstRows[FileRow](query.end)
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
        old, self._least = self._least, FirstRows[FileRow](self._query.end)
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

    def found(self, prefix: str) -> TextFound:
        """The page; `prefix` makes its paths absolute."""
        offset, total = self._query.offset, self._least.total
        entries = [
            FileMatch(prefix + path.decode("utf-8", "surrogateescape"), count)
            for _, path, count in self._least.rows(offset)
        ]
        return TextFound(
            entries=entries,
            total_files=total,
            total_matches=sum(self._matches.values()) if self._counts_lines else None,
            has_more=offset + len(entries) < total,
        )
