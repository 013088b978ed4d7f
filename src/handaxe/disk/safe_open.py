"""Opening the very file or directory a resolved path names, and no other.

The caller has resolved and checked the path already. A link that appears in any part of it since
then is refused, so exactly the checked file is opened. This module also resolves links.
"""

import errno
import os
import stat
from pathlib import Path

from handaxe.disk.durability import close
from handaxe.disk.errors import DiskWriteFailed, NotRegularFile, UnexpectedSymlink

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
# A descriptor good for looking only; the read permission of a directory is not needed for it.
_LOOK = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC

_MOST_LINKS = 40

_KINDS = {
    stat.S_IFDIR: "directory",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def resolve_links(path: str | os.PathLike[str]) -> str:
    """The path with every link followed; an unreadable link stays as it is.

    `os.path.realpath` gives up on such a link, and every user can name one: `/proc/1/root`.
    """
    try:
        return os.path.realpath(path)
    except OSError:
        text = os.fspath(path)
        return _follow_links(text if text.startswith("/") else f"{Path.cwd()}/{text}")[1]


def split_path(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Directory and name of a file path; refuses what cannot name a file."""
    text = os.fsdecode(path)
    parent, name = os.path.split(text)
    if name in {"", ".", ".."} or "\0" in text:
        raise DiskWriteFailed("the path does not name a file", errno.EINVAL)
    return parent or ".", name


def open_directory(path: str, *, only_to_look: bool = False) -> int:
    """A descriptor of the directory at a resolved path; one only to look can not be synced."""
    try:
        fd = os.open(path, _LOOK | os.O_DIRECTORY if only_to_look else DIRECTORY)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            _refuse_link(path)
        raise
    if not is_at(fd, path):
        close(fd)
        raise UnexpectedSymlink(path)
    return fd


def open_regular(
    path: str, *, dir_fd: int | None = None, access: int = os.O_RDONLY
) -> tuple[int, os.stat_result]:
    """Descriptor and status of a regular file; the last part of the path may not be a link.

    Raises:
        NotRegular: a directory, FIFO, socket or device, which is not even opened.
        UnexpectedSymlink: a symbolic link.
    """
    # Opening alone can have effects: a FIFO wakes its writer, a device may act.
    refuse_special(path, os.stat(path, dir_fd=dir_fd, follow_symlinks=False))
    try:
        fd = os.open(path, access | _FILE, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:
            refuse_special(path, os.stat(path, dir_fd=dir_fd, follow_symlinks=False))
        raise
    try:
        info = os.fstat(fd)
        refuse_special(path, info)
    except BaseException:
        close(fd)
        raise
    return fd, info


def open_regular_at(path: str, *, access: int = os.O_RDONLY) -> tuple[int, os.stat_result]:
    """Like `open_regular`, and no part of the path may be a link."""
    for _ in range(8):
        fd, info = open_regular(path, access=access)
        if is_at(fd, path):
            return fd, info
        close(fd)
        # Either a link came into the path, or the file was renamed away a moment ago.
    raise UnexpectedSymlink(path)


def stat_without_links(path: str) -> os.stat_result | None:
    """The status of an absolute path that has no link in it; None where one may be.

    Raises:
        FileNotFoundError: it does not exist, and no link in the path would change that.
    """
    if not hasattr(os, "O_PATH"):
        return None
    try:
        fd = os.open(path, _LOOK)
    except FileNotFoundError:
        if _is_plain_directory(path.rpartition("/")[0] or "/"):
            raise
        return None
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        return info if _is_named(fd, path) and not stat.S_ISLNK(info.st_mode) else None
    finally:
        close(fd)


def is_at(fd: int, path: str) -> bool:
    """Whether the open file or directory is the one at `path`, reached without any link."""
    # A file that was replaced after it was opened still names the place it was opened at.
    return _is_named(fd, path, f"{path} (deleted)") or _is_found_by_walking(fd, path)


def refuse_special(path: str, info: os.stat_result) -> None:
    """Raise unless the status is that of a regular file."""
    kind = stat.S_IFMT(info.st_mode)
    if kind == stat.S_IFREG:
        return
    if kind == stat.S_IFLNK:
        raise UnexpectedSymlink(path)
    raise NotRegularFile(_KINDS.get(kind, "special file"))


def _is_named(fd: int, *paths: str) -> bool:
    """Whether the kernel knows an open file by one of these names, which it gives without links."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}") in paths
    except OSError:
        return False


def _is_plain_directory(path: str) -> bool:
    """Whether an absolute path without links is a directory."""
    try:
        fd = os.open(path, _LOOK | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        return _is_named(fd, path)
    finally:
        close(fd)


def _refuse_link(path: str) -> None:
    if stat.S_ISLNK(os.lstat(path).st_mode):
        raise UnexpectedSymlink(path)


def _is_found_by_walking(fd: int, path: str) -> bool:
    *parents, name = path.rstrip("/").split("/")
    here = os.open("/" if path.startswith("/") else ".", _LOOK | os.O_DIRECTORY)
    try:
        for part in filter(None, parents):
            below = os.open(part, _LOOK | os.O_DIRECTORY, dir_fd=here)
            close(here)
            here = below
        found = os.stat(name or ".", dir_fd=here, follow_symlinks=False)
    except OSError:
        return False
    finally:
        close(here)
    wanted = os.fstat(fd)
    return (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino)


def find_links(path: str) -> tuple[tuple[str, str], ...]:
    """Every link on the way along an absolute path: its own place and its target."""
    return tuple(_follow_links(path)[0])


def _follow_links(path: str) -> tuple[list[tuple[str, str]], str]:
    """The links on the way, and where the path ends."""
    found: list[tuple[str, str]] = []
    done, left = "", path.split("/")
    while left:
        part = left.pop(0)
        if part in {"", "."}:
            continue
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        place = f"{done}/{part}"
        try:
            target = os.readlink(place) if len(found) < _MOST_LINKS else None
        except OSError:
            target = None
        if target is None:
            done = place
            continue
        found.append((place, target))
        done, left = "" if target.startswith("/") else done, [*target.split("/"), *left]
    return found, done or "/"
