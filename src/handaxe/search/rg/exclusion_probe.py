"""Whether ripgrep is asked what it passes by, and what its answer comes to.

It writes a line in many small pieces for each such entry, and with a filter one for every entry
there is: dear where they are many. So a tree counts as quiet until ripgrep has had too much to say
about it, which is remembered. How much is too much depends on the tree and not on the time it took,
so the same tree gets the same answer on a busy machine.
"""

import os
import stat
from collections.abc import Callable

import msgspec

from handaxe.contract.ports.search import SkippedFiles, TextFound, TextQuery
from handaxe.search.rg.rg_process import MAX_SAID_BYTES, RipgrepOutcome, RipgrepProcess
from handaxe.search.walk.ignored_survey import IgnoredEntries, IgnoredSurvey
from handaxe.search.walk.root import SearchPlace
from handaxe.search.walk.tree_cache import TreeCache

QUIET_BYTES = 1 << 15
"""So much may be said about a tree of any size: some two hundred entries."""
MAX_FILTERED = 250
"""A small tree with so many entries is asked about even with a filter."""


class ExclusionProbe:
    """What one search asks."""

    def __init__(
        self, query: TextQuery, place: SearchPlace, survey: IgnoredSurvey, known: TreeCache
    ) -> None:
        self._query = query
        self._place = place
        self._survey = survey
        self._known = known
        is_asked = known.is_asked(query)
        self._is_filtered = query.file_type is not None or (
            query.glob is not None and not query.glob.startswith("!")
        )
        self._is_quiet = is_asked is None and not self._is_filtered
        self._has_begun = query.is_file
        self.is_asked = is_asked is not False
        """Whether ripgrep is asked."""

    @property
    def may_say(self) -> int:
        """How many bytes it may say."""
        return QUIET_BYTES if self._is_quiet and not self._survey.is_small else MAX_SAID_BYTES

    def begin(self, open_run: Callable[[], RipgrepProcess]) -> RipgrepProcess:
        """Begin a run, and look around while the first one is at work.

        One that was asked wrongly is begun again.
        """
        run = open_run()
        if self._has_begun:
            return run
        self._has_begun = True
        try:
            is_small = self._survey.look_around()
        except BaseException:
            run.end()
            raise
        if self._is_quiet:
            run.may_say = self.may_say
            return run
        was_asked = self.is_asked
        self._settle(is_asked=is_small)
        if self.is_asked is was_asked:
            return run
        run.end()
        return open_run()

    def note(self, outcome: RipgrepOutcome) -> None:
        """Find out from a run whether the tree is a quiet one."""
        if outcome.ending == "talked_too_much" and not self._is_quiet:
            self._settle(is_asked=False)
        elif self._is_quiet and outcome.said_bytes > self.may_say:
            self._is_quiet = False
            self._settle(is_asked=self._survey.look_around())

    def skipped(self, found: TextFound, last: RipgrepOutcome, *, is_complete: bool) -> SkippedFiles:
        """What was passed by, as far as it was counted."""
        is_told = self.is_asked and is_complete and not found.is_cut_short
        counted = self._survey.skipped()
        ignored = self.ignored(last) if is_told and counted.ignored_is_least else None
        if ignored is not None:
            number = len(ignored.directories) + len(ignored.files)
            counted = msgspec.structs.replace(counted, ignored=number, ignored_is_least=False)
        return msgspec.structs.replace(
            counted,
            binary=last.binary if is_told else None,
            too_large=last.too_large,
            unreadable=last.unreadable,
        )

    def ignored(self, last: RipgrepOutcome) -> IgnoredEntries | None:
        """All ignored entries, if a run to the end told of them and no filter counts."""
        if not self.is_asked or self._is_filtered or self._query.glob is not None:
            return None
        if not last.is_clear:
            return None
        found = IgnoredEntries([], [])
        for path in last.ignored:
            try:
                kind = os.stat(path, dir_fd=self._place.fd, follow_symlinks=False).st_mode
            except OSError:
                # It is gone, or its name is no text.
                return None
            if stat.S_ISDIR(kind):
                found.directories.append(os.fsdecode(path))
            elif stat.S_ISREG(kind):
                found.files.append(os.fsdecode(path))
        return found

    def _settle(self, *, is_asked: bool) -> None:
        if self._is_filtered and self._survey.entries > MAX_FILTERED:
            is_asked = False
        self.is_asked = is_asked
        self._known.note_loud(self._query, is_asked=is_asked)
