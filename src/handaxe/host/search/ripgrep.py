"""A query answered by ripgrep, in as few and as short runs as it takes.

Lines are wanted in path order, and a sorted run of ripgrep uses one thread. So a sorted run is
tried for a moment, unless a head start has shown the text to be rare: in a small tree it ends, for
a common word it fills the page. If neither is in sight it is paused and all threads run unsorted;
what they find is sorted here. If that is more than a page the sorted run gets as long again as it
should need for a page; should the matches all lie far behind, the unsorted run goes to its end,
and of what it finds the first page is kept.
"""

import os
import time
from collections.abc import Callable, Sequence

import msgspec

from handaxe.contract.ports.search import (
    BadQuery,
    Elsewhere,
    Entry,
    Hides,
    TextFound,
    TextQuery,
)
from handaxe.host.search.arguments import VCS_NAMES, Manner, Marks, command, needs_json
from handaxe.host.search.asking import Asking
from handaxe.host.search.blocks import (
    CountStream,
    HeadingStream,
    PathStream,
    Take,
    TakeFiles,
    in_path_order,
)
from handaxe.host.search.encodings import foreign_encoding
from handaxe.host.search.head_start import HeadStart
from handaxe.host.search.json_stream import JsonStream
from handaxe.host.search.known_trees import KnownTrees
from handaxe.host.search.pages import Least, LinePage, LinePile
from handaxe.host.search.place import SearchPlace
from handaxe.host.search.process import Feed, Later, Process, Run
from handaxe.host.search.second_look import SecondLook
from handaxe.host.search.survey import Survey
from handaxe.host.search.watch import Watch

