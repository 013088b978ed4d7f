"""Restore one path: bytes, existence, mode, link target.

Every change compares the path with the state read a moment before, so concurrent changes are never
overwritten.
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from handaxe.disk import atomic, attributes
from handaxe.disk.directories import Directory, lock_directory
from handaxe.disk.durability import close, sync_file
from handaxe.disk.errors import wrap_os_errors
from handaxe.disk.safe_open import open_regular_at
from handaxe.undo.journal_files.records import PathState

OwnLinks = Callable[[int, int], int]
_OWNER = 0o700


class CannotMake(atomic.DiskFault):
    """A socket or a device cannot be recreated."""


class InUse(atomic.DiskFault):
    """A directory to remove contains other files."""


class Restorer:
    """Changes paths of this machine for one undo."""

    def __init__(self, *, journal: atomic.Journal | None, own_links: OwnLinks) -> None:
        self._journal = journal
        self._own_links = own_links
        self._modes: dict[str, int] = {}
        self._made: dict[tuple[int, int], str] = {}

    def open_up(self, place: str, mode: int) -> None:
        """Make a directory writable; `finish` restores its bits."""
        if mode & _OWNER != _OWNER:
            with contextlib.suppress(OSError):
                Path(place).chmod(mode | _OWNER)
                self._modes.setdefault(place, mode)

    def put(
        self, target: PathState, now: PathState, content: bytes | memoryview, mode: int | None
    ) -> atomic.Version | None:
        """Restore the path to `target`; return the version of a restored file.

        Raises:
            CannotMake: it cannot be recreated.
            atomic.DiskFault: the system refused, or the path changed a moment ago.
        """
        place = target.place
        match target.kind:
            case "absent":
                self._modes.pop(place, None)
                _remove(place, now)
                _remove_empty_parents(place, target.missing_parents)
            case "file":
                if target.shared_with and self._share(target, now):
                    return None
                version = self._put_file(target, now, content, mode)
                self._made.setdefault((target.dev, target.ino), place)
                return version
            case "link":
                _put_link(place, target.target, now)
            case "directory":
                _put_directory(place, target.mode | _OWNER, now)
                self._modes[place] = target.mode
            case "special":
                _put_special(place, target, now)
        return None

    def finish_path(self, target: PathState) -> None:
        """Finish a path whose content is already restored."""
        if target.kind == "file":
            _restore_attributes(target.place, target)
        elif target.kind == "absent":
            _remove_empty_parents(target.place, target.missing_parents)

    def complete(self) -> None:
        """Do nothing: every path was restored at once."""

    def sync(self, directory: Directory) -> None:
        """Sync the names in a directory."""
        directory.sync()

    def finish(self) -> None:
        """Set the permission bits of all directories, innermost first."""
        for place in sorted(self._modes, key=len, reverse=True):
            with contextlib.suppress(OSError, atomic.DiskFault), lock_directory(place) as held:
                os.fchmod(held.fd, self._modes[place])
                self.sync(held)
        self._modes.clear()
        self._made.clear()

    def _share(self, target: PathState, now: PathState) -> bool:
        """Link the file to another of its names; False if there is none."""
        if now.kind == "file" and (now.dev, now.ino) == (target.dev, target.ino):
            return False
        made = self._made.get((target.dev, target.ino))
        others = sorted(
            map(os.fsdecode, target.shared_with),
            key=lambda other: not _is_inode(other, target),
        )
        for other in (made, *others):
            if other is not None and other != target.place and self._is_it(other, target):
                _put_name(target.place, other, now)
                if stat.S_IMODE(os.lstat(other).st_mode) != target.mode:
                    atomic.set_mode(other, target.mode)
                return True
        return False

    def _is_it(self, other: str, target: PathState) -> bool:
        """Whether a path is the file, or its recreation by an earlier undo."""
        if self._made.get((target.dev, target.ino)) == other:
            return os.path.lexists(other)
        try:
            return _has_content(other, target)
        except (OSError, atomic.DiskFault):
            return False

    def _put_file(
        self, target: PathState, now: PathState, content: bytes | memoryview, mode: int | None
    ) -> atomic.Version | None:
        place = target.place
        is_other = self._is_name_of_another(target, now)
        if now.is_same(target) and not is_other:
            if mode is not None:
                atomic.set_mode(place, mode)
            return None
        if now.kind in {"link", "directory", "special"}:
            _remove(place, now)
            now = PathState(target.path, "absent", target.raw_path)
        is_new = now.kind == "absent"
        version = atomic.replace(
            place,
            [content],
            expect=atomic.ABSENT if is_new else _to_version(now),
            mode=target.mode if is_new or is_other else mode,
            make_parents=is_new,
            journal=self._journal,
            own_links=_count_no_others if is_other else self._own_links,
        )
        if is_new or is_other:
            _restore_attributes(place, target)
        return version

    def _is_name_of_another(self, target: PathState, now: PathState) -> bool:
        """Whether writing in place would change another file."""
        if now.kind != "file" or (now.dev, now.ino) == (target.dev, target.ino):
            return False
        return has_other_names(target.place, self._own_links)


def has_other_names(place: str, own_links: OwnLinks) -> bool:
    """Whether a file has other names than this one and the pins of it."""
    info = os.lstat(place)
    return info.st_nlink > 1 and info.st_nlink - own_links(info.st_dev, info.st_ino) > 1


def _count_no_others(dev: int, ino: int) -> int:  # noqa: ARG001 - whatever file it is
    """Count every other name as a pin: the restored name gets a new file."""
    return sys.maxsize


def _to_version(state: PathState) -> atomic.Version:
    return atomic.Version(state.digest, state.size_bytes, state.mtime_ns, state.mode)


def _restore_attributes(place: str, target: PathState) -> None:
    """Restore owner and attributes of a recreated file, if permitted."""
    wanted = attributes.Attributes(target.mode, target.uid, target.gid, target.extended)
    with wrap_os_errors("give the file its old attributes", applied=True):
        fd, _ = open_regular_at(place)
        try:
            if attributes.read_attributes(fd) != wanted:
                with contextlib.suppress(attributes.CannotKeep):
                    attributes.apply_attributes(fd, wanted)
                sync_file(fd)
        finally:
            close(fd)


def _remove(place: str, now: PathState) -> None:
    if now.kind == "file":
        atomic.delete(place, expect=_to_version(now))
        return
    if now.kind == "absent":
        return
    parent, name = os.path.split(place)
    with lock_directory(parent) as directory, wrap_os_errors(f"remove the {now.kind}"):
        if now.kind == "link":
            _refuse_other_link(name, directory.fd, now.target)
            os.unlink(name, dir_fd=directory.fd)
        elif now.kind == "special":
            os.unlink(name, dir_fd=directory.fd)
        else:
            remove_directory(name, directory)
        directory.sync()


def remove_directory(name: str, directory: Directory) -> None:
    """Remove an empty directory; a missing one is fine."""
    try:
        os.rmdir(name, dir_fd=directory.fd)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            raise InUse("it contains other files now") from error
        raise


def _remove_empty_parents(place: str, count: int) -> None:
    """Remove directories that the call created, if they are empty."""
    with contextlib.suppress(OSError, atomic.DiskFault):
        for parent in list(Path(place).parents)[:count]:
            if not os.path.lexists(parent):
                # A crash came before it was made, and after those above it were.
                continue
            with lock_directory(str(parent.parent)) as directory:
                os.rmdir(parent.name, dir_fd=directory.fd)
                directory.sync()


def _put_special(place: str, target: PathState, now: PathState) -> None:
    if not stat.S_ISFIFO(target.type_bits):
        raise CannotMake("it was a socket or a device")
    _remove(place, now)
    parent, name = os.path.split(place)
    with lock_directory(parent, make=True) as directory, wrap_os_errors("make the FIFO again"):
        os.mkfifo(name, target.mode, dir_fd=directory.fd)
        os.chmod(name, target.mode, dir_fd=directory.fd)
        directory.sync()


def _put_name(place: str, other: str, now: PathState) -> None:
    """Replace a path by a hard link of a file."""
    if now.kind == "directory":
        _remove(place, now)
    parent, name = os.path.split(place)
    with lock_directory(parent, make=True) as directory, wrap_os_errors("make the hard link again"):
        unnamed = f".handaxe-{os.urandom(8).hex()}.tmp"
        os.link(other, unnamed, dst_dir_fd=directory.fd, follow_symlinks=False)
        os.rename(unnamed, name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        # Two names of one file already: then the rename did nothing.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unnamed, dir_fd=directory.fd)
        directory.sync()


def _is_inode(path: str, target: PathState) -> bool:
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return (info.st_dev, info.st_ino) == (target.dev, target.ino)


def _has_content(path: str, target: PathState) -> bool:
    version = atomic.read_version(path)
    return isinstance(version, atomic.Version) and version.digest == target.digest


def _put_link(place: str, target: bytes, now: PathState) -> None:
    if now.kind == "directory":
        _remove(place, now)
    parent, name = os.path.split(place)
    with lock_directory(parent, make=True) as directory, wrap_os_errors("make the link again"):
        unnamed = f".handaxe-{os.urandom(8).hex()}.tmp"
        os.symlink(target, unnamed, dir_fd=directory.fd)
        os.rename(unnamed, name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        directory.sync()


def _put_directory(place: str, mode: int, now: PathState) -> None:
    if now.kind in {"file", "link", "special"}:
        _remove(place, now)
    # Opening it with its parents refuses any link on the way, as for files.
    with lock_directory(place, make=True) as directory, wrap_os_errors("make the directory again"):
        os.fchmod(directory.fd, mode)
        directory.sync()


def _refuse_other_link(name: str, directory_fd: int, target: bytes) -> None:
    if os.readlink(os.fsencode(name), dir_fd=directory_fd) != target:
        raise atomic.DiskFault("the link was changed a moment ago")
