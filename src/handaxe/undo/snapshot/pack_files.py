"""The bytes of a tree, stored in a few large files.

One session writes a pack from front to back; afterwards it is only read. So it is synced once for
thousands of files, and several sessions can share it.
"""

import hashlib
import mmap
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from handaxe.disk.attributes import read_extended_attributes
from handaxe.disk.durability import close, sync_content, sync_names
from handaxe.disk.errors import DiskFault
from handaxe.disk.versions import read_open_file
from handaxe.undo.snapshot.git_objects import GitObjects, hash_blob
from handaxe.undo.snapshot.nodes import GIT, LINK, Node

PACK_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WORTHWHILE = 100
"""Above this number of small files, or for one large file, equal bytes are searched everywhere."""
EMPTY = "-"
"""The pack of empty files."""


class NotInPack(DiskFault):
    """Stored bytes are missing or damaged."""


class Packs:
    """The packs in one directory."""

    def __init__(
        self,
        directory: Path,
        *,
        kept: Callable[[], Iterable[Node]] = tuple,
        prefix: str = "",
    ) -> None:
        """`kept` returns what is stored already, so that equal bytes are stored once."""
        self._directory = directory
        self._kept = kept
        self._places: dict[bytes, tuple[str, int]] = {}
        self._worth = 0
        self._prefix = prefix
        self._fd = -1
        self._name = ""
        self._end = 0
        self._unsynced: list[int] = []
        self._mapped: dict[str, mmap.mmap] = {}

    def keep(self, path: str, node: Node) -> bool:
        """Store the bytes of a file and set its node; False if the file changed.

        Raises:
            OSError: it cannot be read, or the disk is full.
        """
        fd = os.open(path, _READ)
        try:
            info = os.fstat(fd)
            if not node.is_stamp_of(info):
                return False
            node.extended = read_extended_attributes(fd)
            if info.st_size <= _PIECE_BYTES:
                return self._keep_small(node, read_open_file(fd, info.st_size))
            return self._keep_large(node, fd)
        finally:
            close(fd)

    @contextmanager
    def view(self, node: Node) -> Generator[memoryview]:
        """The stored bytes of a file.

        Raises:
            NotInPack: they are missing or damaged.
        """
        if not node.pack:
            raise NotInPack("it was not stored")
        if node.pack == EMPTY:
            yield memoryview(b"")
            return
        whole = memoryview(self._map_pack(node.pack, node.offset + node.size_bytes))
        part = whole[node.offset : node.offset + node.size_bytes]
        try:
            if hashlib.sha256(part).digest() != node.digest:
                raise NotInPack("its stored content was changed by another program")
            yield part
        finally:
            part.release()
            whole.release()

    def sync(self) -> None:
        """Sync everything stored so far."""
        if self._fd < 0 and not self._unsynced:
            return
        while self._unsynced:
            sync_content(self._unsynced[-1])
            close(self._unsynced.pop())
        if self._fd >= 0:
            sync_content(self._fd)
        sync_names(self._directory)

    def close(self) -> None:
        """Close all files."""
        for fd in (*self._unsynced, self._fd):
            if fd >= 0:
                close(fd)
        self._unsynced.clear()
        self._fd = -1
        self._mapped.clear()

    def _place_of(self, digest: bytes, worth: int = 1) -> tuple[str, int] | None:
        """Where equal bytes are stored; the whole tree is searched once if that may save space."""
        had, self._worth = self._worth, self._worth + worth
        if had < _WORTHWHILE <= self._worth:
            self._places |= {
                node.digest: (node.pack, node.offset) for node in self._kept() if node.is_in_pack
            }
        return self._places.get(digest)

    def _keep_small(self, node: Node, data: bytes) -> bool:
        if node.size_bytes != len(data):
            return False
        node.digest = hashlib.sha256(data).digest()
        if not data:
            node.pack = EMPTY
        elif (found := self._place_of(node.digest)) is not None:
            node.pack, node.offset = found
        else:
            self._begin()
            with self._write_atomically():
                _write_all(self._fd, data)
            node.pack, node.offset = self._name, self._end
            self._end += len(data)
            self._places[node.digest] = node.pack, node.offset
        return True

    def _keep_large(self, node: Node, fd: int) -> bool:
        self._begin()
        start, size_bytes, digest = self._end, 0, hashlib.sha256()
        with self._write_atomically():
            while piece := os.read(fd, _PIECE_BYTES):
                digest.update(piece)
                size_bytes += len(piece)
                _write_all(self._fd, piece)
        self._end += size_bytes
        if size_bytes != node.size_bytes:
            return False
        node.digest = digest.digest()
        found = self._place_of(node.digest, _WORTHWHILE)
        node.pack, node.offset = found or (self._name, start)
        if found is None:
            self._places[node.digest] = self._name, start
        else:
            self._end = start
            self._cut()
        return True

    @contextmanager
    def _write_atomically(self) -> Generator[None]:
        """Discard a failed write."""
        try:
            yield
        except BaseException:
            try:
                self._cut()
            except OSError:
                # The end of the pack is uncertain, so the next content goes to another one.
                self._unsynced.append(self._fd)
                self._fd = -1
            raise

    def _cut(self) -> None:
        os.ftruncate(self._fd, self._end)
        os.lseek(self._fd, self._end, os.SEEK_SET)

    def _begin(self) -> None:
        """Open a pack for writing, a new one if the last is large enough."""
        if self._fd >= 0 and self._end < PACK_BYTES:
            return
        if self._fd >= 0:
            self._unsynced.append(self._fd)
        self._name = f"{self._prefix}{os.urandom(8).hex()}.pack"
        self._fd = os.open(self._directory / self._name, _CREATE, 0o600)
        self._end = 0

    def _map_pack(self, pack: str, until: int) -> mmap.mmap:
        found = self._mapped.get(pack)
        if found is not None and len(found) >= until:
            return found
        try:
            fd = os.open(self._directory / pack, _READ)
        except OSError as error:
            raise NotInPack("its stored content is missing") from error
        try:
            if os.fstat(fd).st_size < until:
                raise NotInPack("its stored content is incomplete")
            self._mapped[pack] = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        finally:
            close(fd)
        return self._mapped[pack]


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


