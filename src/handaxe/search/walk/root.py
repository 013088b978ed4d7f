"""The place of a search: an open directory, and a file in it if the query names one."""

import errno
import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Self

from handaxe.contract.faults.file import NotFound
from handaxe.contract.faults.file import Stale as ChangedMeanwhile
from handaxe.disk.errors import DiskFault
from handaxe.disk.safe_open import open_directory
from handaxe.search.walk.ignore_files import Ignores, read_ignores_above


class SearchPlace:
    """A directory that is open, so that no other directory can take its place."""

    def __init__(self, root: str, *, is_file: bool, respect_ignore: bool) -> None:
        path, name = os.path.split(root) if is_file else (root, "")
        self.path = path
        self.target = f"./{name}"
        self.prefix = path.rstrip("/") + "/"
        above = read_ignores_above(path) if respect_ignore and not is_file else None
        self.is_ignored = above is not None and above.is_root_ignored(path)
        """Whether ignore files above hide this directory, which is searched all the same."""
        self.ignores = Ignores() if self.is_ignored else above
        """The ignore files above that count; None if no ignore file does."""
        try:
            self.fd = open_directory(path)
        except DiskFault:
            raise ChangedMeanwhile(f"{path} became a link while it was searched.") from None
        except OSError as error:
            raise NotFound(path) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    @cached_property
    def directory(self) -> str:
        """A path by which a child process can enter the directory."""
        held = f"/proc/self/fd/{self.fd}"
        return held if os.path.isdir(held) else self.path


FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_beneath(directory: int, path: str | bytes, flags: int = FILE) -> int:
    """A descriptor for a relative path; raises OSError if a link is in the way."""
    *above, name = os.fsdecode(path).strip("/").split("/")
    if ".." in (*above, name):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), os.fsdecode(path))
    here = os.dup(directory)
    try:
        for part in above:
            below = os.open(part, _STEP, dir_fd=here)
            os.close(here)
            here = below
        return os.open(name or ".", flags | os.O_NOFOLLOW, dir_fd=here)
    finally:
        os.close(here)


def stat_all(directory: int, paths: Iterable[bytes]) -> Iterator[tuple[bytes, os.stat_result]]:
    """The status of relative paths, links not followed; missing paths are left out."""
    for path in paths:
        try:
            info = os.stat(path, dir_fd=directory, follow_symlinks=False)
        except OSError:
            continue
        yield path, info


def is_beneath(directory: int, path: bytes) -> bool:
    """Whether a relative path exists and no link is in the way."""
    above, _, name = path.rpartition(b"/")
    try:
        fd = open_beneath(directory, above, _STEP)
    except OSError:
        return False
    try:
        return any(stat_all(fd, [name]))
    finally:
        os.close(fd)
