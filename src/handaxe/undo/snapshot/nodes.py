"""What a tree snapshot knows of one path: what the system said of it, and where its bytes are."""

import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from handaxe.disk.versions import find_shared_birth_ns

RACY_NS = 2_000_000_000
"""A file written so shortly before it was looked at may change again without a newer time."""
GIT = "git:"
"""Begins the pack of a file whose bytes are an object of git; its digest is that object's id."""
LINK = "link:"
"""Begins the pack of an object's own file, which is kept by a second name, without a digest."""


class Node(msgspec.Struct, array_like=True, gc=False):
    """One path at the moment of a look."""

    mode: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    dev: int
    ino: int
    links: int
    uid: int
    gid: int
    racy: bool = False
    """Whether the next look has to compare contents, as equal times prove nothing."""
    target: bytes = b""
    """Where a symbolic link points."""
    pack: str = ""
    """Where the content of a file is kept; empty if it is not yet."""
    offset: int = 0
    digest: bytes = b""
    extended: Mapping[str, bytes] = {}
    born_ns: int = 0
    """When a file with several names was made; 0 of one with a single name, or if nobody knows."""

    @property
    def is_directory(self) -> bool:
        """Whether it holds other paths."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Whether it has bytes of its own."""
        return stat.S_ISREG(self.mode)

    @property
    def needs_content(self) -> bool:
        """Whether it could not be put back yet."""
        return not self.pack and stat.S_ISREG(self.mode)

    @property
    def has_other_names(self) -> bool:
        """Whether the file can be reached and changed by another name than ours or this one."""
        return self.links > 1 and self.is_file and not self.pack.startswith(LINK)

    @property
    def is_in_pack(self) -> bool:
        """Whether a pack of ours has the bytes, and the digest is theirs."""
        return bool(self.pack) and not self.pack.startswith((GIT, LINK))

    def is_stamp_of(self, info: os.stat_result) -> bool:
        """Whether the system says of the path what it said then."""
        return (
            self.ctime_ns == info.st_ctime_ns
            and self.mtime_ns == info.st_mtime_ns
            and self.size_bytes == info.st_size
            and self.ino == info.st_ino
            and self.mode == info.st_mode
            and self.dev == info.st_dev
            and self.links == info.st_nlink
        )

    def is_stamp_like(self, other: "Node") -> bool:
        """Whether both are the same file, not written or renamed in between."""
        return (
            self.ctime_ns == other.ctime_ns
            and self.mtime_ns == other.mtime_ns
            and self.size_bytes == other.size_bytes
            and (self.dev, self.ino) == (other.dev, other.ino)
        )

    def take_content_of(self, other: "Node") -> None:
        """Refer to the same kept bytes."""
        self.pack, self.offset, self.digest = other.pack, other.offset, other.digest


class NodeChange(NamedTuple):
    """One path that is not what it was."""

    path: str
    old: Node | None
    new: Node | None


def from_stat(path: str, info: os.stat_result, now_ns: int) -> Node:
    """The node of a path, from what the system says of it."""
    return Node(
        info.st_mode,
        info.st_size,
        info.st_mtime_ns,
        info.st_ctime_ns,
        info.st_dev,
        info.st_ino,
        info.st_nlink,
        info.st_uid,
        info.st_gid,
        max(info.st_ctime_ns, info.st_mtime_ns) > now_ns - RACY_NS,
        born_ns=find_shared_birth_ns(path, info),
    )
