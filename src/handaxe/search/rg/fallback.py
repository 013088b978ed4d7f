"""The search of skipped files after a search without a match.

It takes only a short time. An answer that is not complete says so.
"""

import os
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from handaxe.contract.ports.search import FallbackMatches
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.rg.exclusion_probe import find_ignored
from handaxe.search.rg.rg_outcome import RipgrepOutcome
from handaxe.search.rg.rg_process import Feed, RipgrepProcess
from handaxe.search.rg_arguments import RipgrepOptions
from handaxe.search.rg_output import CountStream, PathStream
from handaxe.search.walk.ignored_survey import IgnoredEntries, IgnoredSurvey
from handaxe.search.walk.root import SearchPlace, open_beneath
from handaxe.text.encoding import NotText, sniff

SURVEY_S = 0.02
SURVEY_SHARE = 0.02
"""Listing ignored entries of a large tree takes at most `SURVEY_S`, or this part of the time of the
search if that is more."""
LOOK_S = 0.25
LOOK_SHARE = 0.1
"""A fallback takes at most `LOOK_S` seconds or this share of the search's time, if longer."""
LONGER_IN_BINARY = 2.5
"""Estimated slowdown of a search by binary files."""
MAX_FILES = 10_000

Open = Callable[[Feed, RipgrepOptions, Sequence[str] | None], RipgrepProcess]
"""Starts ripgrep over some entries or over the whole tree."""
Confirm = Callable[[dict[bytes, int], RipgrepOptions], dict[bytes, int]]
"""Gives the counts of the files that were certainly inside the tree."""


class FallbackSearch:
    """The second searches for one query."""

    def __init__(
        self,
        first: RipgrepOutcome,
        place: SearchPlace,
        watch: SearchDeadline,
        screen: ExclusionFilter,
        confirm: Confirm,
        open_run: Open,
    ) -> None:
        self._first = first
        self._place = place
        self._watch = watch
        self._screen = screen
        self._confirm = confirm
        self._open = open_run

    def search_ignored(
        self, survey: IgnoredSurvey, listed: IgnoredEntries | None
    ) -> list[FallbackMatches]:
        """Matches in ignored files, as a list of at most one.

        Args:
            survey: what a scan of the tree found.
            listed: all ignored entries, if the first run listed them.
        """
        entries, are_listed = listed or survey.find_ignored(), True
        if listed is None and not survey.look_around():
            entries, are_listed = self._list_ignored(survey, entries)
        targets, are_all = survey.choose_targets(entries)
        if not targets:
            return []
        paths = [f"./{path}" for path in targets]
        return self._look(
            "ignored", RipgrepOptions(with_ignored=True), paths, are_all=are_all and are_listed
        )

    def _list_ignored(
        self, survey: IgnoredSurvey, known: IgnoredEntries
    ) -> tuple[IgnoredEntries, bool]:
        """The ignored entries of a large tree that a short run lists, and if these are all."""
        budget_s = max(SURVEY_S, SURVEY_SHARE * self._first.duration_s)
        options = RipgrepOptions(lists_files=True, has_no_filter=True, asks_why=True)
        process = self._open(lambda _: False, options, None)
        try:
            is_complete = process.go(self._watch.part(budget_s)) == "finished"
        finally:
            outcome = process.end()
        listed = find_ignored(outcome, self._place.fd)
        if listed is None:
            return known, False
        found = survey.select_missed(listed)
        both = (dict.fromkeys([*one, *other]) for one, other in zip(known, found, strict=True))
        return IgnoredEntries(*map(list, both)), is_complete

    def search_binary(self, *, is_counted: bool, is_small: bool) -> list[FallbackMatches]:
        """Binary files with a match, as a list of at most one.

        This searches everything again, so a large tree is searched only if that is quick. If
        binary files were not counted, an answer of zero says that they were searched.
        """
        if is_counted and not self._first.binary:
            return []
        if not is_small and self._first.duration_s * LONGER_IN_BINARY > LOOK_S:
            return []
        looks = self._look("binary", RipgrepOptions(in_binary=True), None)
        return looks if looks or is_counted else [FallbackMatches("binary", 0, 0, "")]

    def search_foreign(self) -> list[FallbackMatches]:
        """Matches in files of other encodings, where other bytes represent the pattern."""
        found: list[bytes] = []

        def take(paths: list[bytes]) -> bool:
            found.extend(path for path in paths if not self._screen.is_held_back(path))
            return len(found) >= MAX_FILES

        process = self._open(PathStream(take).feed, RipgrepOptions(finds_foreign=True), None)
        try:
            are_all = process.go(self._watch.part(LOOK_S)) == "finished"
        finally:
            process.end()
        by_encoding: dict[str, list[str]] = {}
        left_s = self._watch.get_remaining_s() - LOOK_S
        for path in found:
            if self._watch.get_remaining_s() < left_s:
                are_all = False
                break
            encoding = detect_foreign_encoding(path, self._place.fd)
            if encoding is not None:
                by_encoding.setdefault(encoding, []).append(f"./{os.fsdecode(path)}")
        looks = [
            look
            for encoding, paths in by_encoding.items()
            for look in self._look(
                "encoding", RipgrepOptions(encoding=encoding), paths, are_all=are_all
            )
        ]
        return _merge_looks(looks, are_all=are_all)

    def _look(
        self,
        reason: Literal["ignored", "binary", "encoding"],
        manner: RipgrepOptions,
        targets: Sequence[str] | None,
        *,
        are_all: bool = True,
    ) -> list[FallbackMatches]:
        counts: dict[bytes, int] = {}

        def take(pairs: list[tuple[bytes, int]]) -> bool:
            counts.update(pair for pair in pairs if not self._screen.is_held_back(pair[0]))
            return len(counts) >= MAX_FILES

        budget_s = max(LOOK_S, self._first.duration_s * LOOK_SHARE)
        counting = msgspec.structs.replace(manner, counts_only=True)
        process = self._open(CountStream(take).feed, counting, targets)
        try:
            is_complete = process.go(self._watch.part(budget_s)) == "finished" and are_all
        finally:
            process.end()
        counts = self._confirm(counts, counting)
        if not counts and is_complete:
            return []
        shown = self._place.prefix + os.fsdecode(min(counts)) if counts else ""
        return [FallbackMatches(reason, sum(counts.values()), len(counts), shown, is_complete)]


