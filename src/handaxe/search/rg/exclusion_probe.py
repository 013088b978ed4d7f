"""Whether ripgrep lists what it skips (`--debug`), and what its messages add up to.

ripgrep writes each message in about fifty small pieces, which takes some 40 µs; with a filter it
writes one for every file. So the list of a large tree stops after some 200 entries, and the next
search does not ask for it. The limit is a size and not a time, so that a tree gets the same answer
on a busy machine.
"""

import os
import stat

import msgspec

from handaxe.contract.ports.search import SkippedFiles, TextFound, TextQuery
from handaxe.search.rg.rg_outcome import RipgrepOutcome
from handaxe.search.rg.rg_process import MAX_SAID_BYTES
from handaxe.search.walk.ignored_survey import IgnoredEntries, IgnoredSurvey
from handaxe.search.walk.root import SearchPlace

QUIET_BYTES = 1 << 15
"""The limit for the messages about a large tree, some 200 entries."""
MAX_FILTERED = 250
"""With a filter, ripgrep lists skipped entries only in trees of up to this many files."""

LoudTrees = set[tuple[str | bool | None, ...]]
"""Queries without their patterns for which ripgrep had too much to say."""


class ExclusionProbe:
    """The messages of the runs for one query."""

    def __init__(
        self, query: TextQuery, place: SearchPlace, survey: IgnoredSurvey, loud: LoudTrees
    ) -> None:
        self._place = place
        self._survey = survey
        self._loud = loud
        self._key = (query.root, query.glob, query.file_type, query.respect_ignore)
        self._has_filter = query.glob is not None or query.file_type is not None
        self.is_asked = True
        """Whether the next run lists what it skips."""
        if query.file_type is not None or (query.glob or "!")[0] != "!":
            self.is_asked = survey.look_around() and survey.scan.entries <= MAX_FILTERED
        elif self._key in loud:
            self.is_asked = survey.look_around()

    @property
    def may_say(self) -> int:
        """How many bytes of messages a run may write."""
        return MAX_SAID_BYTES if self._survey.look_around() else QUIET_BYTES

    def note(self, outcome: RipgrepOutcome) -> None:
        """Remember a tree for which ripgrep printed too many messages."""
        if self.is_asked and outcome.said_bytes > self.may_say:
            self._loud.add(self._key)
            self.is_asked = False

    def count_skipped(
        self, found: TextFound, last: RipgrepOutcome, *, is_complete: bool
    ) -> SkippedFiles:
        """The skipped entries of the search. Some may be uncounted."""
        is_told = self.is_asked and is_complete and not found.is_cut_short
        counted = self._survey.get_skipped()
        ignored = self.find_ignored(last) if is_told and counted.ignored_is_least else None
        if ignored is not None:
            number = len(ignored.directories) + len(ignored.files)
            counted = msgspec.structs.replace(counted, ignored=number, ignored_is_least=False)
        return msgspec.structs.replace(
            counted,
            binary=last.binary if is_told else None,
            too_large=last.too_large,
            unreadable=last.unreadable,
        )

    def find_ignored(self, last: RipgrepOutcome) -> IgnoredEntries | None:
        """All ignored entries, if a complete run listed them and there is no filter."""
        if not self.is_asked or self._has_filter:
            return None
        return find_ignored(last, self._place.fd)


def find_ignored(outcome: RipgrepOutcome, fd: int) -> IgnoredEntries | None:
    """The ignored entries that a run listed; None if some message was not understood."""
    if not outcome.is_clear:
        return None
    found = IgnoredEntries([], [])
    for path in outcome.ignored:
        try:
            kind = os.stat(path, dir_fd=fd, follow_symlinks=False).st_mode
        except OSError:
            # It was removed, or ripgrep could not write its name.
            return None
        if stat.S_ISDIR(kind):
            found.directories.append(os.fsdecode(path))
        elif stat.S_ISREG(kind):
            found.files.append(os.fsdecode(path))
    return found
