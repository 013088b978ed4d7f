"""A query answered by ripgrep, in as few and as short runs as it takes.

Lines are wanted in path order, and a sorted run of ripgrep uses one thread. So a sorted run is
tried for a moment: in a small tree it ends, for a common word it fills the page. If neither
happens the search is a long one; then all threads run unsorted, and what they find is sorted
here, unless it is more than a page: then a sorted run is stopped as soon as its page is full.
"""

import os
import time
from collections.abc import Callable

import msgspec

from handaxe.contract.ports.search import (
    BadQuery,
    Elsewhere,
    Entry,
    Hides,
    Skipped,
    TextFound,
    TextQuery,
)
from handaxe.host.search.arguments import VCS_NAMES, Manner, Marks, command, is_told_why, needs_json
from handaxe.host.search.blocks import CountStream, HeadingStream, PathStream, in_path_order
from handaxe.host.search.json_stream import JsonStream
from handaxe.host.search.lines import LineReader
from handaxe.host.search.pages import Least, LinePage, LinePile
from handaxe.host.search.place import SearchPlace
from handaxe.host.search.process import Feed, Run, run
from handaxe.host.search.watch import Watch

GLANCE_S = 0.02
"""How long a sorted run may take before the search counts as a long one."""
MAX_PILE_LINES = 200_000
SECOND_LOOK_S = 3.0
SECOND_LOOK_FILES = 10_000


class RipgrepFailed(Exception):
    """ripgrep could not run or broke off; what it said is the message."""


class _Again(Exception):
    """The answer has to be begun again, more modestly."""


