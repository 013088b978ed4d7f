"""What is remembered of trees from search to search, so that nobody has to find it out again."""

import os
from collections.abc import Iterable

import msgspec

from handaxe.contract.ports.search import SkippedFiles, TextQuery

MAX_KNOWN = 64
SETTLED_NS = 2_000_000_000
"""What changed so shortly before it was looked at may have changed again in the same moment of the
file system's clock."""

Key = tuple[str | bool | None, ...]


class CachedWalk(msgspec.Struct, frozen=True):
    """What a walk through a small tree came to, or one that found a tree to be large.

    While none of the directories and ignore files it saw changes, they hold no other names and no
    other links, and the same are ignored.
    """

    skipped: SkippedFiles
    entries: int
    is_small: bool
    above: object
    """Equal as long as the ignore files above the tree are the same."""
    dates: dict[str, tuple[int, int]]
    """By relative path: the number of what is there, and when it changed last."""
    env_files: list[str] = []
    """Files that may hold secrets, by absolute path; rules may let a search show them."""


class TreeCache:
    """Trees that were walked, and trees ripgrep has too much to tell of."""

    def __init__(self) -> None:
        self._walked: dict[Key, CachedWalk] = {}
        self._is_asked: dict[Key, bool] = {}

    def find_walk(self, query: TextQuery, fd: int, above: object) -> CachedWalk | None:
        """What a walk came to, if another one would come to the same; `fd` is the tree's root."""
        known = self._walked.get(_make_key(query))
        if known is None or known.above != above:
            return None
        try:
            is_same = all(_read_change_time(path, fd) == date for path, date in known.dates.items())
        except OSError:
            return None
        return known if is_same else None

    def note_walk(
        self, query: TextQuery, fd: int, began_ns: int, paths: Iterable[str], walked: CachedWalk
    ) -> None:
        """Remember a walk that began at a time by the wall clock and saw these paths."""
        try:
            dates = {path: _read_change_time(path, fd) for path in paths}
        except OSError:
            return
        if any(changed_ns > began_ns - SETTLED_NS for _, changed_ns in dates.values()):
            return
        if len(self._walked) >= MAX_KNOWN:
            self._walked.clear()
        self._walked[_make_key(query)] = msgspec.structs.replace(walked, dates=dates)

    def is_asked(self, query: TextQuery) -> bool | None:
        """Whether ripgrep is asked about a loud tree; None for one that is quiet, or unknown."""
        return self._is_asked.get(_make_key(query))

    def note_loud(self, query: TextQuery, *, is_asked: bool) -> None:
        """Remember that ripgrep has too much to tell of a tree."""
        if len(self._is_asked) >= MAX_KNOWN:
            self._is_asked.clear()
        self._is_asked[_make_key(query)] = is_asked


def _make_key(query: TextQuery) -> Key:
    return query.root, query.glob, query.file_type, query.respect_ignore


def _read_change_time(path: str, fd: int) -> tuple[int, int]:
    info = os.stat(path or ".", dir_fd=fd, follow_symlinks=False)
    return info.st_ino, info.st_ctime_ns
