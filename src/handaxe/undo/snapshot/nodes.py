"""One path of a tree snapshot: its metadata, and where its bytes are."""

import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from handaxe.disk.versions import find_shared_birth_ns

RACY_NS = 2_000_000_000
"""A file written so shortly before it was read may change again with the same time."""
GIT = "git:"
"""Prefix of the pack of a file whose bytes are a git object; its digest is the object id."""
LINK = "link:"
"""Prefix of the pack of an object's own file, kept as a hard link, without a digest."""


class Node(msgspec.Struct, array_like=True, gc=False):
    """The state of one path."""

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
    """Whether the next check must compare contents, because equal times prove nothing."""
    target: bytes = b""
    """The target of a symbolic link."""
    pack: str = ""
    """Where the content of a file is stored; empty if it is not yet."""
    offset: int = 0
    digest: bytes = b""
    extended: Mapping[str, bytes] = {}
    born_ns: int = 0
    """When a hard-linked file was created; 0 for other files or if unknown."""

    @property
    def is_directory(self) -> bool:
        """Whether it contains other paths."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Whether it has its own bytes."""
        return stat.S_ISREG(self.mode)

    @property
    def needs_content(self) -> bool:
        """Whether it could not be restored yet."""
        return not self.pack and stat.S_ISREG(self.mode)

    @property
    def has_other_names(self) -> bool:
        """Whether the file has names other than this one and pins."""
        return self.links > 1 and self.is_file and not self.pack.startswith(LINK)

    @property
    def is_in_pack(self) -> bool:
        """Whether its bytes are in a pack, so that the digest is theirs."""
        return bool(self.pack) and not self.pack.startswith((GIT, LINK))

    def is_stamp_of(self, info: os.stat_result) -> bool:
        """Whether the metadata is unchanged."""
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
        """Whether both are the same file, neither written nor renamed in between."""
        return (
            self.ctime_ns == other.ctime_ns
            and self.mtime_ns == other.mtime_ns
            and self.size_bytes == other.size_bytes
            and (self.dev, self.ino) == (other.dev, other.ino)
        )

    def take_content_of(self, other: "Node") -> None:
        """Use the same stored bytes."""
        self.pack, self.offset, self.digest = other.pack, other.offset, other.digest


class NodeChange(NamedTuple):
    """A changed path."""

    path: str
    old: Node | None
    new: Node | None


def from_stat(path: str, info: os.stat_result, now_ns: int) -> Node:
    """The node of a path from its metadata."""
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
