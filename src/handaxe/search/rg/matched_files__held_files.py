"""Files that are held open while ripgrep searches them, so that it searches these very files."""

import os
import stat
from collections.abc import Iterable
from typing import Self

from handaxe.search.walk.root__beneath import open_beneath

AT_A_TIME = 128
_BY_NUMBER = next((path for path in ("/proc/self/fd", "/dev/fd") if os.path.isdir(path)), None)


class HeldFiles:
    """Some files below a directory; those that are not regular, or behind a link, are left out."""

    def __init__(self, directory: int, paths: Iterable[bytes]) -> None:
        self._by_target: dict[bytes, bytes] = {}
        self.fds: list[int] = []
        for path in paths if _BY_NUMBER else ():
            try:
                fd = open_beneath(directory, path)
            except OSError:
                continue
            self.fds.append(fd)
            if stat.S_ISREG(os.fstat(fd).st_mode):
                self._by_target[os.fsencode(build_fd_path(fd))] = path

    @property
    def targets(self) -> list[str]:
        """What ripgrep is given to search."""
        return [os.fsdecode(target) for target in self._by_target]

    def get_path(self, target: bytes) -> bytes:
        """The path of a file by the name that ripgrep has for it."""
        return self._by_target[target]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self.fds:
            os.close(fd)


def build_fd_path(fd: int) -> str:
    """The name that a child process has for a descriptor it inherits."""
    return f"{_BY_NUMBER}/{fd}"