GLANCE_S = 0.02
"""How long a sorted run may take before the search counts as a long one."""
HOPEFUL = 5
"""A sorted run goes on so many times as long if that promises to fill the page."""
PROMPT_LINES = 1_000
"""Up to so many lines it writes each at once: what it has found by a moment shows what to hope."""
SORTED_SHARE = 3
"""How many times the unsorted run's time the sorted one may take for the same number of lines."""
MAX_PILE_LINES = 200_000


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
        survey: Survey | None = None,
        start: HeadStart | None = None,
        known: KnownTrees | None = None,
    ) -> None:
        """Plan a search; what is handed in was begun by others, and goes on beside ripgrep."""
        self._program = program
        self._query = query
        self._place = place
        self._watch = watch
        self._hides = hides
        self._marks = Marks.fresh()
        self._survey = survey or Survey(query, place, watch, hides)
        self._start = start
        self._asking = Asking(query, place, self._survey, known or KnownTrees())
        self._encoding = foreign_encoding(place.target, place.fd) if query.is_file else None
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
        if found.engine:
            return found
        is_empty = not found.shown_lines and not found.entries and not self._query.offset
        if is_empty and self._is_complete:
            found = msgspec.structs.replace(found, elsewhere=self._second_look())
        return msgspec.structs.replace(
            found,
            is_complete=self._is_complete,
            unvisited=[] if self._is_complete else self._branches(),
            skipped=self._asking.skipped(found, self._last, is_complete=self._is_complete),
            engine="ripgrep",
        )

    def _files(self) -> TextFound:
        least = Least[tuple[int, bytes]](self._query.end)
        directory, prefix = self._place.fd, self._place.prefix

        def take(paths: list[bytes]) -> bool:
            rows: list[tuple[int, bytes]] = []
            for path in paths:
                if self._is_hidden is not None and self._is_hidden(path):
                    continue
                try:
                    info = os.stat(path, dir_fd=directory, follow_symlinks=False)
                except OSError:
                    continue
                rows.append((-info.st_mtime_ns, path))
            least.add(rows)
            return False

        self._finish_all(PathStream(take).feed)
        entries = [Entry(prefix + os.fsdecode(path)) for _, path in least.rows(self._query.offset)]
        return self._entries(entries, least.total, None)

    def _counts(self) -> TextFound:
        least = Least[tuple[bytes, bytes, int]](self._query.end)
        prefix = self._place.prefix
        matches = 0

        def take(pairs: list[tuple[bytes, int]]) -> bool:
            nonlocal matches
            rows: list[tuple[bytes, bytes, int]] = []
            for path, count in pairs:
                if self._is_hidden is None or not self._is_hidden(path):
                    matches += count
                    rows.append((in_path_order(path), path, count))
            least.add(rows)
            return False

        self._finish_all(CountStream(take).feed)
        rows = least.rows(self._query.offset)
        entries = [Entry(prefix + os.fsdecode(path), count) for _, path, count in rows]
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
            return self._sorted_lines()
        if end is None:
            return self._unsorted_lines(None) or self._sorted_lines()
        page, start = self._page(), self._start
        ordered = Later(lambda: self._begin_lines(page.take, self._sorted()))
        try:
            if start is None or not start.is_hopeless:
                if start is not None and start.is_ahead_of(ordered.process):
                    return start.found(self._survey)
                if self._fills_at_once(ordered, page):
                    return self._settled(ordered, page)
                ordered.pause()
            found = self._unsorted_lines(ordered) if end <= MAX_PILE_LINES else None
            return found or self._settled(ordered, page)
        finally:
            ordered.end()

    def _begin_lines(
        self, take: Take, manner: Manner, take_files: TakeFiles | None = None
    ) -> Process:
        return self._asking.begin(lambda: self._open_lines(take, manner, take_files))

    def _fills_at_once(self, run: Later, page: LinePage) -> bool:
        """Whether a sorted run came to its end in a moment, or in others that promised it."""
        for seconds, hoped_for in (
            (GLANCE_S, 0),
            (GLANCE_S / 2, (self._query.end or 0) // HOPEFUL),
        ):
            if run.go(seconds) != "out_of_time":
                return True
            if page.seen <= hoped_for:
                return False
        return run.go(GLANCE_S * HOPEFUL) != "out_of_time"

    def _settled(self, ordered: Later, page: LinePage) -> TextFound:
        self._settle(ordered.finished())
        return self._page_found(page)

    def _sorted_lines(self) -> TextFound:
        page = self._page()
        self._finish(self._open_lines(page.take, self._sorted()))
        return self._page_found(page)

    def _unsorted_lines(self, ordered: Later | None) -> TextFound | None:
        """The page of an unsorted run; None if it is left to a sorted one, begun by then or not."""
        end = self._query.end
        pile = LinePile(end, self._is_hidden)
        began = time.monotonic()
        manner = Manner(max_per_file=None if end is None else end + 1)
        run = self._begin_lines(pile.take, manner, pile.take_files)
        try:
            ending = run.go(has_enough=lambda: pile.is_overfull)
            if ending == "enough" and ordered is not None:
                run.pause()
                patience_s = SORTED_SHARE * (time.monotonic() - began) + GLANCE_S
                if ordered.go(patience_s) != "out_of_time":
                    return None
                ordered.pause()
                run.resume()
                ending = run.go()
            if ending == "satisfied":
                return None
            self._settle(run)
        finally:
            run.end()
        page = self._page()
        pile.pour(page)
        return self._page_found(page)

    def _page(self) -> LinePage:
        return LinePage(self._query, self._is_hidden)

    def _sorted(self) -> Manner:
        end = self._query.end
        return Manner(
            is_sorted=True,
            is_prompt=end is not None and end <= PROMPT_LINES,
            max_per_file=None if end is None else end + 1,
        )

    def _open_lines(
        self, take: Take, manner: Manner, take_files: TakeFiles | None = None
    ) -> Process:
        stream = (
            JsonStream(take, self._marks, self._query)
            if needs_json(self._query)
            else HeadingStream(take, self._marks, take_files)
        )

        def at_end(outcome: Run) -> None:
            if outcome.ending != "satisfied":
                stream.finish()
            outcome.note_binary(stream.binary_files)

        return self._open(stream.feed, manner, at_end)

    def _page_found(self, page: LinePage) -> TextFound:
        self._last.binary += page.binary_files
        return page.found(self._place.prefix, self._marks)

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
        look = SecondLook(self._last, self._place, self._watch, self._is_hidden, self._open_again)
        is_small, is_counted = self._survey.look_around(), self._asking.is_asked
        binary = look.at_binary(is_counted=is_counted, is_small=is_small)
        ignored = look.at_ignored(self._survey, self._asking.ignored(self._last))
        if self._query.is_file or self._query.pattern.isascii():
            return ignored + binary
        return ignored + binary + look.at_foreign()

    def _open_again(self, feed: Feed, manner: Manner, targets: Sequence[str] | None) -> Process:
        return self._open(feed, manner, targets=targets)

    @property
    def _is_hidden(self) -> Callable[[bytes], bool] | None:
        hides, prefix = self._hides, self._place.prefix
        if hides is None:
            return None
        return lambda path: hides(prefix + os.fsdecode(path))

    def _open(
        self,
        feed: Feed,
        manner: Manner | None = None,
        at_end: Callable[[Run], None] = lambda _: None,
        targets: Sequence[str] | None = None,
    ) -> Process:
        """Begin a run over the place of the search, or over some entries of it only."""
        manner = msgspec.structs.replace(
            manner or Manner(),
            without_parents=self._place.is_ignored,
            asks_why=targets is None and (self._asking.is_asked or self._saves_memory),
            one_thread=self._one_thread,
            saves_memory=self._saves_memory,
            encoding=(manner and manner.encoding) or self._encoding,
        )
        wanted = targets if targets is not None else (self._place.target,)
        line = command(self._program, self._query, wanted, manner, self._marks)
        try:
            outcome = Run(self._is_hidden)
            return Process(
                line,
                self._place.directory,
                feed,
                self._watch,
                outcome,
                at_end,
                is_prompt=manner.is_prompt,
                may_say=self._asking.may_say,
            )
        except OSError as error:
            raise RipgrepFailed(str(error)) from error

    def _finish_all(self, feed: Feed) -> None:
        """Search everything for what a line each tells of."""
        self._finish(self._asking.begin(lambda: self._open(feed)))

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
        self._asking.note(outcome)
        if outcome.ending == "talked_too_much":
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
