"""Search for files by name and for text in files.

Every root is absolute and resolved, and permission for it was given. A search gives nothing outside
its root and follows no links. Files that a Read rule denies are left out without a trace. Text in
files that may hold secrets is not shown, unless Read may show it or the query names the file. Paths
in answers are absolute; bytes that are not UTF-8 are lone surrogates in them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

import msgspec

SearchMode = Literal["content", "files", "count"]
Hides = Callable[[str], bool]
"""Whether this absolute path must not appear."""
QueryPart = Literal["pattern", "glob", "type"]
VERSION_CONTROL = (".git", ".hg", ".svn", ".jj", ".sl", ".bzr")
"""Directories that no search enters from above, and no list of names shows."""


class SkippedFiles(msgspec.Struct, frozen=True):
    """How many entries were skipped, by reason; None if they were not counted."""

    ignored: int | None = None
    """Entries an ignore file names: directories, each with all that it holds, and those files
    that the query asks for."""
    ignored_is_least: bool = False
    """Whether there may be more ignored entries than were counted."""
    binary: int | None = None
    too_large: int = 0
    unreadable: int = 0
    links: int | None = None
    """Links that were not followed."""
    links_is_least: bool = False
    denied: bool = False
    """Whether rules hide files; never how many, which would tell what they hold."""
    withheld: int | None = 0
    """Files that may hold secrets, such as `.env`, whatever they hold: Read asks for them."""
    withheld_is_least: bool = False


class NameQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which files to find by name."""

    pattern: str
    root: str
    """Counts even if ignore files above it say that it does not."""
    limit: int | None = 100
    """How many of the newest are wanted; None for all."""
    respect_ignore: bool = True
    hidden: bool = True
    """Whether names that begin with a dot count, where the pattern spells none."""
    timeout_s: float = 20


class NamesFound(msgspec.Struct, frozen=True, kw_only=True):
    """Files by name, newest first, equal times by path."""

    paths: list[str]
    total: int
    is_complete: bool = True
    unvisited: list[str] = []
    """Directories that were not reached in time."""
    ignored_matches: int = 0
    is_ignored_count_complete: bool = True
    ignored_example: str | None = None
    """One of the files that fit and are ignored."""
    skipped: SkippedFiles = SkippedFiles()


class TextQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which text to find, where, and which part of the answer is wanted."""

    pattern: str
    root: str
    """Counts even if ignore files above it say that it does not."""
    is_file: bool = False
    mode: SearchMode = "files"
    glob: str | None = None
    file_type: str | None = None
    ignore_case: bool = False
    only_matching: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    offset: int = 0
    limit: int | None = 250
    """How many lines or entries are wanted; None for all."""
    respect_ignore: bool = True
    timeout_s: float = 20

    @property
    def has_context(self) -> bool:
        """Whether lines around the matches are wanted."""
        return self.mode == "content" and bool(self.before or self.after)

    @property
    def end(self) -> int | None:
        """How many lines or entries from the start on matter at all."""
        return None if self.limit is None else self.offset + self.limit


class MatchLine(msgspec.Struct, frozen=True, gc=False):
    """One line of an answer; line 0 stands for the gap between two groups."""

    path: str
    line: int
    text: str
    is_match: bool = True
    column: int | None = None
    """Where the first match begins, in characters from 1."""
    ranges: tuple[tuple[int, int], ...] = ()
    """The matches in `text`: from, to (exclusive), in characters from 0."""
    is_cut: bool = False
    """Whether `text` is only the surroundings of the first match."""


class FileMatch(msgspec.Struct, frozen=True, gc=False):
    """One file of an answer, with its number of matching lines where those were counted."""

    path: str
    count: int = 0


class FileText(msgspec.Struct, frozen=True, gc=False):
    """Many lines of one file at once: `12:text` each, for answers too long to be taken apart."""

    path: str
    text: str


class FallbackMatches(msgspec.Struct, frozen=True):
    """Matches in files that the search skips; `files` is 0 if there are none."""

    reason: Literal["ignored", "binary", "encoding"]
    matches: int
    files: int
    example: str
    is_complete: bool = True


class TextFound(msgspec.Struct, frozen=True, kw_only=True):
    """The requested page of an answer, and numbers for the whole answer."""

    lines: list[MatchLine] = []
    more_lines: list[FileText] = []
    """The lines after `lines`, on a page with very many."""
    shown_lines: int = 0
    entries: list[FileMatch] = []
    total_files: int | None = None
    """None where the search was stopped as soon as the page was full."""
    total_matches: int | None = None
    total_lines: int | None = None
    has_more: bool = False
    is_complete: bool = True
    """False if time ran out."""
    unvisited: list[str] = []
    """Directories to continue with after time ran out."""
    capped_lines: int = 0
    """Very long lines of which only the first matching parts are given."""
    elsewhere: list[FallbackMatches] = []
    skipped: SkippedFiles = SkippedFiles()
    engine: str = "ripgrep"
    """Always ripgrep; programs read it."""

    @property
    def is_cut_short(self) -> bool:
        """Whether the search ended when the page was full."""
        return self.has_more and self.total_files is None


class BadQuery(Exception):
    """The pattern, glob or type cannot be used; the diagnostic says why."""

    def __init__(self, part: QueryPart, diagnostic: str) -> None:
        super().__init__(diagnostic)
        self.part = part
        self.diagnostic = diagnostic


class Search(ABC):
    """Finds files and text below a directory."""

    @abstractmethod
    async def find_names(self, query: NameQuery) -> NamesFound:
        """The files whose path fits a pattern; raises `BadQuery`."""

    @abstractmethod
    async def find_text(self, query: TextQuery) -> TextFound:
        """The lines or files that hold a match; raises `BadQuery`."""

    @abstractmethod
    def list_file_types(self) -> dict[str, tuple[str, ...]]:
        """The known names of file types, with their patterns."""
