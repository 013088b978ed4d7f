"""Files by name, newest first: a walk that looks closely only at what fits."""

import os
import re
import stat
import time
from collections.abc import Callable

from handaxe.contract.faults import BadPath
from handaxe.contract.ports.search import (
    VERSION_CONTROL,
    BadQuery,
    NameQuery,
    NamesFound,
    SkippedFiles,
)
from handaxe.disk.errors import DiskFault
from handaxe.disk.local_files import LocalFiles
from handaxe.disk.safe_open import open_directory
from handaxe.search.deadline import PartialDeadline, SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.pagination import FirstRows
from handaxe.search.walk.ignore_files import Ignores, is_root_ignored, read_ignores_above
from handaxe.search.walk.root import DIRECTORY, open_beneath
from handaxe.search.walk.unchanged_paths import UnchangedPaths
from handaxe.search.walk.walk import DirectoryWalk, WalkFilter
from handaxe.text.gitignore import BadGlobPattern
from handaxe.text.globs import GlobPattern
from handaxe.text.paths import is_inside

COUNT_IGNORED_S = 0.25
"""At least so long, and at least as long as the walk itself took, ignored files are counted."""
_KIND = stat.S_IFMT(0xFFFF)
_VERSION_CONTROL = frozenset(VERSION_CONTROL)
_SPELLED_DOT = re.compile(r"(?:^|[/{,])\.")


