"""A query answered without ripgrep: slower, with equal results."""

import os
from collections.abc import Iterable, Iterator
from typing import Literal

from handaxe.contract.ports.search import Elsewhere, Entry, Hides, Skipped, TextFound, TextQuery
from handaxe.host.search.arguments import Marks
from handaxe.host.search.blocks import in_path_order
from handaxe.host.search.filters import FileFilter
from handaxe.host.search.lines import LineReader
from handaxe.host.search.pages import Least, LinePage
from handaxe.host.search.place import SearchPlace
from handaxe.host.search.survey import ignores_for
from handaxe.host.search.text_scan import NotSearched, Scanner
from handaxe.host.search.walk import Choice, Walk
from handaxe.host.search.watch import Watch

SECOND_LOOK_S = 3.0
MAX_BINARY_FILES = 1_000


class PythonGrep:
    """One query on its way."""

    def __init__(
        self, query: TextQuery, place: SearchPlace, watch: Watch, hides: Hides | None
    ) -> None:
        self._query = query
        self._place = place
        self._watch = watch
        self._hides = hides
        self._marks = Marks.fresh()
        self._filter = FileFilter(query)
        self._scanner = Scanner(query, self._marks, watch)
        self._counted = {"binary": 0, "too_large": 0, "unreadable": 0}
        self._walk: Walk | None = None
        self._ignored_files: list[str] = []
        self._binary_files: list[str] = []
        self._links = 0
        self._is_complete = True

    def answer(self) -> TextFound:
        """The asked-for part of the answer."""
        found = self._lines() if self._query.mode == "content" else self._entries()
        walk = self._walk
        return TextFound(
            **{name: getattr(found, name) for name in found.__struct_fields__ if name in _FILLED},
            is_complete=self._is_complete,
            unvisited=walk.unvisited() if walk is not None and not walk.is_complete else [],
            elsewhere=self._second_look(found),
            skipped=Skipped(
                ignored=self._ignored,
                binary=self._counted["binary"] if not found.has_more else None,
                links=self._links,
                too_large=self._counted["too_large"],
                unreadable=self._counted["unreadable"] + (walk.unreadable if walk else 0),
                denied=self._hides is not None,
            ),
            engine="python",
        )

    def _entries(self) -> TextFound:
        query, matches = self._query, 0
        least = Least[tuple[object, str, int]](query.end)
        is_count = query.mode == "count"
        for path in self._files():
            count = self._count(path)
            if not count:
                continue
            matches += count
            raw = os.fsencode(path)
            key = in_path_order(raw) if is_count else (-self._mtime_ns(path), raw)
            least.add([(key, path, count if is_count else 0)])
        rows = least.rows(query.offset)
        entries = [Entry(self._place.prefix + path, count) for _, path, count in rows]
        return TextFound(
            entries=entries,
            total_files=least.total,
            total_matches=matches if is_count else None,
            has_more=query.offset + len(entries) < least.total,
        )

    def _lines(self) -> TextFound:
        page = LinePage(self._query, None)
        for path in sorted(self._files(), key=lambda path: in_path_order(os.fsencode(path))):
            if self._watch.is_over():
                self._is_complete = False
                break
            if self._take_lines(path, page):
                break
        reader = LineReader(self._place.prefix, self._marks, has_columns=self._query.only_matching)
        lines, rest = reader.read(page.blocks)
        return TextFound(
            lines=lines,
            more_lines=rest,
            shown_lines=sum(body.count(b"\n") for _, body in page.blocks),
            total_lines=None if page.has_more else page.seen,
            total_files=None if page.has_more else page.files,
            has_more=page.has_more,
        )

    def _take_lines(self, path: str, page: LinePage) -> bool:
        try:
            return any(
                page.take(os.fsencode(path), body)
                for body in self._scanner.lines(path, dir_fd=self._place.fd)
            )
        except NotSearched as passed_by:
            self._note(path, passed_by.reason)
        except OSError:
            self._note(path, "unreadable")
        return False

    def _count(self, path: str) -> int:
        first_only = self._query.mode == "files"
        try:
            return self._scanner.count(path, dir_fd=self._place.fd, first_only=first_only)
        except NotSearched as passed_by:
            self._note(path, passed_by.reason)
        except OSError:
            self._note(path, "unreadable")
        return 0

    def _note(self, path: str, reason: str) -> None:
        self._counted[reason] += 1
        if reason == "binary" and len(self._binary_files) < MAX_BINARY_FILES:
            self._binary_files.append(path)

    def _mtime_ns(self, path: str) -> int:
        try:
            return os.stat(path, dir_fd=self._place.fd, follow_symlinks=False).st_mtime_ns
        except OSError:
            return 0

    def _files(self) -> Iterator[str]:
        """The files to search, relative to the directory the search runs in."""
        if self._query.is_file:
            yield self._place.target.removeprefix("./")
            return
        self._walk = walk = Walk(
            self._place.path,
            self._watch,
            ignores=ignores_for(self._query, self._place),
            choice=Choice(
                hides=self._hides, enters=self._filter.enters, rescues=self._filter.rescues
            ),
            opened_at=self._place.directory,
        )
        prefix, wants = self._place.prefix, self._filter.wants_file
        for visit in walk:
            directory, entries, _ = visit
            left_out = walk.ignored_names(visit)
            for entry in entries:
                name = entry.name
                path = directory + name
                if self._hides is not None and self._hides(prefix + path):
                    continue
                if not entry.is_file(follow_symlinks=False):
                    self._links += entry.is_symlink() and name not in left_out
                elif wants(path, name, is_ignored=name in left_out):
                    if self._watch.is_over():
                        self._is_complete = False
                        return
                    yield path
                elif name in left_out and wants(path, name, is_ignored=False):
                    self._ignored_files.append(path)
        self._is_complete = self._is_complete and walk.is_complete

    @property
    def _ignored(self) -> int | None:
        """Ignored directories and files the query asks for; None if the walk did not end."""
        if self._walk is None:
            return 0
        known = len(self._walk.ignored_directories) + len(self._ignored_files)
        return known if self._walk.is_complete else None

    def _second_look(self, found: TextFound) -> list[Elsewhere]:
        """Where nothing was found: what there is in the files that were passed by."""
        is_empty = not found.shown_lines and not found.entries and not self._query.offset
        if not is_empty or not self._is_complete:
            return []
        return [
            *self._look("ignored", self._passed_by()),
            *self._look("binary", self._binary_files),
        ]

    def _look(self, reason: Literal["ignored", "binary"], paths: Iterable[str]) -> list[Elsewhere]:
        ends_at_s = self._watch.left_s() - SECOND_LOOK_S
        matches, files, example = 0, 0, ""
        for path in paths:
            if self._watch.left_s() < ends_at_s:
                break
            try:
                count = self._scanner.count(
                    path, dir_fd=self._place.fd, first_only=False, in_binary=reason == "binary"
                )
            except (NotSearched, OSError):
                continue
            if count:
                matches, files = matches + count, files + 1
                example = min(example, path) if example else path
        if not files:
            return []
        return [Elsewhere(reason, matches, files, self._place.prefix + example)]

    def _passed_by(self) -> Iterator[str]:
        yield from self._ignored_files
        for directory in self._walk.ignored_directories if self._walk is not None else ():
            walk = Walk(self._place.prefix + directory, self._watch, ignores=None)
            for inside, entries, _ in walk:
                for entry in entries:
                    path = f"{directory}/{inside}{entry.name}"
                    is_hidden = self._hides is not None and self._hides(self._place.prefix + path)
                    if (
                        not is_hidden
                        and entry.is_file(follow_symlinks=False)
                        and self._filter.wants_file(path, entry.name, is_ignored=False)
                    ):
                        yield path


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