class StoredContents:
    """The bytes of a tree's files: git objects if possible, packs otherwise."""

    def __init__(
        self, directory: Path, *, kept: Callable[[], Iterable[Node]], prefix: str = ""
    ) -> None:
        self.packs = Packs(directory, kept=kept, prefix=prefix)
        self.git = GitObjects(directory)

    def keep(self, path: str, node: Node) -> bool:
        """Store a file in the cheapest way; False if it changed meanwhile."""
        return self.git.keep(path, node) or self.packs.keep(path, node)

    def sync(self) -> None:
        """Sync everything stored."""
        self.git.sync()
        self.packs.sync()

    def close(self) -> None:
        """Close all files."""
        self.git.release_files()
        self.packs.close()

    @contextmanager
    def view(self, node: Node) -> Generator[memoryview]:
        """The stored bytes of a file.

        Raises:
            DiskFault: they are missing or damaged.
        """
        if node.is_in_pack or not node.pack:
            with self.packs.view(node) as content:
                yield content
        else:
            yield memoryview(self.git.view(node))

    def is_same(self, old: Node | None, new: Node | None) -> bool:
        """Whether only times changed."""
        if old is None or new is None:
            return old is new
        if old.mode != new.mode or old.target != new.target:
            return False
        if not old.is_file:
            return True
        is_same_file = (old.dev, old.ino) == (new.dev, new.ino)
        if old.pack.startswith(LINK):
            # Git gives an object a new time when it would have written it again.
            return is_same_file and old.size_bytes == new.size_bytes
        has_same_names = is_same_file or max(old.links, new.links) == 1
        return has_same_names and self._has_same_bytes(old, new)

    def _has_same_bytes(self, old: Node, new: Node) -> bool:
        if old.pack.startswith(GIT) and new.is_in_pack:
            with self.view(new) as content:
                return old.digest == hash_blob(content)
        return bool(old.digest) and old.digest == new.digest
