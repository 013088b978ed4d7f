"""Putting one path back to what it was: bytes, existence, mode, link target.

Every change is a compare-and-swap against what was looked at a moment ago, so a change that
somebody makes right now is never overwritten unseen.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from handaxe.disk import atomic, attributes
from handaxe.disk.directories import locked_directory
from handaxe.disk.durability import close, sync_file
from handaxe.disk.faults import explained
from handaxe.disk.places import open_regular_at
from handaxe.storage.undo.records import State

OwnLinks = Callable[[int, int], int]


class Restorer:
    """Changes paths on this machine."""

    def __init__(self, *, journal: atomic.Journal | None, own_links: OwnLinks) -> None:
        self._journal = journal
        self._own_links = own_links

    def put(
        self, target: State, now: State, content: bytes | memoryview, mode: int | None
    ) -> atomic.Version | None:
        """Make the path what `target` says; gives the version of a file that now stands there.

        Raises:
            atomic.DiskFault: the system refused, or the path changed a moment ago.
        """
        place = target.place
        match target.kind:
            case "absent":
                _remove(place, now)
                _remove_empty_parents(place, target.missing_parents)
            case "file":
                return self._put_file(target, now, content, mode)
            case "link":
                _put_link(place, target.target, now)
            case "directory":
                _put_directory(place, target.mode, now)
            case "special":
                raise atomic.DiskFault("what was there could not be read when it was replaced")
        return None

    def _put_file(
        self, target: State, now: State, content: bytes | memoryview, mode: int | None
    ) -> atomic.Version | None:
        place = target.place
        if now.is_same(target):
            if mode is not None:
                atomic.set_mode(place, mode)
            return None
        if now.kind in {"link", "directory"}:
            _remove(place, now)
            now = State(target.path, "absent", target.raw_path)
        is_new = now.kind == "absent"
        version = atomic.replace(
            place,
            [content],
            expect=atomic.ABSENT if is_new else _version(now),
            mode=target.mode if is_new else mode,
            make_parents=is_new,
            journal=self._journal,
            own_links=self._own_links,
        )
        if is_new:
            _dress(place, target)
        return version


def _version(state: State) -> atomic.Version:
    return atomic.Version(state.digest, state.size_bytes, state.mtime_ns, state.mode)


def _dress(place: str, target: State) -> None:
    """Owner and attributes of a file that had to be made anew, as far as this user may."""
    wanted = attributes.Attributes(target.mode, target.uid, target.gid, target.extended)
    with explained("give the file its old attributes", applied=True):
        fd, _ = open_regular_at(place)
        try:
            if attributes.attributes_of(fd) != wanted:
                with contextlib.suppress(attributes.CannotKeep):
                    attributes.give(fd, wanted)
                sync_file(fd)
        finally:
            close(fd)


def _remove(place: str, now: State) -> None:
    if now.kind == "file":
        atomic.delete(place, expect=_version(now))
        return
    if now.kind == "absent":
        return
    parent, name = os.path.split(place)
    with locked_directory(parent) as directory, explained(f"remove the {now.kind}"):
        if now.kind == "link":
            _refuse_other_link(name, directory.fd, now.target)
            os.unlink(name, dir_fd=directory.fd)
        else:
            os.rmdir(name, dir_fd=directory.fd)
        directory.sync()


def _remove_empty_parents(place: str, count: int) -> None:
    """Take the directories away that the call had made, unless somebody uses them."""
    with contextlib.suppress(OSError, atomic.DiskFault):
        for parent in list(Path(place).parents)[:count]:
            with locked_directory(str(parent.parent)) as directory:
                os.rmdir(parent.name, dir_fd=directory.fd)
                directory.sync()


def _put_link(place: str, target: bytes, now: State) -> None:
    if now.kind == "directory":
        _remove(place, now)
    parent, name = os.path.split(place)
    with locked_directory(parent, make=True) as directory, explained("make the link again"):
        unnamed = f".handaxe-{os.urandom(8).hex()}.tmp"
        os.symlink(target, unnamed, dir_fd=directory.fd)
        os.rename(unnamed, name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        directory.sync()


def _put_directory(place: str, mode: int, now: State) -> None:
    if now.kind in {"file", "link"}:
        _remove(place, now)
    # Opening it with its parents refuses any link on the way, as for files.
    with locked_directory(place, make=True) as directory, explained("make the directory again"):
        os.fchmod(directory.fd, mode)
        directory.sync()


def _refuse_other_link(name: str, directory_fd: int, target: bytes) -> None:
    if os.readlink(os.fsencode(name), dir_fd=directory_fd) != target:
        raise atomic.DiskFault("the link was changed a moment ago")
