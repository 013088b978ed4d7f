"""The `/tmp` of a dry run: the existing temporary files, writable without effect.

An overlay cannot cover a directory with other mounts inside, and any user may have mounted
something below `/tmp`. Then its parts are shown one by one, without those mounts.
"""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from handaxe.contract.readable_files import is_below
from handaxe.shell.sandbox.bubblewrap import SYSTEM_PLACES, find_bundled_paths
from handaxe.text.paths import is_inside

_TEMP = "/tmp"  # noqa: S108 - the command's own view of it
_MOUNTS = Path("/proc/self/mountinfo")
_MOST_ENTRIES = 100
"""Each directory is its own mount, which takes a millisecond or two."""
_MOST_COPIED_BYTES = 1 << 20
_ESCAPE = re.compile(rb"\\([0-7]{3})")


def find_mounts(directory: str) -> list[str]:
    """Where other file systems are mounted below a directory."""
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return []
    places = (_unescape(line.split(b" ")[4]) for line in lines)
    return sorted({place for place in places if place != directory and is_below(place, directory)})


def build_temp_options(roots: Sequence[str], place: str) -> list[str]:
    """The bubblewrap options for `/tmp`; copies of its files are put into `place`."""
    if any(is_below(_TEMP, root) for root in roots):
        # The overlay of that root covers it already.
        return []
    mounts = find_mounts(_TEMP)
    if not mounts:
        return ["--overlay-src", _TEMP, "--tmp-overlay", _TEMP]
    shown = f"{place}/temp"
    Path(shown).mkdir(mode=0o700)
    shutil.copymode(_TEMP, shown)
    options = ["--bind", shown, _TEMP]
    for entry in _list_newest_entries():
        is_mixed = any(is_below(mount, entry.path) for mount in mounts)
        if not is_mixed and not is_below(place, entry.path):
            options += _show(entry, shown)
    return options


def _list_newest_entries() -> list[os.DirEntry[str]]:
    with os.scandir(_TEMP) as entries:
        found = [(_read_mtime(entry), entry) for entry in entries]
    found.sort(key=lambda item: item[0], reverse=True)
    return [entry for _, entry in found[:_MOST_ENTRIES]]


def _read_mtime(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _show(entry: os.DirEntry[str], shown: str) -> list[str]:
    """Copy small entries, and return the options for others."""
    # What went away meanwhile, or may not be read, is not shown.
    with contextlib.suppress(OSError):
        if entry.is_dir(follow_symlinks=False):
            readable = os.access(entry.path, os.R_OK | os.X_OK)
            return ["--overlay-src", entry.path, "--tmp-overlay", entry.path] if readable else []
        if entry.is_symlink() or (entry.is_file() and entry.stat().st_size <= _MOST_COPIED_BYTES):
            shutil.copy2(entry.path, f"{shown}/{entry.name}", follow_symlinks=False)
        elif entry.is_file():
            return ["--ro-bind-try", entry.path, entry.path]
    return []


def _unescape(path: bytes) -> str:
    """Decode the octal escapes in the kernel's list of mounts."""
    return os.fsdecode(_ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), path))


OLDEST = (0, 11)


def find_overlay_program(roots: Sequence[str]) -> str | None:
    """A bubblewrap with overlay support: the bundled or the system's; never a root's."""
    for place in (*find_bundled_paths(), *SYSTEM_PLACES):
        real = os.path.realpath(place)
        is_foreign = any(is_inside(real, root) for root in roots)
        if os.access(real, os.X_OK) and not is_foreign and _has_overlays(real):
            return real
    return None


@lru_cache(maxsize=8)
def _has_overlays(program: str) -> bool:
    try:
        answer = subprocess.run(  # noqa: S603 - an absolute path outside the working directories
            [program, "--version"], capture_output=True, timeout=5, check=False, env={}
        )
    except (OSError, subprocess.SubprocessError):
        return False
    found = re.search(rb"(\d+)\.(\d+)", answer.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST
