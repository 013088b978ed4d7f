"""Search for text with as few and as short runs of ripgrep as possible.

Lines come in path order, and a sorted run of ripgrep uses one thread. So a sorted run goes first
for a moment: it ends in a small tree, and it fills the page for a common word. If neither is near,
it is paused, and a run with all threads finds lines in any order, which are sorted here. If these
are more than a page, the sorted run continues for as long as a page should take. If the page is not
full then, the unsorted run continues to its end, and the first page of its lines is kept.
"""

import os
import time

import msgspec

from handaxe.contract.faults.search import RipgrepFailed
from handaxe.contract.ports.search import (
    FallbackMatches,
    TextFound,
    TextQuery,
)
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.pagination import LinePage, UnorderedLines
from handaxe.search.rg.exclusion_probe import ExclusionProbe, LoudTrees
from handaxe.search.rg.fallback import FallbackSearch
from handaxe.search.rg.launch import RipgrepLauncher
from handaxe.search.rg.matched_files import MatchConfirmation, MatchedFiles
from handaxe.search.rg.rg_outcome import RipgrepOutcome
from handaxe.search.rg.rg_process import (
    Feed,
    RipgrepProcess,
)
from handaxe.search.rg_arguments import RipgrepOptions
from handaxe.search.rg_output import (
    CountStream,
    PathStream,
    make_path_key,
)
from handaxe.search.walk.ignored_survey import IgnoredSurvey
from handaxe.search.walk.root import SearchPlace, stat_all

GLANCE_S = 0.02
"""How long a sorted run may take at first."""
HOPEFUL = 5
"""A sorted run continues for this multiple of `GLANCE_S` if that may fill the page."""
PROMPT_LINES = 1_000
"""For pages up to this size a sorted run writes each line at once, which shows its progress."""
SORTED_SHARE = 3
"""How much longer than the unsorted run the sorted one may take for a page."""
MAX_PILE_LINES = 200_000
MAX_PAUSED_BYTES = 9 << 20
"""A paused run with more memory has read long lines."""
MOST_ATTEMPTS = 3
"""How often a search starts again because files change meanwhile."""


class _Again(Exception):
    """The search has to start again, with other options."""


