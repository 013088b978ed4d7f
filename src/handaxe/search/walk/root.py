"""Where a search runs: an open directory, and the file in it if it is about one file only."""

import os
from functools import cached_property
from typing import Self

from handaxe.contract.faults.file import NotFound
from handaxe.contract.faults.file import Stale as ChangedMeanwhile
from handaxe.disk.errors import DiskFault
from handaxe.disk.safe_open import open_directory
from handaxe.search.walk.ignore_files import Ignores, is_root_ignored, read_ignores_above


class SearchPlace:
    """A directory held open, so that nobody can put another one in its place."""

    def __init__(self, root: str, *, is_file: bool, respect_ignore: bool) -> None:
        path, name = os.path.split(root) if is_file else (root, "")
        self.path = path
        self.target = f"./{name}"
        self.prefix = path.rstrip("/") + "/"
        self.is_ignored = respect_ignore and not is_file and is_root_ignored(path)
        """Whether ignore files above hide this very directory, where somebody wants to look."""
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
    def ignores_above(self) -> Ignores:
        """The ignore files of the directories this one lies in."""
        return read_ignores_above(self.path)

    @property
    def directory(self) -> str:
        """The directory as a program started from here can enter it."""
        held = f"/proc/self/fd/{self.fd}"
        return held if os.path.isdir(held) else self.path
