"""Something to mount on where nothing exists: made before a command, removed after the last one.

A mount needs a place. It is a socket nobody listens on: git does not list it, nobody reads it as
an empty file or waits for it, and it costs next to nothing to make and to remove. Only `.git` is
an empty directory, which git walks past. Commands that run side by side share one. A ledger
outside the project remembers them, so that the next process removes what a killed one left.
"""

import os
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_lock = threading.Lock()
_holders: dict[str, int] = {}
"""How many commands need each place."""
_ledgers: set[str] = set()
"""Directories whose old entries have been seen to."""


def hold(paths: Sequence[str], ledger: str | None = None) -> list[str]:
    """Make what is missing; the places that can be mounted on, each to be let go."""
    made: list[str] = []
    with _lock:
        if ledger is not None and paths:
            _write_ledger(ledger, {*_holders, *paths})
        for path in paths:
            if path not in _holders:
                try:
                    _make(path)
                except OSError:
                    continue
            _holders[path] = _holders.get(path, 0) + 1
            made.append(path)
    return made


def is_held(path: str) -> bool:
    """Whether a place is there only because a command needs it."""
    return path in _holders


def let_go(paths: Sequence[str]) -> None:
    """A command has ended; what nobody needs any more is removed."""
    with _lock:
        for path in reversed(paths):
            _holders[path] -= 1
            if _holders[path] == 0:
                del _holders[path]
                _remove(path)


def _write_ledger(directory: str, paths: set[str]) -> None:
    with suppress(OSError):
        if directory not in _ledgers:
            _ledgers.add(directory)
            Path(directory).mkdir(0o700, parents=True, exist_ok=True)
            _clean_up(directory)
        own = Path(directory, f"placeholders-{os.getpid()}")
        text = "\0".join(sorted(paths)).encode("utf-8", "surrogateescape")
        # The same places again and again: the ledger is written when they change.
        if not own.exists() or own.read_bytes() != text:
            own.write_bytes(text)


def _clean_up(directory: str) -> None:
    """Remove what processes that are no more have left."""
    for entry in Path(directory).glob("placeholders-*"):
        if _is_alive(entry.name.rpartition("-")[2]):
            continue
        for path in entry.read_bytes().decode("utf-8", "surrogateescape").split("\0"):
            _remove(path)
        entry.unlink()


def _is_alive(pid: str) -> bool:
    return pid.isdigit() and (pid == str(os.getpid()) or Path("/proc", pid).exists())


def _make(path: str) -> None:
    if not path.endswith("/.git"):
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


def _remove(path: str) -> None:
    with suppress(OSError, ValueError):
        found = os.lstat(path).st_mode
        if stat.S_ISSOCK(found):
            Path(path).unlink()
        elif stat.S_ISDIR(found):
            # Only while nobody has put anything in.
            Path(path).rmdir()
