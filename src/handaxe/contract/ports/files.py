"""Read, write, list and look at a file tree.

Every path handed in is absolute. An implementation resolves links itself, asks its judge about
the resulting file, and opens exactly that file. Failures are raised as one of the faults in
`handaxe.contract.faults.file`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import msgspec

from handaxe.contract.permission_subjects import Access

T = TypeVar("T")

FileKind = Literal["file", "directory", "fifo", "socket", "device", "other"]

Judge = Callable[[str, Access], None]
"""Raises a fault if this real path may not be opened this way."""
IsClosed = Callable[[str], bool]
"""Whether a path may not be written without a question, whatever is allowed."""


class ResolvedPath(msgspec.Struct, frozen=True):
    """Where a path leads."""

    path: str
    """Absolute, with `.` and `..` resolved by name."""
    real: str
    """The path after resolving those links that were followed."""
    is_final: bool
    """Whether all links were followed; outside the roots that waits for permission."""


class FileVersion(msgspec.Struct, frozen=True):
    """One content of one file."""

    path: str
    """The real path."""
    digest: str
    size_bytes: int
    mtime_ns: int


class FileInfo(msgspec.Struct, frozen=True):
    """The file or directory at a path."""

    path: str
    kind: FileKind
    size_bytes: int
    mtime_ns: int
    mode: int = 0o644
    """Permission bits, without the file type."""
    number: tuple[int, int] = (0, 0)
    """Device and inode: the same under every name of one file."""


class LoadedFile(msgspec.Struct, frozen=True):
    """A whole file in memory."""

    data: bytes
    version: FileVersion


class FileWindow(msgspec.Struct, frozen=True):
    """Some lines of a text file; the rest need never be in memory."""

    lines: list[str]
    """Without their endings."""
    first_line: int
    total_lines: int
    version: FileVersion
    encoding: str
    has_bom: bool = False
    is_cut: bool = False
    """Whether the last of the lines is longer than what was read of it."""
    content: bytes | None = None
    """The whole file, where it was small enough to be read at once."""


class Files(ABC):
    """A file tree that tools may read and change."""

    @abstractmethod
    def locate(self, path: str, roots: Sequence[str], *, beyond: bool = False) -> ResolvedPath:
        """Follow links, looking at nothing outside `roots` unless told to go `beyond`."""

    @abstractmethod
    def has_name_outside(self, real: str, roots: Sequence[str], is_closed: IsClosed) -> bool:
        """Whether the file may have a second name (a hard link) outside `roots` or closed."""

    def has_other_names(self, real: str) -> bool:  # noqa: ARG002 - a tree without hard links
        """Whether the file has a second name (a hard link) anywhere."""
        return False

    @abstractmethod
    def restrict_with(self, judge: Judge) -> "Files":
        """The same tree, opening only what `judge` lets pass."""

    @abstractmethod
    async def look(self, path: str) -> FileInfo | None:
        """The file at the end of the path's links; None if it does not exist."""

    @abstractmethod
    async def names(self, directory: str) -> list[str]:
        """The names in a directory; empty if there is none."""

    @abstractmethod
    async def head(self, path: str, size_bytes: int) -> bytes:
        """The first bytes of a regular file, to tell what it is."""

    @abstractmethod
    async def load(self, path: str, *, max_bytes: int | None = None) -> LoadedFile:
        """The whole of a regular file."""

    @abstractmethod
    async def read(self, path: str) -> str:
        """The text of a regular file, decoded."""

    @abstractmethod
    async def read_window(self, path: str, offset: int, limit: int) -> FileWindow:
        """`limit` lines from line `offset` (1-based; negative counts from the end)."""

    @abstractmethod
    async def replace(
        self,
        path: str,
        pieces: Sequence[bytes | memoryview],
        *,
        expect: FileVersion | None,
        mode: int | None = None,
    ) -> FileVersion:
        """Write a file whole or not at all; `expect` is the version it replaces, None for new.

        `mode` are its permission bits, by default those of the old file or the usual ones.
        """

    async def compute(self, work: Callable[[], T], size: int) -> T:  # noqa: ARG002
        """Run `work`, which only computes, on about this many bytes or characters.

        Of much of it an event loop should notice nothing.
        """
        return work()

    @abstractmethod
    async def remove(self, path: str, *, expect: FileVersion) -> None:
        """Take a regular file away, durably, if it still is the expected version."""


class NameFinder(ABC):
    """Finds what has a certain name in the working directories."""

    @abstractmethod
    async def find_named(self, name: str, *, may_be_directory: bool = False) -> list[str]:
        """Absolute paths that end with the name; a few are enough, and none that rules hide."""