class Ripgrep:
    """One query on its way."""

    def __init__(
        self,
        program: str,
        query: TextQuery,
        place: SearchPlace,
        watch: Watch,
        hides: Hides | None,
    ) -> None:
        self._program = program
        self._query = query
        self._place = place
        self._watch = watch
        self._hides = hides
        self._marks = Marks.fresh()
        self._one_thread = False
        self._saves_memory = False
        self._last = Run()
        self._is_complete = True

    def answer(self) -> TextFound:
        """The asked-for part of the answer.

        What the machine was short of is asked for once more in a smaller way, from the start.
        """
        while True:
            try:
                return self._answer()
            except _Again:
                continue

    def _answer(self) -> TextFound:
        mode = self._query.mode
        found = (
            self._lines()
            if mode == "content"
            else self._files()
            if mode == "files"
            else self._counts()
        )
        is_empty = not found.shown_lines and not found.entries and not self._query.offset
        if is_empty and self._is_complete:
            found = msgspec.structs.replace(found, elsewhere=self._second_look())
        return msgspec.structs.replace(
            found,
            is_complete=self._is_complete,
            unvisited=[] if self._is_complete else self._branches(),
            skipped=self._skipped(found),
            engine="ripgrep",
        )

    def _files(self) -> TextFound:
        least = Least(self._query.end)
        directory, prefix = self._place.fd, self._place.prefix

        def take(paths: list[bytes]) -> bool:
            for path in paths:
                if self._is_hidden is not None and self._is_hidden(path):
                    continue
                try:
                    info = os.stat(path, dir_fd=directory, follow_symlinks=False)
                except OSError:
                    continue
                least.add((-info.st_mtime_ns, path), path)
            return False

        self._run(PathStream(take).feed)
        entries = [Entry(prefix + os.fsdecode(path)) for path in least.items(self._query.offset)]
        return self._entries(entries, least.total, None)

    def _counts(self) -> TextFound:
        least = Least(self._query.end)
        prefix = self._place.prefix
        matches = 0

        def take(pairs: list[tuple[bytes, int]]) -> bool:
            nonlocal matches
            for path, count in pairs:
                if self._is_hidden is None or not self._is_hidden(path):
                    matches += count
                    least.add(in_path_order(path), (path, count))
            return False

        self._run(CountStream(take).feed)
        items = least.items(self._query.offset)
        entries = [Entry(prefix + os.fsdecode(path), count) for path, count in items]
        return self._entries(entries, least.total, matches)

    def _entries(self, entries: list[Entry], total: int, matches: int | None) -> TextFound:
        return TextFound(
            entries=entries,
            total_files=total,
            total_matches=matches,
            has_more=self._query.offset + len(entries) < total,
        )

    def _lines(self) -> TextFound:
        end = self._query.end
        if self._query.is_file:
            page = self._page()
            self._sorted_run(page, None)
            return self._page_found(page)
        if end is not None:
            page = self._page()
            glanced = self._sorted_run(page, time.monotonic() + GLANCE_S)
            if page.has_more or glanced.ending == "finished":
                return self._page_found(page)
        if end is None or end <= MAX_PILE_LINES:
            pile = LinePile(end)
            manner = Manner(max_per_file=None if end is None else end + 1)
            self._run_lines(pile.take, manner)
            if not pile.is_too_much:
                page = self._page()
                pile.pour(page)
                return self._page_found(page)
        page = self._page()
        self._sorted_run(page, None)
        return self._page_found(page)

    def _page(self) -> LinePage:
        return LinePage(self._query, self._is_hidden)

    def _sorted_run(self, page: LinePage, ends_at: float | None) -> Run:
        end = self._query.end
        manner = Manner(is_sorted=True, max_per_file=None if end is None else end + 1)
        return self._run_lines(page.take, manner, ends_at)

    def _run_lines(
        self, take: Callable[[bytes, bytes], bool], manner: Manner, ends_at: float | None = None
    ) -> Run:
        stream = (
            JsonStream(take, self._marks, self._query)
            if needs_json(self._query)
            else HeadingStream(take, self._marks)
        )
        outcome = self._run(stream.feed, manner, ends_at)
        if outcome.ending != "satisfied":
            stream.finish()
        outcome.binary += stream.binary_files
        return outcome

    def _page_found(self, page: LinePage) -> TextFound:
        reader = LineReader(self._place.prefix, self._marks, has_columns=self._query.only_matching)
        lines, rest = reader.read(page.blocks)
        is_whole = not page.has_more
        self._last.binary += page.binary_files
        return TextFound(
            lines=lines,
            more_lines=rest,
            shown_lines=sum(body.count(b"\n") for _, body in page.blocks),
            total_lines=page.seen if is_whole else None,
            total_files=page.files if is_whole else None,
            has_more=page.has_more,
        )

    def _branches(self) -> list[str]:
        """The directories right below the root: what to search one by one if all is too much."""
        if self._query.is_file:
            return []
        with os.scandir(self._place.directory) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name not in VCS_NAMES and entry.is_dir(follow_symlinks=False)
            )
        paths = [self._place.prefix + name for name in names]
        return [path for path in paths if self._hides is None or not self._hides(path)]

    def _second_look(self) -> list[Elsewhere]:
        """Where nothing was found: what there is in the files that were passed by."""
        query, last = self._query, self._last
        looks: list[Elsewhere] = []
        is_told = is_told_why(query)
        if query.respect_ignore and not query.is_file and (last.ignored or not is_told):
            looks += self._look("ignored", Manner(with_ignored=True))
        if last.binary or not is_told:
            looks += self._look("binary", Manner(in_binary=True))
        return looks

    def _look(self, reason: str, manner: Manner) -> list[Elsewhere]:
        matches = files = 0
        example = b""

        def take(pairs: list[tuple[bytes, int]]) -> bool:
            nonlocal matches, files, example
            for path, count in pairs:
                if self._is_hidden is None or not self._is_hidden(path):
                    matches += count
                    files += 1
                    example = min(example, path) if example else path
            return files >= SECOND_LOOK_FILES

        manner = msgspec.structs.replace(manner, counts_only=True)
        outcome = self._start(CountStream(take).feed, manner, self._watch.part(SECOND_LOOK_S))
        if not files:
            return []
        return [
            Elsewhere(
                "ignored" if reason == "ignored" else "binary",
                matches,
                files,
                self._place.prefix + os.fsdecode(example),
                is_complete=outcome.ending == "finished",
            )
        ]

    @property
    def _is_hidden(self) -> Callable[[bytes], bool] | None:
        hides, prefix = self._hides, self._place.prefix
        if hides is None:
            return None
        return lambda path: hides(prefix + os.fsdecode(path))

    def _run(self, feed: Feed, manner: Manner | None = None, ends_at: float | None = None) -> Run:
        outcome = self._start(feed, manner or Manner(), ends_at)
        self._last = outcome
        if outcome.lacked_threads and not self._one_thread:
            self._one_thread = True
            raise _Again
        if outcome.lacked_memory and not self._saves_memory:
            self._saves_memory = self._one_thread = True
            raise _Again
        if outcome.crashed:
            raise RipgrepFailed(_said(outcome))
        if outcome.ending == "finished" and outcome.exit_code == 2:
            _refuse_bad_query(outcome)
        if outcome.ending == "out_of_time" and ends_at is None:
            self._is_complete = False
        return outcome

    def _start(self, feed: Feed, manner: Manner, ends_at: float | None) -> Run:
        manner = msgspec.structs.replace(
            manner,
            without_parents=self._place.is_ignored,
            one_thread=self._one_thread,
            saves_memory=self._saves_memory,
        )
        line = command(self._program, self._query, self._place.target, manner, self._marks)
        try:
            return run(line, self._place.directory, feed, self._watch, ends_at)
        except OSError as error:
            raise RipgrepFailed(str(error)) from error

    def _skipped(self, found: TextFound) -> Skipped:
        last = self._last
        is_known = is_told_why(self._query) and self._is_complete and not found.has_more
        return Skipped(
            ignored=last.ignored if is_known and self._query.respect_ignore else None,
            binary=last.binary if is_known else None,
            too_large=last.too_large,
            unreadable=sum(b"(os error " in line for line in last.complaints),
            denied=self._hides is not None,
        )


def _said(outcome: Run) -> str:
    return b"\n".join(outcome.complaints).decode("utf-8", "replace").removeprefix("rg: ")


def _refuse_bad_query(outcome: Run) -> None:
    """Raise if ripgrep could not read the question; files it could not read are no matter."""
    said = _said(outcome)
    if "error parsing glob" in said:
        raise BadQuery("glob", said)
    if said.startswith("unrecognized file type"):
        raise BadQuery("type", said)
    if "(os error " not in said and said:
        raise BadQuery("pattern", said)
