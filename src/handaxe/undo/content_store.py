"""Contents that are too large for the journal, stored as a hard link or a copy.

A file that will be replaced by a rename keeps its old content under any second name, so a hard link
(a pin) avoids copying. Code that writes into such a file must call `unshare` first. Copies (blobs)
are named by their hash and shared.
"""

import contextlib
import errno
import fcntl
import hashlib
import mmap
import os
from collections import Counter
from collections.abc import Collection, Generator
from functools import partial
from pathlib import Path

from handaxe.disk.durability import close, sync_file, sync_names
from handaxe.disk.errors import DiskFault
from handaxe.disk.safe_open import open_regular
from handaxe.disk.versions import hash_file
from handaxe.storage.home import make_durable_directory
from handaxe.undo.content_bundle import BUNDLE, Bundle, parse_bundle_offset
from handaxe.undo.journal_files.records import PathState, get_blobs_directory, get_pins_directory

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# FICLONE: two files share their blocks until one is written.
_CLONE = 0x40049409
_COPY_BYTES = 1 << 20
_BLOB, _PIN = "blob:", "pin:"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class ContentNotSaved(DiskFault):
    """The content is missing or differs from what was stored."""


class ContentStore:
    """Stored contents of one data directory, for one session."""

    def __init__(self, home: Path, session_id: str = "") -> None:
        self.home = home
        self._owner = hashlib.sha256(session_id.encode()).hexdigest()[:12]
        self._blobs = get_blobs_directory(home)
        self._pins = get_pins_directory(home)
        self.recorded_bytes = 0
        """Number of bytes this session added to the undo record."""
        self._pinned: Counter[tuple[int, int]] = Counter()
        self._pins_made = self._pins_kept = 0
        self._mapped: tuple[str, mmap.mmap] | None = None
        self.create_bundle = partial(Bundle, self._blobs, self._count)
        """Creates a bundle for the contents of one record."""

    def _count(self, size_bytes: int) -> None:
        self.recorded_bytes += size_bytes

    def pin(self, path: str, info: os.stat_result) -> str:
        """Save a file as a hard link; empty if the system refuses.

        The name is durable when `keep_pins` has returned, which must be before the file changes.
        """
        name = f"{info.st_dev:x}-{info.st_ino:x}-{self._owner}-{os.urandom(6).hex()}"
        pin = self._pins / name
        try:
            make_durable_directory(self._pins)
            os.link(path, pin, follow_symlinks=False)
        except OSError:
            # Another file system, or another user's file: it must be a copy.
            return ""
        if os.lstat(pin).st_ino != info.st_ino:
            pin.unlink()
            return ""
        self._pinned[info.st_dev, info.st_ino] += 1
        self._pins_made += 1
        self.recorded_bytes += info.st_size
        return _PIN + name

    def keep_pins(self) -> None:
        """Return when every pin is durable; immediate if all are."""
        # Another thread may make one more meanwhile, which this sync may miss.
        made = self._pins_made
        if self._pins_kept < made:
            sync_names(self._pins)
            self._pins_kept = max(self._pins_kept, made)

    def copy(self, source_fd: int, size_bytes: int, digest: str = "") -> tuple[str, str]:
        """Save a durable copy; return its place and its digest."""
        if digest and self._touch(digest):
            return _BLOB + digest, digest
        make_durable_directory(self._blobs)
        unnamed = self._blobs / f".new-{os.urandom(8).hex()}"
        fd = os.open(unnamed, _CREATE, 0o600)
        try:
            if not _copy_by_clone(source_fd, fd):
                _copy(source_fd, fd)
            digest, _ = hash_file(fd, size_bytes)
            sync_file(fd)
            self._name(unnamed, digest)
            self.recorded_bytes += size_bytes
        except BaseException:
            unnamed.unlink(missing_ok=True)
            raise
        finally:
            close(fd)
        return _BLOB + digest, digest

    @contextlib.contextmanager
    def view(self, state: PathState) -> Generator[memoryview]:
        """The stored content of a large file, read on demand.

        Raises:
            ContentNotSaved: it is missing or damaged.
        """
        if state.kept.startswith(BUNDLE):
            yield self._read_bundled(state)
            return
        fd = self._open(state)
        try:
            info = os.fstat(fd)
            is_pin = state.kept.startswith(_PIN)
            untouched = (info.st_size, info.st_mtime_ns) == (state.size_bytes, state.mtime_ns)
            digest = state.digest if is_pin and untouched else hash_file(fd, info.st_size)[0]
            if info.st_size != state.size_bytes or digest != state.digest:
                raise ContentNotSaved("the stored content was changed by another program")
            mapped = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        finally:
            close(fd)
        try:
            yield memoryview(mapped)
        finally:
            # If a reader still holds a part of it, the last reader closes it.
            with contextlib.suppress(BufferError):
                mapped.close()

    def release(self, kept: str) -> None:
        """Remove a pin whose file was not replaced after all."""
        if kept.startswith(_PIN):
            name = kept.removeprefix(_PIN)
            self.mark_replaced(kept)
            (self._pins / name).unlink(missing_ok=True)

    def mark_replaced(self, kept: str) -> None:
        """Note that a pinned file was replaced; the pin is now the only name of the old content."""
        if kept.startswith(_PIN):
            dev, ino, *_ = kept.removeprefix(_PIN).split("-")
            inode = int(dev, 16), int(ino, 16)
            self._pinned[inode] -= 1
            if self._pinned[inode] <= 0:
                del self._pinned[inode]

    def drop_pins_except(self, needed: Collection[str]) -> None:
        """Remove pins of this session that have no record because of a crash."""
        for name in self._names():
            if name.split("-")[2:3] == [self._owner] and _PIN + name not in needed:
                (self._pins / name).unlink(missing_ok=True)

    def own_links(self, dev: int, ino: int) -> int:
        """Number of pins among the names of an inode."""
        return self._pinned.get((dev, ino), 0) or sum(
            self._is_inode(name, dev, ino) for name in self._list_pin_names(dev, ino)
        )

    def unshare(self, dev: int, ino: int) -> None:
        """Replace every pin of an inode by a durable copy, before the file is written in place."""
        for name in self._list_pin_names(dev, ino):
            self.separate(_PIN + name)

    def separate(self, kept: str) -> None:
        """Replace a pin by a copy, because the pinned file stays in use."""
        if not kept.startswith(_PIN):
            return
        pin = self._pins / kept.removeprefix(_PIN)
        unnamed = self._pins / f".new-{os.urandom(8).hex()}"
        source, info = open_regular(str(pin))
        fd = os.open(unnamed, _CREATE, 0o600)
        try:
            if not _copy_by_clone(source, fd):
                _copy(source, fd)
            os.utime(fd, ns=(info.st_atime_ns, info.st_mtime_ns))
            sync_file(fd)
            unnamed.rename(pin)
        except BaseException:
            unnamed.unlink(missing_ok=True)
            raise
        finally:
            close(fd)
            close(source)
        self.mark_replaced(kept)
        sync_names(self._pins)

    def settle(self, found: PathState, now: PathState | None) -> None:
        """Finish the stored content of a path; `now` is None if nothing changed there."""
        if now is None:
            self.release(found.kept)
        elif (now.dev, now.ino) == (found.dev, found.ino):
            self.separate(found.kept)
        else:
            self.mark_replaced(found.kept)

    def _read_bundled(self, state: PathState) -> memoryview:
        """A part of a bundle; the file is mapped once for consecutive reads."""
        name, offset = parse_bundle_offset(state.kept)
        if self._mapped is None or self._mapped[0] != name:
            try:
                fd = os.open(self._blobs / name[:2] / name, _READ)
            except OSError as error:
                raise ContentNotSaved("it was removed to save space") from error
            try:
                self._mapped = name, mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
            finally:
                close(fd)
        part = memoryview(self._mapped[1])[offset : offset + state.size_bytes]
        if hashlib.sha256(part).hexdigest() != state.digest:
            raise ContentNotSaved("the stored content was changed by another program")
        return part

    def _open(self, state: PathState) -> int:
        kind, _, name = state.kept.partition(":")
        place = self._blobs / name[:2] / name if kind == "blob" else self._pins / name
        try:
            return open_regular(str(place))[0]
        except (OSError, DiskFault) as error:
            raise ContentNotSaved("it was removed to save space") from error

    def _list_pin_names(self, dev: int, ino: int) -> list[str]:
        prefix = f"{dev:x}-{ino:x}-"
        return [name for name in self._names() if name.startswith(prefix)]

    def _is_inode(self, name: str, dev: int, ino: int) -> bool:
        """Whether a pin is still a name of the file and not a copy."""
        try:
            info = os.lstat(self._pins / name)
        except OSError:
            return False
        return (info.st_dev, info.st_ino) == (dev, ino)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._pins)
        except FileNotFoundError:
            return []

    def _touch(self, digest: str) -> bool:
        """Refresh a blob's age so that it is not pruned; return whether it exists."""
        try:
            os.utime(self._blobs / digest[:2] / digest)
        except OSError:
            return False
        return True

    def _name(self, unnamed: Path, digest: str) -> None:
        folder = self._blobs / digest[:2]
        make_durable_directory(folder)
        unnamed.replace(folder / digest)
        sync_names(folder)


def _copy_by_clone(source: int, target: int) -> bool:
    try:
        fcntl.ioctl(target, _CLONE, source)
    except OSError:
        return False
    return True


def _copy(source: int, target: int) -> None:
    done = 0
    while copied := _copy_some(source, target, done):
        done += copied


def _copy_some(source: int, target: int, start: int) -> int:
    if hasattr(os, "copy_file_range"):
        try:
            return os.copy_file_range(source, target, 1 << 30, start, start)
        except OSError as error:
            if error.errno not in {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}:
                raise
    data = os.pread(source, _COPY_BYTES, start)
    os.lseek(target, start, os.SEEK_SET)
    _write_all(target, memoryview(data))
    return len(data)


def _write_all(fd: int, data: memoryview) -> None:
    while data:
        data = data[os.write(fd, data) :]
