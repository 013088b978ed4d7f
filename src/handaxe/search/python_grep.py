"""A query answered without ripgrep: slower, with equal results."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from handaxe.contract.ports.search import (
    FallbackMatches,
    FileMatch,
    SkippedFiles,
    TextFound,
    TextQuery,
)
from handaxe.search.chunked_search import ChunkedSearch, PieceSearch
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.pagination import FirstRows, LinePage
from handaxe.search.rg_arguments import MatchMarks
from handaxe.search.rg_output import make_path_key
from handaxe.search.text_scan import HasLongLine, NotSearched, Scanner
from handaxe.search.walk.file_list import QueryFileList
from handaxe.search.walk.ignored_survey import IgnoredSurvey
from handaxe.search.walk.root import SearchPlace

SECOND_LOOK_S = 3.0
MAX_BINARY_FILES = 1_000


class PythonGrep:
    """One query on its way."""

    def __init__(
        self, query: TextQuery, place: SearchPlace, watch: SearchDeadline, screen: ExclusionFilter
    ) -> None:
        self._query = query
        self._place = place
        self._watch = watch
        self._screen = screen
        self._marks = MatchMarks.create()
        self._files = QueryFileList(query, place, watch, screen)
        self._scanner = Scanner(query, self._marks, watch)
        pieces = _Scanned(self._scanner)
        self._cut = ChunkedSearch(query, self._marks, pieces, place.fd, watch)
        self._counted = {"binary": 0, "too_large": 0, "unreadable": 0}
        self._binary_files: list[str] = []
        self._unvisited: list[str] = []
        self._is_complete = True

    def answer(self) -> TextFound:
        """The asked-for part of the answer."""
        found = self._lines() if self._query.mode == "content" else self._entries()
        return TextFound(
            **{name: getattr(found, name) for name in found.__struct_fields__ if name in _FILLED},
            capped_lines=self._cut.capped_lines,
            is_complete=self._is_complete,
            unvisited=self._unvisited,
            elsewhere=self._second_look(found),
            skipped=self._count_skipped(found),
            engine="python",
        )

    def _entries(self) -> TextFound:
        query, matches = self._query, 0
        least = FirstRows[tuple[object, str, int]](query.end)
        is_count = query.mode == "count"
        for path in self._limit_by_time(self._files):
            count = self._count(path)
            if not count:
                continue
            matches += count
            raw = os.fsencode(path)
            key = make_path_key(raw) if is_count else (-self._read_mtime_ns(path), raw)
            least.add([(key, path, count if is_count else 0)])
        rows = least.rows(query.offset)
        entries = [FileMatch(self._place.prefix + path, count) for _, path, count in rows]
        return TextFound(
            entries=entries,
            total_files=least.total,
            total_matches=matches if is_count else None,
            has_more=query.offset + len(entries) < least.total,
        )

    def _lines(self) -> TextFound:
        page = LinePage(self._query, None)
        for path in self._limit_by_time(self._files.list_sorted()):
            if self._take_lines(path, page):
                break
        return page.found(self._place.prefix, self._marks)

    def _take_lines(self, path: str, page: LinePage) -> bool:
        raw = os.fsencode(path)
        try:
            bodies = self._scanner.lines(path, dir_fd=self._place.fd)
            return any(page.take(raw, body) for body in bodies)
        except HasLongLine:
            return any(page.take(raw, body) for body in self._cut.lines(path))
        except NotSearched as passed_by:
            self._note(path, passed_by.reason)
        except OSError:
            self._note(path, "unreadable")
        return False

    def _count(self, path: str) -> int:
        first_only = self._query.mode == "files"
        try:
            return self._scanner.count(path, dir_fd=self._place.fd, first_only=first_only)
        except HasLongLine:
            return self._cut.count(path)
        except NotSearched as passed_by:
            self._note(path, passed_by.reason)
        except OSError:
            self._note(path, "unreadable")
        return 0

    def _note(self, path: str, reason: str) -> None:
        self._counted[reason] += 1
        if reason == "binary" and len(self._binary_files) < MAX_BINARY_FILES:
            self._binary_files.append(path)

    def _read_mtime_ns(self, path: str) -> int:
        try:
            return os.stat(path, dir_fd=self._place.fd, follow_symlinks=False).st_mtime_ns
        except OSError:
            return 0

    def _limit_by_time(self, paths: Iterable[str]) -> Iterator[str]:
        """As many paths as there is time for."""
        not_searched = None
        for path in paths:
            if self._watch.is_over():
                not_searched = path
                break
            yield path
        if not_searched is not None or not self._files.has_ended:
            self._is_complete = False
            self._unvisited = self._files.unvisited(not_searched)
        self._is_complete = self._is_complete and self._cut.is_complete

    def _count_skipped(self, found: TextFound) -> SkippedFiles:
        """What was passed by; of a walk that was left early only what a small tree holds."""
        files = self._files
        if files.has_ended:
            ignored = len(files.ignored_directories) + len(files.ignored)
            skipped = SkippedFiles(
                ignored=ignored,
                links=files.links,
                denied=self._screen.has_rules,
                withheld=files.withheld,
            )
        else:
            survey = IgnoredSurvey(self._query, self._place, self._watch, self._screen)
            if self._is_complete:
                survey.look_around()
            skipped = survey.skipped()
        is_told = self._is_complete and not found.is_cut_short
        return msgspec.structs.replace(
            skipped,
            binary=self._counted["binary"] if is_told else None,
            too_large=self._counted["too_large"],
            unreadable=self._counted["unreadable"] + files.unreadable,
        )

    def _second_look(self, found: TextFound) -> list[FallbackMatches]:
        """Where nothing was found: what there is in the files that were passed by."""
        is_empty = not found.shown_lines and not found.entries and not self._query.offset
        if not is_empty or not self._is_complete:
            return []
        return [
            *self._look("ignored", self._files.list_ignored()),
            *self._look("binary", self._binary_files),
        ]

    def _look(
        self, reason: Literal["ignored", "binary"], paths: Iterable[str]
    ) -> list[FallbackMatches]:
        ends_at_s = self._watch.get_remaining_s() - SECOND_LOOK_S
        matches, files, example = 0, 0, ""
        for path in paths:
            if self._watch.get_remaining_s() < ends_at_s:
                break
            try:
                count = self._scanner.count(
                    path, dir_fd=self._place.fd, first_only=False, in_binary=reason == "binary"
                )
            except HasLongLine:
                count = self._cut.count(path)
            except (NotSearched, OSError):
                continue
            if count:
                matches, files = matches + count, files + 1
                example = min(example, path) if example else path
        if not files:
            return []
        return [FallbackMatches(reason, matches, files, self._place.prefix + example)]


class _Scanned(PieceSearch):
    """Searches texts in this process."""

    whole_bytes = 1 << 18

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    def bodies(self, texts: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """The number of a text and lines to show of it."""
        for number, text in enumerate(texts):
            if body := self._scanner.lines_of(text):
                yield number, body

    def count(self, text: bytes) -> int:
        """How many lines match."""
        return self._scanner.count_in(text)


_FILLED = {
    "lines",
    "more_lines",
    "shown_lines",
    "entries",
    "total_files",
    "total_matches",
    "total_lines",
    "has_more",
}
