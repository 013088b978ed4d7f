"""Something to mount on where nothing exists: made before a command, removed after the last one.

A mount needs a place. It is an empty directory whatever the name: git does not list it, nobody
reads it as an empty file, and it can be removed only while nobody has put anything in. Commands
that run side by side share one.
"""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress

_lock = threading.Lock()
_holders: dict[str, int] = {}
"""How many commands need each place."""


def hold(paths: Sequence[str]) -> list[str]:
    """Make what is missing; the places that can be mounted on, each to be let go."""
    made: list[str] = []
    with _lock:
        for path in paths:
            if path not in _holders:
                try:
                    os.mkdir(path, 0o755)  # noqa: PTH102 - text paths, and many of them
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
                with suppress(OSError):
                    os.rmdir(path)  # noqa: PTH106 - text paths, and many of them
