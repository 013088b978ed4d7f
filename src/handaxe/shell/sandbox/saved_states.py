"""The complete saved state of a protected path, so that changes can be detected and reverted.

Contents are copied into a directory that commands cannot access. A file with unchanged inode, size
and change time is assumed unchanged, because no program can set that time. An unreadable path is
`unknown` and equals only itself, untouched. Links are not followed.
"""

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import FileIO
from typing import Literal

import msgspec

from handaxe.disk.attributes import Attributes, CannotKeep, apply_attributes, read_attributes

MOST_FILES = 20_000
MOST_BYTES = 256 << 20
"""Limit per protected path; larger ones cannot be saved."""
MOST_LEVELS = 200
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SETTLED_NS = 50_000_000
"""A more recently changed file could change again with the same time."""
_COPIED_AT_ONCE = 1 << 20

Kind = Literal["absent", "file", "directory", "link", "other", "unknown", "open"]
"""`open`: may change although it is inside a protected path."""


class SavedState(msgspec.Struct, frozen=True):
    """The state of one name."""

    kind: Kind
    stamp: tuple[int, ...] = ()
    """Device, inode, change time, size and mode; empty if not reliable."""
    attributes: Attributes | None = None
    changed_ns: int = 0
    content: str = ""
    """The name of a file's copy, or the target of a link."""
    inside: dict[str, "SavedState"] = {}


ABSENT = SavedState("absent")


class StateTooLarge(Exception):
    """A path is larger than the limit."""


