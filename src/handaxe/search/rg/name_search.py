"""Files by name, newest first.

A small tree is scanned here. ripgrep lists the files of a larger one, with all processors. Both
give the same answer, but ripgrep does not list links to directories.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from handaxe.contract.faults import BadPath
from handaxe.contract.faults.file import NotFound
from handaxe.contract.faults.file import Stale as ChangedMeanwhile
from handaxe.contract.faults.search import RipgrepFailed
from handaxe.contract.ports.search import (
    VERSION_CONTROL,
    BadQuery,
    NameQuery,
    NamesFound,
    SkippedFiles,
    TextQuery,
)
from handaxe.disk.local_files import LocalFiles
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.rg.exclusion_probe import QUIET_BYTES, LoudTrees, find_ignored
from handaxe.search.rg.launch import RipgrepLauncher
from handaxe.search.rg.matched_files import FileRow, MatchedFiles
from handaxe.search.rg_arguments import RipgrepOptions
from handaxe.search.walk.ignored_survey import IgnoredEntries, limit_targets
from handaxe.search.walk.root import SearchPlace, is_beneath, stat_all
from handaxe.search.walk.tree_scan import TreeScan
from handaxe.search.walk.unchanged_paths import UnchangedPaths
from handaxe.text.gitignore import BadGlobPattern
from handaxe.text.globs import GlobPattern
from handaxe.text.paths import is_inside

COUNT_IGNORED_S = 0.25
"""Ignored files are counted for so long, or as long as the search took if that is more."""
SCANNED = 3
"""Trees up to this many times the size of a small one are scanned, which is faster than ripgrep."""
_VERSION_CONTROL = frozenset(VERSION_CONTROL)
_SPELLED_DOT = re.compile(r"(?:^|[/{,])\.")


class NameSearch:
    """One search by name; paths are relative to the directory where every match lies."""

    def __init__(
        self,
        program: str,
        query: NameQuery,
        watch: SearchDeadline,
        make_screen: Callable[[str], ExclusionFilter],
        loud: LoudTrees,
    ) -> None:
        try:
            self._pattern = GlobPattern(query.pattern)
        except BadGlobPattern as bad:
            raise BadQuery("pattern", bad.sentence) from None
        if self._pattern.only_dirs:
            raise BadQuery("pattern", f"The pattern {query.pattern!r} names directories.")
        self._program = program
        self._query = query
        self._watch = watch
        self._make_screen = make_screen
        self._screen = make_screen(query.root)
        self._loud = loud
        self._skips_dots = not query.hidden and not _SPELLED_DOT.search(query.pattern)
        # A pattern without wildcards names its files, so ignore files do not count.
        self._respects_ignore = query.respect_ignore and not self._pattern.is_literal
        self._matched = MatchedFiles(query.limit)
        self._base = ""
        """The beginning that a path needs before it is compared with the pattern."""
        self._links = 0
        self._has_all_links = self._knows_ignored = True

    def search(self) -> NamesFound:
        """The files that fit, and how many others were skipped."""
        unreadable = 0
        if (start := self._find_start()) is not None:
            try:
                with SearchPlace(
                    start, is_file=False, respect_ignore=self._respects_ignore
                ) as place:
                    return self._search_below(place)
            except NotFound as missing:
                unreadable += isinstance(missing.__cause__, PermissionError)
            except ChangedMeanwhile:
                self._links += 1
        return NamesFound(paths=[], total=0, skipped=self._build_skipped(0, unreadable))

    def _find_start(self) -> str | None:
        """The directory where every match lies; None if nothing there may be listed."""
        root, literal = self._query.root, self._pattern.literal_directory
        start = literal if self._pattern.is_absolute else f"{root.rstrip('/')}/{literal}"
        start = start.rstrip("/") or "/"
        if is_inside(root, start):
            return root
        if not is_inside(start, root):
            return None
        if LocalFiles().locate(start, [root]).real != start:
            self._links += 1
            return None
        inside = start[len(root.rstrip("/")) :].lower().split("/")
        is_shown = _VERSION_CONTROL.isdisjoint(inside) and not self._is_hidden(start)
        return start if is_shown else None

    def _search_below(self, place: SearchPlace) -> NamesFound:
        began = time.monotonic()
        self._place, self._screen = place, self._make_screen(place.path)
        self._base = place.prefix
        if not self._pattern.is_absolute:
            self._base = place.prefix[len(self._query.root.rstrip("/")) + 1 :]
        self._unchanged = UnchangedPaths(place.fd)
        scan = TreeScan(place, self._watch, self._screen.hides, enters=self._enters)
        query = TextQuery(pattern="", root=place.path, respect_ignore=self._respects_ignore)
        self._launch = RipgrepLauncher(self._program, query, place, self._watch, self._screen)
        if scan.scan(times=SCANNED) or self._watch.is_over():
            self._take(scan.files)
            unvisited = scan.list_waiting()
        else:
            unvisited = self._list_with_ripgrep(scan)
        files = self._matched.total
        self._take(scan.links, are_links=True)
        ignored = IgnoredEntries(scan.ignored_directories, self._fitting(scan.ignored_files))
        missed, example, is_counted = 0, None, not unvisited
        if self._respects_ignore and not unvisited:
            budget_s = max(COUNT_IGNORED_S, time.monotonic() - began)
            missed, example, is_counted = self._count_missed(ignored, files, budget_s)
        self._confirm_matched()
        entries = len(ignored.directories) + len(ignored.files) if self._knows_ignored else None
        skipped = self._build_skipped(entries, scan.unreadable)
        return NamesFound(
            paths=[entry.path for entry in self._matched.list_entries(place.prefix)],
            total=self._matched.total,
            is_complete=not unvisited,
            unvisited=unvisited,
            ignored_matches=missed,
            is_ignored_count_complete=is_counted,
            ignored_example=example,
            skipped=msgspec.structs.replace(skipped, ignored_is_least=bool(unvisited)),
        )

    def _list_with_ripgrep(self, scan: TreeScan) -> list[str]:
        """Take the files that ripgrep lists, and put what it says about the others into the scan.

        If that is too much, ripgrep lists the files once more without it.

        Returns:
            Directories to continue with after time ran out.
        """
        manner, key = RipgrepOptions(), ("files", self._place.path, self._respects_ignore)
        if (depth := self._pattern.max_depth) is not None:
            above = self._base.strip("/")
            manner = RipgrepOptions(max_depth=depth - (above.count("/") + 1 if above else 0))
        launch = self._launch
        launch.is_asked, launch.may_say = key not in self._loud, QUIET_BYTES
        while True:
            self._matched = MatchedFiles(self._query.limit)
            outcome = launch.list_files(lambda paths: self._take(self._decode(paths)), manner)
            if outcome.lacked_threads and not launch.one_thread:
                launch.one_thread = True
            elif launch.is_asked and outcome.said_bytes > QUIET_BYTES:
                self._loud.add(key)
                launch.is_asked = False
            else:
                break
        if outcome.crashed:
            raise RipgrepFailed(outcome.format_complaints())
        is_complete = outcome.ending == "finished"
        ignored = find_ignored(outcome, self._place.fd) if launch.is_asked and is_complete else None
        self._knows_ignored, self._has_all_links = ignored is not None, False
        directories, scan.ignored_files = ignored or IgnoredEntries([], [])
        scan.ignored_directories = [path for path in directories if self._enters(path)]
        scan.links = [os.fsdecode(path) for path in outcome.links]
        scan.unreadable = outcome.unreadable
        return [] if is_complete else scan.list_branches() or [self._place.path]

    def _enters(self, path: str) -> bool:
        """Whether a directory may hold what fits."""
        if self._skips_dots and "/." in f"/{path}":
            return False
        return self._pattern.goes_everywhere or self._pattern.can_match_below(self._base + path)

    def _decode(self, paths: list[bytes]) -> list[str]:
        """The paths that may match, as text. Decoding them together is faster."""
        endings = tuple(map(os.fsencode, self._pattern.endings))
        joined = b"\0".join([path for path in paths if path.endswith(endings)])
        return os.fsdecode(joined).split("\0") if joined else []

    def _take(self, paths: Sequence[str], *, are_links: bool = False) -> bool:
        """Take those paths that fit, with the times of their files; never too many."""
        fitting = map(os.fsencode, self._fitting(paths))
        rows: list[FileRow] = [
            (-info.st_mtime_ns, path, 0)
            for path, info in stat_all(self._place.fd, fitting)
            if stat.S_ISREG(info.st_mode) or (are_links and self._can_list_link(path))
        ]
        self._matched.add(rows)
        return False

    def _fitting(self, paths: Sequence[str]) -> list[str]:
        """The paths that the pattern matches and no rule hides."""
        pattern, base, hides = self._pattern, self._base, self._screen.hides
        found = [path for path in paths if path.endswith(pattern.endings)]
        if not pattern.endings_decide:
            found = [path for path in found if pattern.matches(base + path)]
        if self._skips_dots:
            found = [path for path in found if "/." not in f"/{path}"]
        if hides is not None:
            found = [path for path in found if not hides(self._place.prefix + path)]
        return found

    def _can_list_link(self, path: bytes) -> bool:
        """Whether a link leads to a file inside the root that may be seen; others are counted."""
        with suppress(BadPath, OSError):
            target = LocalFiles().locate(self._place.prefix + os.fsdecode(path), [self._query.root])
            if target.is_final and not self._is_hidden(target.real):
                is_file = stat.S_ISREG(os.lstat(target.real).st_mode)
                self._links += not is_file
                return is_file
        self._links += 1
        return False

    def _is_hidden(self, path: str) -> bool:
        hides = self._screen.hides
        return hides is not None and hides(path)

    def _count_missed(
        self, ignored: IgnoredEntries, files: int, budget_s: float
    ) -> tuple[int, str | None, bool]:
        """How many ignored files fit, one of them, and whether these are all.

        If ripgrep did not say which entries are ignored, all files are listed once more; `files`
        is how many of them fit and are not ignored.
        """
        missed, targets, are_all = list(ignored.files), None, True
        if self._knows_ignored:
            directories, are_all = limit_targets(ignored.directories)
            targets = [f"./{path}" for path in directories]
        if targets != []:

            def take(paths: list[bytes]) -> bool:
                missed.extend(self._fitting(self._decode(paths)))
                return False

            ends_at = self._watch.part(budget_s)
            options = RipgrepOptions(with_ignored=True)
            outcome = self._launch.list_files(take, options, targets, ends_at)
            are_all = are_all and outcome.ending == "finished" and not outcome.lacked_threads
        if not self._knows_ignored:
            return max(0, len(missed) - files), None, are_all
        moving = self._unchanged.find_moving({_get_directory(path) for path in missed})
        sure = [
            path
            for path in missed
            if _get_directory(path) not in moving or self._is_inside(os.fsencode(path))
        ]
        return len(sure), self._place.prefix + min(sure) if sure else None, are_all

    def _confirm_matched(self) -> None:
        """Drop what may be outside, because a link took the place of a directory."""
        moving = self._unchanged.find_moving(self._matched.directories)
        if moving:
            self._matched.correct(
                moving,
                lambda paths: paths,
                lambda paths: dict.fromkeys(filter(self._is_inside, paths), 0),
            )

    def _is_inside(self, path: bytes) -> bool:
        return is_beneath(self._place.fd, path)

    def _build_skipped(self, ignored: int | None, unreadable: int) -> SkippedFiles:
        return SkippedFiles(
            ignored=ignored,
            binary=0,
            unreadable=unreadable,
            links=self._links if self._has_all_links else self._links or None,
            links_is_least=not self._has_all_links,
            denied=self._screen.has_rules,
        )


def _get_directory(path: str) -> bytes:
    return os.fsencode(path.rpartition("/")[0])
