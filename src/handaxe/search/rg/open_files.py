"""Open files that ripgrep searches by their descriptors, so that no name can lead it elsewhere."""

import os
import stat
from collections.abc import Iterable
from typing import Generic, Self, TypeVar

from handaxe.search.walk.root import open_beneath

_BY_NUMBER = next((path for path in ("/proc/self/fd", "/dev/fd") if os.path.isdir(path)), None)

Key = TypeVar("Key")


class OpenFiles(Generic[Key]):
    """Files for one run, each with a key; closed when the block ends."""

    def __init__(self) -> None:
        self.fds: list[int] = []
        self._keys: dict[str, Key] = {}

    def add(self, fd: int, key: Key) -> None:
        """Let ripgrep search an open file."""
        self._keys[f"{_BY_NUMBER}/{fd}"] = key

    @property
    def targets(self) -> list[str]:
        """The names of the files for ripgrep."""
        return [*self._keys]

    def get_key(self, target: bytes) -> Key:
        """The key of a file by its name for ripgrep."""
        return self._keys[os.fsdecode(target)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self.fds:
            os.close(fd)


def open_files(directory: int, paths: Iterable[bytes]) -> OpenFiles[bytes]:
    """The regular files below a directory that are behind no link, by their paths."""
    files = OpenFiles[bytes]()
    for path in paths if _BY_NUMBER else ():
        try:
            fd = open_beneath(directory, path)
        except OSError:
            continue
        files.fds.append(fd)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            files.add(fd, path)
    return files


def open_texts(texts: Iterable[bytes]) -> OpenFiles[int]:
    """Write texts to files in memory. The file of a text has its index as key."""
    files = OpenFiles[int]()
    for number, text in enumerate(texts):
        fd = create_memory_file()
        files.fds.append(fd)
        with os.fdopen(fd, "wb", closefd=False) as file:
            file.write(text)
        os.lseek(fd, 0, os.SEEK_SET)
        files.add(fd, number)
    return files


def create_memory_file() -> int:
    """A file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("rg", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
