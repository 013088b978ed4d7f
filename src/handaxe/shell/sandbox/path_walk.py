"""Reach protected paths after a command: along real directories, even closed ones.

A command may have replaced a directory by a link, or removed the owner's permissions. Links below a
root are never followed.
"""

import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress

_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ALL = os.R_OK | os.W_OK | os.X_OK

OpenUp = Callable[[str], bool]
"""Restore the owner's access to a directory; False if that is not possible."""


class Obstructed(OSError):
    """A directory on the way is missing or was replaced."""

    def __init__(self, place: str, *, is_missing: bool) -> None:
        super().__init__(f"{place} is {'missing' if is_missing else 'not a directory'}")
        self.place = place
        self.is_missing = is_missing


@contextmanager
def allow_directory_access() -> Generator[OpenUp]:
    """Open directories for this block; their modes are restored afterwards."""
    opened: list[tuple[int, int]] = []

    def open_up(directory: str) -> bool:
        try:
            descriptor = os.open(directory, _PLACE)
        except OSError:
            return False
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        opened.append((descriptor, mode))
        return _set_mode(descriptor, mode | 0o700)

    try:
        yield open_up
    finally:
        for descriptor, mode in reversed(opened):
            _set_mode(descriptor, mode)
            os.close(descriptor)


def _set_mode(descriptor: int, mode: int) -> bool:
    try:
        # The one name for a descriptor that was only opened as a place.
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101
    except OSError:
        return False
    return True


@contextmanager
def open_parent(path: str, roots: Sequence[str], open_up: OpenUp) -> Generator[int]:
    """The parent directory of a path, opened from its root along real directories only.

    Raises:
        Obstructed: the directory is missing.
    """
    parent = path.rpartition("/")[0] or "/"
    around = [root for root in roots if parent == root or parent.startswith(root.rstrip("/") + "/")]
    base = min(around, key=len, default=parent)
    descriptor = _open(base, None, base, open_up, follows=True)
    try:
        place = base
        for name in filter(None, parent[len(base) :].split("/")):
            place = f"{place.rstrip('/')}/{name}"
            following = _open(name, descriptor, place, open_up)
            os.close(descriptor)
            descriptor = following
        yield descriptor
    finally:
        os.close(descriptor)


def _open(
    name: str, parent: int | None, place: str, open_up: OpenUp, *, follows: bool = False
) -> int:
    # What a root is, no command can change.
    flags = _READING & ~os.O_NOFOLLOW if follows else _READING
    try:
        return os.open(name, flags, dir_fd=parent)
    except PermissionError:
        restore_access(place, open_up)
        return os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        raise Obstructed(place, is_missing=True) from None
    except NotADirectoryError:
        raise Obstructed(place, is_missing=False) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Obstructed(place, is_missing=False) from None
        raise


def restore_access(place: str, open_up: OpenUp) -> None:
    """Restore the owner's access to a directory and those above it, if they belong to the user."""
    if os.access(place, _ALL):
        return
    for above in _list_ancestors(place):
        with suppress(OSError):
            if not os.access(above, _ALL) and _is_ours(above):
                open_up(above)


def _is_ours(directory: str) -> bool:
    found = os.lstat(directory)
    return found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode)


def _list_ancestors(place: str) -> list[str]:
    """A directory and all above it, from the top."""
    parts = place.strip("/").split("/")
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def find_directory(roots: Sequence[str], identity: tuple[int, int], open_up: OpenUp) -> str | None:
    """The current path of a directory in the roots, by device and inode."""
    pending = [*roots]
    while pending:
        directory = pending.pop()
        try:
            entries = [*os.scandir(directory)]
        except PermissionError:
            if not open_up(directory):
                continue
            entries = [*os.scandir(directory)]
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found = entry.stat(follow_symlinks=False)
                if (found.st_dev, found.st_ino) == identity:
                    return entry.path
                pending.append(entry.path)
    return None