class ContentCopies:
    """Copies of contents in one directory, created on first use."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._made = 0

    def add(self, source: int) -> str:
        """Copy an open file; returns the name of the copy."""
        os.makedirs(self.directory, 0o700, exist_ok=True)  # noqa: PTH103 - the string is at hand
        self._made += 1
        name = f"{os.getpid()}-{self._made}"
        target = os.open(f"{self.directory}/{name}", _MAKING, 0o600)
        try:
            copy_content(source, target)
        finally:
            os.close(target)
        return name

    def open(self, name: str) -> FileIO:
        """A copy for reading."""
        with suppress(OSError):
            # A command may have closed it: not all means of confinement keep modes.
            os.chmod(f"{self.directory}/{name}", 0o600)  # noqa: PTH101
        return FileIO(f"{self.directory}/{name}")


class StateSaver:
    """Saves states; what is unchanged since the last time is not copied again."""

    def __init__(
        self,
        copies: ContentCopies,
        known: Mapping[str, SavedState],
        leaves_open: frozenset[str] = frozenset(),
    ) -> None:
        self._copies = copies
        self._known = known
        self._leaves_open = leaves_open
        self._files = self._bytes = 0

    def save(self, parent: int, path: str) -> SavedState:
        """The state of the last name of `path` in an open directory.

        Raises:
            StateTooLarge: it exceeds the limit.
        """
        self._files = self._bytes = 0
        return self._save(parent, path, self._known.get(path, ABSENT), 0)

    def _save(self, parent: int, path: str, known: SavedState, level: int) -> SavedState:
        if path in self._leaves_open:
            return SavedState("open")
        self._files += 1
        name = path.rpartition("/")[2]
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return ABSENT
        except OSError:
            return SavedState("unknown")
        kind = _get_kind(found)
        self._bytes += found.st_size if kind == "file" else 0
        if self._files > MOST_FILES or self._bytes > MOST_BYTES or level > MOST_LEVELS:
            raise StateTooLarge
        stamp = compute_stamp(found)
        is_known = bool(stamp) and known.stamp == stamp and known.kind == kind
        if is_known and kind != "directory":
            return known
        try:
            return self._look(parent, path, stamp, known, kind, level)
        except OSError:
            return SavedState("unknown", stamp)

    def _look(
        self,
        parent: int,
        path: str,
        stamp: tuple[int, ...],
        known: SavedState,
        kind: Kind,
        level: int,
    ) -> SavedState:
        name = path.rpartition("/")[2]
        if kind == "directory":
            return self._directory(parent, path, stamp, known, level)
        if kind == "link":
            return SavedState("link", stamp, content=os.readlink(name, dir_fd=parent))
        return (
            self._file(parent, name, stamp, known) if kind == "file" else SavedState("other", stamp)
        )

    def _file(
        self, parent: int, name: str, stamp: tuple[int, ...], known: SavedState
    ) -> SavedState:
        descriptor = os.open(name, _READING, dir_fd=parent)
        try:
            found = os.fstat(descriptor)
            same = known.kind == "file" and _has_content(descriptor, known.content, self._copies)
            os.lseek(descriptor, 0, os.SEEK_SET)
            content = known.content if same else self._copies.add(descriptor)
            return SavedState(
                "file", stamp, read_attributes(descriptor), found.st_mtime_ns, content
            )
        finally:
            os.close(descriptor)

    def _directory(
        self, parent: int, path: str, stamp: tuple[int, ...], known: SavedState, level: int
    ) -> SavedState:
        place = os.open(path.rpartition("/")[2], DIRECTORY, dir_fd=parent)
        try:
            inside = {
                one: self._save(place, f"{path}/{one}", known.inside.get(one, ABSENT), level + 1)
                for one in sorted(os.listdir(place))
            }
            if stamp and known.stamp == stamp and known.inside == inside:
                return known
            return SavedState("directory", stamp, read_attributes(place), inside=inside)
        finally:
            os.close(place)


def is_same(
    before: SavedState, parent: int, name: str, copies: ContentCopies, *, trusts: bool = True
) -> bool:
    """Whether a name still has the saved kind, content, mode, owner and attributes.

    Without `trusts` everything is read again, whatever the times say.
    """
    if before.kind == "open":
        return True
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return before.kind == "absent"
    except OSError:
        return False
    stamp = compute_stamp(found, is_settled=True)
    is_untouched = trusts and bool(before.stamp) and stamp == before.stamp
    if before.kind in {"unknown", "other"} or (is_untouched and before.kind != "directory"):
        return is_untouched
    try:
        return before.kind == _get_kind(found) and _is_same_inside(
            before, parent, name, copies, trusts=trusts
        )
    except OSError:
        return False


def _is_same_inside(
    before: SavedState, parent: int, name: str, copies: ContentCopies, *, trusts: bool
) -> bool:
    if before.kind == "directory":
        return _is_same_directory(before, parent, name, copies, trusts=trusts)
    if before.kind == "link":
        return os.readlink(name, dir_fd=parent) == before.content
    descriptor = os.open(name, _READING, dir_fd=parent)
    try:
        is_same_outside = read_attributes(descriptor) == before.attributes
        return is_same_outside and _has_content(descriptor, before.content, copies)
    finally:
        os.close(descriptor)


def _is_same_directory(
    before: SavedState, parent: int, name: str, copies: ContentCopies, *, trusts: bool
) -> bool:
    place = os.open(name, DIRECTORY, dir_fd=parent)
    try:
        is_open = {one for one, inner in before.inside.items() if inner.kind == "open"}
        if {*os.listdir(place)} - is_open != {*before.inside} - is_open:
            return False
        if read_attributes(place) != before.attributes:
            return False
        return all(
            is_same(inner, place, one, copies, trusts=trusts)
            for one, inner in before.inside.items()
        )
    finally:
        os.close(place)


def is_whole(state: SavedState) -> bool:
    """Whether everything was saved, so that it can be restored."""
    return state.kind not in {"unknown", "other"} and all(map(is_whole, state.inside.values()))


def list_changeable_parts(state: SavedState) -> Iterator[str]:
    """The paths inside it that may change."""
    for name, inner in state.inside.items():
        if inner.kind == "open":
            yield name
        else:
            yield from (f"{name}/{rest}" for rest in list_changeable_parts(inner))


def restore_state(state: SavedState, parent: int, name: str, copies: ContentCopies) -> None:
    """Restore the saved state at a free name.

    Raises:
        OSError: it cannot be restored.
    """
    if state.kind == "link":
        os.symlink(state.content, name, dir_fd=parent)
    elif state.kind == "directory":
        os.mkdir(name, 0o700, dir_fd=parent)
        place = os.open(name, DIRECTORY, dir_fd=parent)
        try:
            for one, inner in state.inside.items():
                restore_state(inner, place, one, copies)
            _give(place, state)
        finally:
            os.close(place)
    elif state.kind == "file":
        target = os.open(name, _MAKING, 0o600, dir_fd=parent)
        try:
            with copies.open(state.content) as source:
                copy_content(source.fileno(), target)
            _give(target, state)
            os.utime(target, ns=(time.time_ns(), state.changed_ns))
        finally:
            os.close(target)
    elif state.kind not in {"absent", "open"}:
        raise OSError(f"{name} could not be saved")


def _give(descriptor: int, state: SavedState) -> None:
    if state.attributes is not None:
        try:
            apply_attributes(descriptor, state.attributes)
        except CannotKeep as error:
            raise OSError(str(error)) from error


def compute_stamp(found: os.stat_result, *, is_settled: bool = False) -> tuple[int, ...]:
    """A stamp that every change of a file changes. Empty if the file is too recent."""
    if not is_settled and abs(time.time_ns() - found.st_ctime_ns) < _SETTLED_NS:
        return ()
    return (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_size, found.st_mode)


def _get_kind(found: os.stat_result) -> Kind:
    if stat.S_ISDIR(found.st_mode):
        return "directory"
    if stat.S_ISLNK(found.st_mode):
        return "link"
    return "file" if stat.S_ISREG(found.st_mode) else "other"


def _has_content(descriptor: int, copy: str, copies: ContentCopies) -> bool:
    with suppress(OSError), copies.open(copy) as saved:
        if os.fstat(saved.fileno()).st_size != os.fstat(descriptor).st_size:
            return False
        while True:
            part = os.read(descriptor, _COPIED_AT_ONCE)
            if part != _read_as_much(saved.fileno(), len(part) or 1):
                return False
            if not part:
                return True
    return False


def _read_as_much(descriptor: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := os.read(descriptor, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def copy_content(source: int, target: int) -> None:
    """Copy an open file to another."""
    while part := os.read(source, _COPIED_AT_ONCE):
        while part:
            part = part[os.write(target, part) :]