class Ripgrep:
    """The search for one query."""

    def __init__(
        self,
        program: str,
        query: TextQuery,
        place: SearchPlace,
        watch: SearchDeadline,
        screen: ExclusionFilter,
        loud: LoudTrees | None = None,
    ) -> None:
        """Plan a search; `loud` holds what earlier searches learned."""
        self._query = query
        self._place = place
        self._watch = watch
        self._screen = screen
        self._survey = IgnoredSurvey(query, place, watch, screen)
        self._probe = ExclusionProbe(query, place, self._survey, set() if loud is None else loud)
        self._launch = RipgrepLauncher(program, query, place, watch, screen)
        self._launch.is_asked = self._probe.is_asked
        self._last = RipgrepOutcome()
        self._is_complete = True
        self._confirming = MatchConfirmation(place, is_file=query.is_file)
        self._attempts = 1

    def answer(self) -> TextFound:
        """The requested page; a run that lacks threads or memory is repeated with less."""
        while True:
            try:
                return self._answer()
            except _Again:
                self._is_complete = True
                self._confirming = MatchConfirmation(self._place, is_file=self._query.is_file)

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
            unvisited=[] if self._is_complete else self._survey.list_branches(),
            skipped=self._probe.count_skipped(found, self._last, is_complete=self._is_complete),
        )

    def _files(self) -> TextFound:
        matched, directory = MatchedFiles(self._query.end), self._place.fd

        def take(paths: list[bytes]) -> bool:
            shown = [path for path in paths if not self._screen.is_held_back(path)]
            matched.add([(-info.st_mtime_ns, path, 0) for path, info in stat_all(directory, shown)])
            return False

        self._finish_all(PathStream(take).feed)
        take([path for path, _ in self._count_in_pieces()])
        return self._entries(matched, RipgrepOptions(counts_only=True, max_per_file=1))

    def _counts(self) -> TextFound:
        matched = MatchedFiles(self._query.end)

        def take(pairs: list[tuple[bytes, int]]) -> bool:
            holds_back = self._screen.is_held_back
            matched.add([(make_path_key(p), p, count) for p, count in pairs if not holds_back(p)])
            return False

        self._finish_all(CountStream(take).feed)
        take(self._count_in_pieces())
        return self._entries(matched, RipgrepOptions(counts_only=True))

    def _count_in_pieces(self) -> list[tuple[bytes, int]]:
        counts = self._launch.count_in_pieces()
        self._is_complete = self._is_complete and self._launch.cut.is_complete
        return counts

    def _entries(self, matched: MatchedFiles, manner: RipgrepOptions) -> TextFound:
        confirming = self._confirming
        moving = confirming.unchanged.find_moving(matched.directories)
        if moving:
            by_path = self._launch.exclude_long_files
            matched.correct(
                moving,
                lambda paths: confirming.unchanged.select_unsure(by_path(paths)),
                lambda paths: confirming.count_matches(paths, manner, self._launch.open_held),
            )
            self._is_complete = self._is_complete and confirming.is_complete
        return matched.build_answer(
            self._place.prefix, self._query.offset, has_counts=self._query.mode == "count"
        )

    def _lines(self) -> TextFound:
        end = self._query.end
        if self._query.is_file or self._launch.long_files:
            return self._find_sorted_lines()
        if end is None:
            return self._find_unsorted_lines(None) or self._find_sorted_lines()
        page = LinePage(self._query, self._screen)
        ordered = self._survey_beside(
            self._launch.open_lines(page.take, _build_sorted_options(end))
        )
        try:
            if _is_filled_at_once(ordered, page, end):
                return self._settled(ordered, page)
            ordered.pause()
            if self._launch.long_files is None and ordered.read_resident_bytes() > MAX_PAUSED_BYTES:
                self._search_in_pieces()
            found = self._find_unsorted_lines(ordered) if end <= MAX_PILE_LINES else None
            return found or self._settled(ordered, page)
        finally:
            ordered.end()

    def _survey_beside(self, run: RipgrepProcess) -> RipgrepProcess:
        """Scan the tree while ripgrep works, to limit the size of its messages."""
        try:
            run.may_say = self._launch.may_say = self._probe.may_say
        except BaseException:
            run.end()
            raise
        return run

    def _settled(self, ordered: RipgrepProcess, page: LinePage) -> TextFound:
        if ordered.outcome.ending == "out_of_time":
            ordered.resume()
        self._settle(ordered)
        return self._page_found(page)

    def _find_sorted_lines(self) -> TextFound:
        """Lines in path order, including those of files that are searched in pieces."""
        page = LinePage(self._query, self._screen)
        waiting = list(reversed(self._launch.long_files or ()))

        def take_long_files(before: bytes | None) -> bool:
            while waiting and (before is None or make_path_key(os.fsencode(waiting[-1])) < before):
                path = waiting.pop()
                for body in self._launch.cut.lines(path):
                    if page.take(os.fsencode(path), body):
                        return True
            return False

        def take(path: bytes, body: bytes) -> bool:
            is_full = bool(waiting) and take_long_files(make_path_key(path))
            return is_full or page.take(path, body)

        if self._launch.leaves_something:
            self._finish(self._launch.open_lines(take, _build_sorted_options(self._query.end)))
        if not page.has_more:
            take_long_files(None)
            self._is_complete = self._is_complete and self._launch.cut.is_complete
        return self._page_found(page)

    def _find_unsorted_lines(self, ordered: RipgrepProcess | None) -> TextFound | None:
        """The page of an unsorted run; None if a sorted run has to find it."""
        end = self._query.end
        pile = UnorderedLines(end, self._screen)
        began = time.monotonic()
        manner = RipgrepOptions(max_per_file=None if end is None else end + 1)
        run = self._survey_beside(self._launch.open_lines(pile.take, manner))
        try:
            ending = run.go(has_enough=lambda: pile.is_overfull)
            if ending == "enough" and ordered is not None:
                run.pause()
                patience_s = SORTED_SHARE * (time.monotonic() - began) + GLANCE_S
                if ordered.resume(patience_s) != "out_of_time":
                    return None
                ordered.pause()
                ending = run.resume()
            if ending == "satisfied":
                return None
            self._settle(run)
        finally:
            run.end()
        page = LinePage(self._query, self._screen)
        pile.flush_to(page)
        return self._page_found(page)

    def _page_found(self, page: LinePage) -> TextFound:
        self._last.binary += page.binary_files
        self._confirm(page)
        found = page.found(self._place.prefix, self._launch.marks)
        return msgspec.structs.replace(found, capped_lines=self._launch.cut.capped_lines)

    def _confirm(self, page: LinePage) -> None:
        """Search files again whose names may have led elsewhere, and drop what differs."""
        unsure = self._confirming.unchanged.select_unsure(
            self._launch.exclude_long_files([*page.lines_of])
        )
        if not unsure:
            return
        manner = msgspec.structs.replace(
            _build_sorted_options(self._query.end), is_sorted=False, is_prompt=False
        )
        bodies = self._confirming.find_lines(
            unsure, lambda take, held: self._launch.open_lines(take, manner, held=held)
        )
        self._is_complete = self._is_complete and self._confirming.is_complete
        wrong = page.find_differing(bodies)
        if wrong and self._attempts < MOST_ATTEMPTS:
            self._attempts += 1
            raise _Again
        page.drop(wrong)

    def _confirm_counts(self, counts: dict[bytes, int], manner: RipgrepOptions) -> dict[bytes, int]:
        unsure = self._confirming.unchanged.select_unsure(counts)
        if not unsure:
            return counts
        again = self._confirming.count_matches(unsure, manner, self._launch.open_held)
        return {path: n for path, n in counts.items() if path not in set(unsure)} | again

    def _second_look(self) -> list[FallbackMatches]:
        look = FallbackSearch(
            self._last,
            self._place,
            self._watch,
            self._screen,
            self._confirm_counts,
            lambda feed, manner, targets: self._launch.open(feed, manner, targets=targets),
        )
        is_small, is_counted = self._survey.look_around(), self._probe.is_asked
        binary = look.search_binary(is_counted=is_counted, is_small=is_small)
        ignored = look.search_ignored(self._survey, self._probe.find_ignored(self._last))
        if self._query.is_file or self._query.pattern.isascii():
            return ignored + binary
        return ignored + binary + look.search_foreign()

    def _finish_all(self, feed: Feed) -> None:
        """Search everything, for an answer with one entry per file."""
        if self._launch.leaves_something:
            self._finish(self._survey_beside(self._launch.open(feed)))

    def _finish(self, process: RipgrepProcess) -> None:
        """Let a run continue to its end."""
        try:
            process.go()
            self._settle(process)
        finally:
            process.end()

    def _search_in_pieces(self, path: bytes | None = None) -> None:
        """Start again, with files of long lines searched in pieces."""
        self._launch.find_long_lines(path)
        raise _Again

    def _settle(self, process: RipgrepProcess) -> None:
        """Read the outcome of a run; raises `_Again` if the run lacked resources."""
        outcome = self._last = process.end()
        self._probe.note(outcome)
        self._launch.is_asked = self._probe.is_asked
        if outcome.ending == "talked_too_much":
            raise _Again
        if outcome.lacked_threads and not self._launch.one_thread:
            self._launch.one_thread = True
            raise _Again
        if outcome.too_large_match is not None:
            self._search_in_pieces(outcome.too_large_match)
        if outcome.lacked_memory and self._launch.long_files is None:
            self._search_in_pieces()
        if outcome.lacked_memory and not self._launch.saves_memory:
            self._launch.saves_memory = self._launch.one_thread = True
            raise _Again
        if outcome.crashed:
            raise RipgrepFailed(outcome.format_complaints())
        if outcome.ending == "finished" and outcome.exit_code == 2:
            outcome.refuse_bad_query()
        if outcome.ending == "out_of_time":
            self._is_complete = False


def _build_sorted_options(end: int | None) -> RipgrepOptions:
    """The options of a sorted run for the first `end` lines."""
    return RipgrepOptions(
        is_sorted=True,
        is_prompt=end is not None and end <= PROMPT_LINES,
        max_per_file=None if end is None else end + 1,
    )


def _is_filled_at_once(run: RipgrepProcess, page: LinePage, end: int) -> bool:
    """Whether a sorted run ended soon, or a little later because it made progress."""
    for seconds, hoped_for in (
        (GLANCE_S, 0),
        (GLANCE_S / 2, end // HOPEFUL),
    ):
        if run.resume(seconds) != "out_of_time":
            return True
        if page.seen <= hoped_for:
            return False
    return run.resume(GLANCE_S * HOPEFUL) != "out_of_time"
