"""What exists of the places that a policy hides and shows; looked for again where it changed."""

import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from handaxe.contract.readable_files import is_below
from handaxe.disk.safe_open import resolve_links
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy, list_hidden_paths

_MOST_POLICIES = 16
_SETTLED_NS = 50_000_000
_filled: set[str] = set()
"""Shown directories with something in them, which are not looked at again."""


def find_empty(allowed: Sequence[str]) -> frozenset[str]:
    """Which of these directories hold nothing."""
    found = frozenset(path for path in allowed if path not in _filled and _is_empty(path))
    _filled.update(path for path in allowed if path not in found)
    return found


class _Hidden(NamedTuple):
    rests_on: dict[str, tuple[int, int, int] | None]
    """What was looked at: as long as all of it is the same, so is the answer."""
    files: tuple[str, ...]
    directories: tuple[str, ...]


_hidden_now: dict[SandboxPolicy, _Hidden] = {}


def find_hidden(policy: SandboxPolicy) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files and directories to hide that are there now."""
    known = _hidden_now.get(policy)
    if known is None or any(_read_stamp(path) != stamp for path, stamp in known.rests_on.items()):
        known = _look_for_hidden(policy)
        newest = max((stamp[1] for stamp in known.rests_on.values() if stamp), default=0)
        if time.time_ns() - newest < _SETTLED_NS:
            # It could change again without getting another time.
            return known.files, known.directories
        while len(_hidden_now) >= _MOST_POLICIES:
            del _hidden_now[next(iter(_hidden_now))]
        _hidden_now[policy] = known
    return known.files, known.directories


def _look_for_hidden(policy: SandboxPolicy) -> _Hidden:
    files: list[str] = []
    directories: list[str] = []
    rests_on: dict[str, tuple[int, int, int] | None] = {}
    for path in list_hidden_paths(policy):
        above = _find_existing_parent(path)
        rests_on[above] = _read_stamp(above)
        if not os.path.lexists(path):
            continue
        real = resolve_links(path)
        # A link, or anything on its way, may lead elsewhere the next time.
        rests_on |= {
            place: _read_stamp(place) for place in (path, real, real.rpartition("/")[0] or "/")
        }
        with suppress(OSError):
            found = os.stat(real)
            if stat.S_ISDIR(found.st_mode):
                # Where nothing is and nothing can be put, nothing has to be hidden.
                if any(is_below(real, root) for root in policy.roots) or not _is_empty(real):
                    directories.append(real)
            elif found.st_size and _can_read(real, found):
                files.append(real)
    return _Hidden(rests_on, tuple(files), tuple(directories))


def _is_empty(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _find_existing_parent(path: str) -> str:
    """The directory around a path that is there: what is made on the way changes it."""
    above = path.rpartition("/")[0]
    while above and not os.path.isdir(above):
        above = above.rpartition("/")[0]
    return above or "/"


def _read_stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_ctime_ns, found.st_size)


def _can_read(path: str, found: os.stat_result) -> bool:
    """Whether a command could read a file at all, if need be after changing its mode."""
    return found.st_uid == os.geteuid() or os.access(path, os.R_OK)