class NameSearch:
    """One query on its way."""

    def __init__(self, query: NameQuery, watch: SearchDeadline, screen: ExclusionFilter) -> None:
        try:
            self._pattern = GlobPattern(query.pattern)
        except BadGlobPattern as bad:
            raise BadQuery("pattern", bad.sentence) from None
        if self._pattern.only_dirs:
            raise BadQuery("pattern", f"The pattern {query.pattern!r} names directories.")
        self._query = query
        self._skips_dots = not query.hidden and not _SPELLED_DOT.search(query.pattern)
        self._watch = watch
        self._hides, self._denies = screen.hides, screen.has_rules
        self._unreadable = 0
        self._begin()
        self._files = LocalFiles()

    def answer(self) -> NamesFound:
        """The files that fit, and what is known of those that were passed by."""
        start = self._start()
        fd = None if start is None else self._open(start)
        if start is None or fd is None:
            skipped = SkippedFiles(
                ignored=0,
                binary=0,
                unreadable=self._unreadable,
                links=self._links,
                denied=self._denies,
            )
            return NamesFound(paths=[], total=0, skipped=skipped)
        try:
            unchanged = UnchangedPaths(fd)
            found = self._found(start, fd)
            directories = {os.fsencode(path) for path in self._shown_in}
            if unchanged.has_misplaced(directories) or not unchanged.is_still_at(start):
                self._begin(follows_no_link=True)
                found = self._found(start, fd)
            return found
        finally:
            os.close(fd)

    def _begin(self, *, follows_no_link: bool = False) -> None:
        """Nothing is found yet."""
        self._least = FirstRows[tuple[int, str]](self._query.limit)
        self._links = 0
        self._ignored_example: str | None = None
        self._follows_no_link = follows_no_link
        self._shown_in: set[str] = set()
        """Directories that something was found in, relative to where the walk begins."""

    def _found(self, start: str, fd: int) -> NamesFound:
        began = time.monotonic()
        walk = self._walk(start, fd, self._read_ignores(start))
        ignored_files = self._collect(walk, start)
        in_directories, is_counted = 0, True
        if walk.ignored_directories and walk.is_complete:
            budget_s = max(COUNT_IGNORED_S, time.monotonic() - began)
            in_directories, is_counted = self._count_ignored(
                walk.ignored_directories, start, fd, budget_s
            )
        skipped = SkippedFiles(
            ignored=len(walk.ignored_directories) + ignored_files,
            ignored_is_least=not walk.is_complete,
            binary=0,
            unreadable=walk.unreadable,
            links=self._links,
            denied=self._denies,
        )
        return NamesFound(
            paths=[path for _, path in self._least.rows()],
            total=self._least.total,
            is_complete=walk.is_complete,
            unvisited=walk.unvisited() if not walk.is_complete else [],
            ignored_matches=ignored_files + in_directories,
            is_ignored_count_complete=is_counted and walk.is_complete,
            ignored_example=self._ignored_example,
            skipped=skipped,
        )

    def _start(self) -> str | None:
        """The directory every match lies in; None if it is not there, not inside, or a link."""
        root, literal = self._query.root, self._pattern.literal_directory
        start = literal if self._pattern.is_absolute else f"{root.rstrip('/')}/{literal}"
        start = start.rstrip("/") or "/"
        if is_inside(root, start):
            return root
        if not is_inside(start, root):
            return None
        place = self._files.locate(start, [root])
        if place.real != start:
            self._links += 1
            return None
        if self._hides is not None and self._hides(start):
            return None
        return None if self._is_version_control(start) else start

    def _is_version_control(self, start: str) -> bool:
        """Whether the pattern itself leads into what a version control program keeps."""
        inside = start[len(self._query.root.rstrip("/")) :]
        return not _VERSION_CONTROL.isdisjoint(inside.lower().split("/"))

    def _open(self, start: str) -> int | None:
        """The directory, open; None if there is none, or a link has come in the way."""
        root = self._query.root
        try:
            above = open_directory(root)
        except (DiskFault, OSError) as error:
            self._unreadable += isinstance(error, PermissionError)
            return None
        try:
            return open_beneath(above, start[len(root.rstrip("/")) :].lstrip("/"), DIRECTORY)
        except OSError as error:
            self._unreadable += isinstance(error, PermissionError)
            return None
        finally:
            os.close(above)

    def _read_ignores(self, start: str) -> Ignores | None:
        if not self._query.respect_ignore or self._pattern.is_literal:
            return None
        # Standing in a directory is asking for it, as naming it is: a checkout of an agent's own
        # lies where the repository ignores everything.
        return Ignores(()) if is_root_ignored(start) else read_ignores_above(start)

    def _walk(self, start: str, fd: int, ignores: Ignores | None) -> DirectoryWalk:
        choice = WalkFilter(
            hides=self._hides, enters=self._build_entry_filter(start), endings=self._pattern.endings
        )
        reached_by = None if self._follows_no_link else start
        return DirectoryWalk(
            start, self._watch, fd=fd, ignores=ignores, choice=choice, reached_by=reached_by
        )

    def _build_entry_filter(self, start: str) -> Callable[[str], bool] | None:
        """Which directories may hold what fits; None if all may."""
        spelled, leads_through = self._build_prefix(start), self._pattern.can_match_below
        goes_everywhere, skips_dots = self._pattern.goes_everywhere, self._skips_dots
        if not skips_dots:
            return None if goes_everywhere else lambda path: leads_through(spelled + path)
        return lambda path: (
            not path.rpartition("/")[2].startswith(".")
            and (goes_everywhere or leads_through(spelled + path))
        )

    def _build_prefix(self, start: str) -> str:
        """What stands before a path of the walk in the form the pattern is compared with."""
        base = start.rstrip("/") + "/"
        if self._pattern.is_absolute:
            return base
        return base[len(self._query.root.rstrip("/")) + 1 :]

    def _collect(self, walk: DirectoryWalk, start: str) -> int:
        """Take in what fits; gives the number of fitting files that are ignored."""
        spelled, base = self._build_prefix(start), start.rstrip("/") + "/"
        ignored, endings_decide = 0, self._pattern.endings_decide
        for directory, entries, ignores in walk:
            fitting = entries if endings_decide else self._fitting(spelled + directory, entries)
            if self._skips_dots:
                fitting = [entry for entry in fitting if not entry.name.startswith(".")]
            if not fitting:
                continue
            self._shown_in.add(directory[:-1])
            here = base + directory
            if ignores is not None:
                names = [entry.name for entry in fitting]
                left_out = ignores.left_out(here, names, is_dir=False)
                if left_out:
                    passed_by = [entry for entry in fitting if entry.name in left_out]
                    fitting = [entry for entry in fitting if entry.name not in left_out]
                    ignored += self._count_files(here, passed_by)
            self._take(here, fitting)
        return ignored

    def _fitting(self, before: str, entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
        """Those entries of one directory whose path the pattern matches."""
        fits = self._pattern.matches
        return [entry for entry in entries if fits(before + entry.name)]

    def _take(self, here: str, entries: list[os.DirEntry[str]]) -> None:
        """Take in the files among some entries of one directory."""
        hides = self._hides
        taken: list[tuple[int, str]] = []
        for entry in entries:
            path = here + entry.name
            if hides is not None and hides(path):
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            kind = info.st_mode & _KIND
            if kind == stat.S_IFREG or (kind == stat.S_IFLNK and self._is_link_to_file(path)):
                taken.append((-info.st_mtime_ns, path))
            elif kind == stat.S_IFLNK:
                self._links += 1
        self._least.add(taken)

    def _count_files(self, here: str, entries: list[os.DirEntry[str]]) -> int:
        """How many of some entries of one directory are files that may be spoken of."""
        files = [
            path
            for entry in entries
            if not entry.is_dir(follow_symlinks=False)
            and not self._is_hidden(path := here + entry.name)
        ]
        if files and self._ignored_example is None:
            self._ignored_example = files[0]
        return len(files)

    def _is_link_to_file(self, path: str) -> bool:
        """Whether a link leads to a file inside the root that may be seen."""
        try:
            place = self._files.locate(path, [self._query.root])
            return (
                place.is_final
                and not self._is_hidden(place.real)
                and stat.S_ISREG(os.lstat(place.real).st_mode)
            )
        except (BadPath, OSError):
            return False

    def _is_hidden(self, path: str) -> bool:
        return self._hides is not None and self._hides(path)

    def _count_ignored(
        self, directories: list[str], start: str, fd: int, budget_s: float
    ) -> tuple[int, bool]:
        """How many fitting files the ignored directories hold, as far as it can be told soon."""
        watch = PartialDeadline(self._watch, budget_s)
        choice = WalkFilter(hides=self._hides, endings=self._pattern.endings)
        total = 0
        base = start.rstrip("/") + "/"
        for directory in directories:
            try:
                below = open_beneath(fd, directory, DIRECTORY)
            except OSError:
                continue
            try:
                walk = DirectoryWalk(
                    base + directory,
                    watch,
                    fd=below,
                    ignores=None,
                    choice=choice,
                    reached_by=None if self._follows_no_link else base + directory,
                )
                before = f"{self._build_prefix(start)}{directory}/"
                for inside, entries, _ in walk:
                    fitting = self._fitting(before + inside, entries)
                    if fitting:
                        self._shown_in.add(f"{directory}/{inside}"[:-1])
                    total += self._count_files(f"{base}{directory}/{inside}", fitting)
            finally:
                os.close(below)
            if not walk.is_complete:
                return total, False
        return total, True
