"""What may be on a device after a crash, from the calls of a program.

The model promises less than file systems with a journal do, so what holds here holds there:

- Bytes that were not synced may be missing, partly there, zero, or there without earlier ones.
  So may the mode.
- A name (made, removed, renamed) that was not synced by a sync of its directory may be there or
  not, whatever became of others. One rename happens whole or not at all, also between
  directories, and is durable when either directory is synced. Syncing a file syncs no name.
- A sync makes durable what was complete when it began.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ACK = b"acknowledged "
"""A program that prints this has promised that what came before lasts."""
ROOT = 0


class Names(NamedTuple):
    """Names that change together: (directory, name, inode or None if it goes)."""

    changes: tuple[tuple[int, str, int | None], ...]


class Data(NamedTuple):
    """Bytes written to an inode."""

    inode: int
    offset: int
    data: bytes


class Size(NamedTuple):
    """An inode cut or extended."""

    inode: int
    size: int


class Mode(NamedTuple):
    """New permission bits of an inode."""

    inode: int
    mode: int


class Sync(NamedTuple):
    """An inode made durable, as it was after so many steps; None for all inodes."""

    inode: int | None
    covers: int


class Ack(NamedTuple):
    """The program reported success."""

    what: str


Step = Names | Data | Size | Mode | Sync | Ack


class Inode(NamedTuple):
    """An inode as far as it never changes, and what it was at the beginning."""

    kind: str
    target: str = ""
    content: bytes = b""
    mode: int = 0o644
    names: Mapping[str, int] = {}
    ino: int = 0
    """Its real number, if it is known."""
    mtime_ns: int = 0
    ctime_ns: int = 0
    is_old: bool = False
    """It was there at the beginning."""


class Recording(NamedTuple):
    """The inodes there ever were, and every step in order."""

    inodes: dict[int, Inode]
    steps: list[Step]

    def acknowledged(self, before: int) -> list[str]:
        """What was reported by then."""
        return [step.what for step in self.steps[:before] if isinstance(step, Ack)]


def initial(place: Path) -> dict[int, Inode]:
    """The inodes below a directory, which is inode 0."""
    inodes: dict[int, Inode] = {}
    known: dict[int, int] = {}
    _add(place, inodes, known)
    return inodes


def _add(path: Path, inodes: dict[int, Inode], known: dict[int, int]) -> int:
    info = path.lstat()
    if info.st_ino in known:
        return known[info.st_ino]
    number = known[info.st_ino] = len(known)
    inode = Inode(
        "file",
        mode=stat.S_IMODE(info.st_mode),
        ino=info.st_ino,
        mtime_ns=info.st_mtime_ns,
        ctime_ns=info.st_ctime_ns,
        is_old=True,
    )
    if path.is_symlink():
        inodes[number] = inode._replace(kind="link", target=str(path.readlink()))
    elif path.is_dir():
        names = {name: _add(path / name, inodes, known) for name in sorted(os.listdir(path))}
        inodes[number] = inode._replace(kind="directory", names=names)
    else:
        inodes[number] = inode._replace(content=path.read_bytes())
    return number
