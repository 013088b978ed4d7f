"""Limits on the age and size of files that commands leave in the data directory.

These are their output, and the private temporary directories of sandboxed commands.
"""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

import msgspec

from handaxe.disk import locks

SPARED_S = 300.0
"""Recently written files are kept, because they may still be needed."""
OUTPUT_SUFFIX = ".output"
TEMPORARY = "tmp"
TEMPORARY_SPARED_S = 86_400.0
"""A session may continue with its temporary files, but hardly after a day."""


class LeftoverOutput(msgspec.Struct, frozen=True):
    """A file or directory that a command left."""

    written_at: float
    size_bytes: int
    path: Path
    spared_s: float = SPARED_S


def prune_outputs(sessions: Path, tasks: str, *, max_bytes: int, max_age_s: float) -> int:
    """Delete old files below every session until the limits hold; returns the number deleted."""
    gone = 0
    for left in find_expired_outputs(sessions, tasks, max_bytes=max_bytes, max_age_s=max_age_s):
        with suppress(OSError):
            remove_output(left)
            gone += 1
    return gone


def find_expired_outputs(
    sessions: Path, tasks: str, *, max_bytes: int, max_age_s: float
) -> list[LeftoverOutput]:
    """Files that are too old, then the oldest above the size limit; never those in use."""
    now = time.time()
    found: list[LeftoverOutput] = []
    with suppress(OSError):
        for directory in sessions.iterdir():
            found += list_outputs(directory / tasks)
            found += _measure_temporary(directory)
    total = sum(left.size_bytes for left in found)
    going: list[LeftoverOutput] = []
    for left in sorted(found, key=lambda one: one.written_at):
        age_s = now - left.written_at
        if age_s < left.spared_s or (age_s < max_age_s and total <= max_bytes):
            continue
        if _is_written(left.path):
            continue
        going.append(left)
        total -= left.size_bytes
    return going


def remove_output(left: LeftoverOutput) -> None:
    """Delete it."""
    if left.path.is_dir() and not left.path.is_symlink():
        shutil.rmtree(left.path)
    else:
        left.path.unlink()


def list_outputs(directory: Path) -> list[LeftoverOutput]:
    """The output files in a directory."""
    found: list[LeftoverOutput] = []
    with suppress(OSError):
        for path in directory.iterdir():
            if path.suffix == OUTPUT_SUFFIX:
                status = path.lstat()
                found.append(LeftoverOutput(status.st_mtime, status.st_size, path))
    return found


def _is_written(path: Path) -> bool:
    """Whether a running command in any process writes to this path, even if it is silent."""
    if path.suffix != OUTPUT_SUFFIX:
        return False
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        locks.hold(file, wait_s=0)
    except locks.LockTimeout:
        return True
    finally:
        os.close(file)
    return False


def _measure_temporary(session: Path) -> list[LeftoverOutput]:
    """The temporary files of a session as one unit, as new as the newest of them."""
    top = session / TEMPORARY
    if not top.is_dir() or top.is_symlink():
        return []
    size, newest = 0, 0.0
    # By names: an open iterator in a thread at exit would cause a warning.
    places = [str(session), str(top)]
    while places:
        place = places.pop()
        with suppress(OSError):
            status = os.lstat(place)
            newest = max(newest, status.st_mtime)
            if not S_ISDIR(status.st_mode):
                size += status.st_size
            elif place != str(session):
                places += [f"{place}/{name}" for name in os.listdir(place)]
    return [LeftoverOutput(newest, size, top, TEMPORARY_SPARED_S)]
