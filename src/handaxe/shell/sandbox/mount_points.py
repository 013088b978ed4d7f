"""Mount points where nothing exists: created before a command, removed after it.

A missing directory becomes an empty one, which git ignores and the user can fill. A missing file
becomes an unused socket: git does not list it, programs do not read it as an empty file, and a file
can be renamed over it. Parallel commands share them. A ledger outside the project records them, so
that the next process removes those of a killed one.

Creating and removing a directory costs a hundred times a rename, so they are reused through a store
next to the ledger, if that is on the same file system.
"""

import os
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from handaxe.disk.private import make_private, write_private
from handaxe.disk.temp_files import rename_new

_DIRECTORIES = frozenset({".git", ".claude", ".handaxe", ".vscode", ".idea", "hooks"})
_SOCKET = "socket"
_ANYWHERE = -100
"""Instead of a directory: paths are absolute."""

_lock = threading.Lock()
_holders: dict[str, int] = {}
"""The number of commands that need each path."""
_stores: dict[str, "_Store"] = {}


def acquire_mount_points(paths: Sequence[str], ledger: str | None = None) -> list[str]:
    """Create missing mount points; returns the usable paths, which must be released."""
    made: list[str] = []
    with _lock:
        store = _get_store(ledger) if paths and ledger is not None else None
        if store is not None:
            store.note({*_holders, *paths})
        for path in paths:
            if path not in _holders:
                try:
                    _make(path, store)
                except OSError:
                    continue
            _holders[path] = _holders.get(path, 0) + 1
            made.append(path)
    return made


def is_held(path: str) -> bool:
    """Whether a path exists only because a command needs it."""
    return path in _holders


def is_for_directory(path: str) -> bool:
    """Whether a path is meant to be a directory."""
    return path.rpartition("/")[2] in _DIRECTORIES


def release_mount_points(paths: Sequence[str], ledger: str | None = None) -> None:
    """Release the paths of an ended command and remove unused ones."""
    with _lock:
        store = _stores.get(ledger) if ledger is not None else None
        for path in reversed(paths):
            _holders[path] -= 1
            if _holders[path] == 0:
                del _holders[path]
                if store is None or not store.take_back(path):
                    _remove(path)


class _Store:
    """The ledger of this process, and reusable mount points."""

    def __init__(self, directory: str) -> None:
        self._ledger = Path(directory, f"placeholders-{os.getpid()}")
        self._noted: set[str] = set()
        self._place = f"{directory}/unused-{os.getpid()}"
        self._idle: list[str] = []
        self._made = 0
        with suppress(OSError):
            make_private(Path(directory))
            _clean_up(directory)
            make_private(Path(self._place))

    def note(self, paths: set[str]) -> None:
        """Record what another process may have to remove."""
        if paths != self._noted:
            with suppress(OSError):
                text = "\0".join(sorted(paths))
                write_private(self._ledger, text.encode("utf-8", "surrogateescape"))
                self._noted = paths

    def put_directory(self, path: str) -> bool:
        """Move an empty directory to a free path; False if that is not possible."""
        if not self._idle:
            self._idle.append(self._make_name())
            Path(self._idle[-1]).mkdir(0o755)
        is_moved = _move(self._idle[-1], path)
        if is_moved:
            self._idle.pop()
        return is_moved

    def put_socket(self, path: str) -> bool:
        """Link the socket at a free path; False if that is not possible."""
        socket = f"{self._place}/{_SOCKET}"
        if not os.path.lexists(socket):
            os.mknod(socket, stat.S_IFSOCK | 0o644)
        os.link(socket, path)
        return True

    def take_back(self, path: str) -> bool:
        """Move an empty directory back; False if it is missing or not empty."""
        if not is_for_directory(path):
            return False
        unused = self._make_name()
        with suppress(OSError):
            if not _move(path, unused):
                return False
            if not os.listdir(unused):
                self._idle.append(unused)
                return True
        # It is the user's now, or was never ours.
        with suppress(OSError):
            _move(unused, path)
        return True

    def _make_name(self) -> str:
        self._made += 1
        return f"{self._place}/{self._made}"


def _get_store(ledger: str) -> _Store:
    if ledger not in _stores:
        _stores[ledger] = _Store(ledger)
    return _stores[ledger]


def _make(path: str, store: _Store | None) -> None:
    is_directory = is_for_directory(path)
    if store is not None:
        try:
            if store.put_directory(path) if is_directory else store.put_socket(path):
                return
        except FileExistsError:
            raise
        except OSError:
            # Another file system.
            pass
    if not is_directory:
        try:
            os.mknod(path, stat.S_IFSOCK | 0o644)
        except FileExistsError:
            raise
        except OSError:
            # Some file systems have no sockets.
            pass
        else:
            return
    Path(path).mkdir(0o755)


def _move(source: str, target: str) -> bool:
    """Rename a directory to a free path; False if that is not possible.

    Raises:
        FileExistsError: the path is not free.
    """
    try:
        rename_new(_ANYWHERE, source, target)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def _clean_up(directory: str) -> None:
    """Remove the mount points of ended processes."""
    for entry in Path(directory).glob("placeholders-*"):
        if _is_alive(entry.name.rpartition("-")[2]):
            continue
        for path in entry.read_bytes().decode("utf-8", "surrogateescape").split("\0"):
            _remove(path)
        entry.unlink()
    for entry in Path(directory).glob("unused-*"):
        if not _is_alive(entry.name.rpartition("-")[2]):
            for path in entry.iterdir():
                _remove(str(path))
            _remove(str(entry))


def _is_alive(pid: str) -> bool:
    return pid.isdigit() and (pid == str(os.getpid()) or Path("/proc", pid).exists())


def _remove(path: str) -> None:
    with suppress(OSError, ValueError):
        found = os.lstat(path).st_mode
        if stat.S_ISSOCK(found):
            Path(path).unlink()
        elif stat.S_ISDIR(found):
            # Only while the directory is still empty.
            Path(path).rmdir()


os.register_at_fork(after_in_child=_stores.clear)
