"""A query answered by ripgrep, in as few and as short runs as it takes.

Lines are wanted in path order, and a sorted run of ripgrep uses one thread. So a sorted run is
tried for a moment: in a small tree it ends, for a common word it fills the page. If neither
happens it is paused and all threads run unsorted; what they find is sorted here, unless it is
more than a page: then the sorted run goes on and is stopped as soon as its page is full.
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
from handaxe.host.search.process import Feed, Process, Run
from handaxe.host.search.watch import Watch

GLANCE_S = 0.02
"""How long a sorted run may take before the search counts as a long one."""
MAX_PILE_LINES = 200_000
SECOND_LOOK_S = 3.0
MOMENT_S = 0.1
SECOND_LOOK_SHARE = 0.25
"""How much of the search's own time a second look may take, where that is more than a moment."""
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
        self._asks_why = True
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

        self._finish(self._open(PathStream(take).feed, Manner()))
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

        self._finish(self._open(CountStream(take).feed, Manner()))
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
        page = self._page()
        if self._query.is_file:
            self._finish(self._open_lines(page.take, self._sorted()))
            return self._page_found(page)
        sorted_run = None
        try:
            if end is not None:
                sorted_run = self._open_lines(page.take, self._sorted())
                if sorted_run.go(time.monotonic() + GLANCE_S) != "out_of_time":
                    self._settle(sorted_run)
                    return self._page_found(page)
                sorted_run.pause()
            if end is None or end <= MAX_PILE_LINES:
                pile = LinePile(end)
                max_per_file = None if end is None else end + 1
                self._finish(self._open_lines(pile.take, Manner(max_per_file=max_per_file)))
                if not pile.is_too_much:
                    page = self._page()
                    pile.pour(page)
                    return self._page_found(page)
            if sorted_run is None:
                sorted_run = self._open_lines(page.take, self._sorted())
            sorted_run.resume()
            sorted_run.go()
            self._settle(sorted_run)
            return self._page_found(page)
        finally:
            if sorted_run is not None:
                sorted_run.end()

    def _page(self) -> LinePage:
        return LinePage(self._query, self._is_hidden)

    def _sorted(self) -> Manner:
        end = self._query.end
        return Manner(is_sorted=True, max_per_file=None if end is None else end + 1)

    def _open_lines(self, take: Callable[[bytes, bytes], bool], manner: Manner) -> Process:
        stream = (
            JsonStream(take, self._marks, self._query)
            if needs_json(self._query)
            else HeadingStream(take, self._marks)
        )

        def at_end(outcome: Run) -> None:
            if outcome.ending != "satisfied":
                stream.finish()
            outcome.binary += stream.binary_files

        return self._open(stream.feed, manner, at_end)

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
        is_told = self._is_told_why
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

        manner = msgspec.structs.replace(manner, counts_only=True, asks_why=False)
        budget_s = max(MOMENT_S, self._last.duration_s * SECOND_LOOK_SHARE)
        ends_at = self._watch.part(min(budget_s, SECOND_LOOK_S))
        process = self._open(CountStream(take).feed, manner)
        try:
            ending = process.go(ends_at)
        finally:
            process.end()
        if not files and ending == "finished":
            return []
        return [
            Elsewhere(
                "ignored" if reason == "ignored" else "binary",
                matches,
                files,
                self._place.prefix + os.fsdecode(example) if files else "",
                is_complete=ending == "finished",
            )
        ]

    @property
    def _is_told_why(self) -> bool:
        return self._asks_why and is_told_why(self._query)

    @property
    def _is_hidden(self) -> Callable[[bytes], bool] | None:
        hides, prefix = self._hides, self._place.prefix
        if hides is None:
            return None
        return lambda path: hides(prefix + os.fsdecode(path))

    def _open(
        self, feed: Feed, manner: Manner, at_end: Callable[[Run], None] = lambda _: None
    ) -> Process:
        manner = msgspec.structs.replace(
            manner,
            without_parents=self._place.is_ignored,
            asks_why=manner.asks_why and self._asks_why,
            one_thread=self._one_thread,
            saves_memory=self._saves_memory,
        )
        line = command(self._program, self._query, self._place.target, manner, self._marks)
        try:
            return Process(line, self._place.directory, feed, self._watch, at_end)
        except OSError as error:
            raise RipgrepFailed(str(error)) from error

    def _finish(self, process: Process) -> None:
        """Let a run go on to its end."""
        try:
            process.go()
            self._settle(process)
        finally:
            process.end()

    def _settle(self, process: Process) -> None:
        """Take in what a run came to; what the machine was short of begins it again."""
        outcome = self._last = process.end()
        if outcome.ending == "talked_too_much":
            self._asks_why = False
            raise _Again
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
        if outcome.ending == "out_of_time":
            self._is_complete = False

    def _skipped(self, found: TextFound) -> Skipped:
        last = self._last
        is_known = self._is_told_why and self._is_complete and not found.has_more
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
