"""The directory of a file that is about to change: opened, locked, and made if it is missing."""

import contextlib
import errno
import os
from collections.abc import Callable, Generator

import msgspec

from handaxe.disk import locks
from handaxe.disk.durability import close, sync_directory
from handaxe.disk.errors import DiskWriteFailed, wrap_os_errors
from handaxe.disk.safe_open import DIRECTORY, open_directory, refuse_special

_Made = list[tuple[int, str]]
"""Directories made here: open parent and name, outermost first."""


class Directory(msgspec.Struct, frozen=True):
    """An open directory whose lock is held."""

    fd: int
    can_sync: bool
    """False for a directory that may be entered but not read: it has neither lock nor sync."""

    def sync(self) -> None:
        """Make the names in it durable."""
        if self.can_sync:
            sync_directory(self.fd)


@contextlib.contextmanager
def lock_directory(
    path: str, *, make: bool = False, ahead: Callable[[], None] | None = None
) -> Generator[Directory]:
    """Hold the directory at a resolved path; with `make` create it, durably, if need be.

    `ahead` is called before anything is created; what was is removed if the work inside fails.
    """
    made: _Made = []
    with wrap_os_errors("open the directory"):
        directory = _open(path, made, ahead, make=make)
    try:
        if directory.can_sync:
            with wrap_os_errors("lock the directory"):
                locks.hold(directory.fd)
        yield directory
    except BaseException as error:
        if not (isinstance(error, DiskWriteFailed) and error.applied):
            _remove(made)
        raise
    finally:
        close(directory.fd)
        _forget(made)


def _open(path: str, made: _Made, ahead: Callable[[], None] | None, *, make: bool) -> Directory:
    try:
        return Directory(open_directory(path), can_sync=True)
    except PermissionError:
        return Directory(open_directory(path, only_to_look=True), can_sync=False)
    except FileNotFoundError:
        if not make:
            raise
    if ahead is not None:
        ahead()
    try:
        return Directory(_make_all(path, made), can_sync=True)
    except BaseException:
        _remove(made)
        _forget(made)
        raise


def _make_all(path: str, made: _Made) -> int:
    fd, missing = _open_deepest(path)
    try:
        for name in missing:
            child = _make(fd, name, made)
            close(fd)
            fd = child
    except BaseException:
        close(fd)
        raise
    return fd


def _open_deepest(path: str) -> tuple[int, list[str]]:
    missing: list[str] = []
    while True:
        try:
            return open_directory(path or "."), list(filter(None, reversed(missing)))
        except FileNotFoundError:
            path, name = os.path.split(path)
            missing.append(name)


def _make(parent_fd: int, name: str, made: _Made) -> int:
    # What is made can be taken back only through a descriptor that is had before.
    kept_fd = os.dup(parent_fd)
    try:
        os.mkdir(name, dir_fd=parent_fd)
    except FileExistsError:
        # Somebody else made it in the meantime; then it is not ours to remove.
        close(kept_fd)
    except BaseException:
        close(kept_fd)
        raise
    else:
        made.append((kept_fd, name))
        sync_directory(parent_fd)
    try:
        return os.open(name, DIRECTORY, dir_fd=parent_fd)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            refuse_special(name, os.stat(name, dir_fd=parent_fd, follow_symlinks=False))
        raise


def _remove(made: _Made) -> None:
    for parent_fd, name in reversed(made):
        try:
            os.rmdir(name, dir_fd=parent_fd)
        except OSError:
            # Somebody else uses it already.
            break


def _forget(made: _Made) -> None:
    while made:
        close(made.pop()[0])