def _merge_looks(looks: list[FallbackMatches], *, are_all: bool) -> list[FallbackMatches]:
    """The results for several encodings as one."""
    found = [look for look in looks if look.files]
    if not found:
        return [] if are_all else [FallbackMatches("encoding", 0, 0, "", is_complete=False)]
    return [
        FallbackMatches(
            "encoding",
            sum(look.matches for look in found),
            sum(look.files for look in found),
            min(look.example for look in found),
            are_all and all(look.is_complete for look in looks),
        )
    ]


HEAD_BYTES = 1 << 16
_SAME = frozenset(f"windows-125{number}" for number in range(8)) | {
    "koi8-r",
    "koi8-u",
    "gbk",
    "gb18030",
    "big5",
    "shift_jis",
    "euc-jp",
    "euc-kr",
}
_CALLED = {
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "cp950": "big5",
    "cp866": "ibm866",
    "cp874": "windows-874",
    "iso-8859-1": "windows-1252",
    "iso8859-2": "iso-8859-2",
    "iso8859-5": "iso-8859-5",
    "iso8859-7": "iso-8859-7",
}


def detect_foreign_encoding(path: str | bytes, directory: int) -> str | None:
    """The encoding that ripgrep needs to read a file; None if it needs none."""
    try:
        file = open_beneath(directory, path)
    except OSError:
        return None
    try:
        head = os.read(file, HEAD_BYTES)
    except OSError:
        return None
    finally:
        os.close(file)
    if len(head) == HEAD_BYTES:
        # The last character may be incomplete.
        head = head[: head.rfind(b"\n") + 1] or head[:-4]
    if head.isascii():
        return None
    try:
        name = sniff(head).encoding
    except NotText:
        return None
    return name if name in _SAME else _CALLED.get(name)
