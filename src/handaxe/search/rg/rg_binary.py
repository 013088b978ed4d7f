"""Where ripgrep is: the one that came with us, or a new enough one of the system.

Never one from a working directory: whatever lies there was put there by somebody else.
"""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from handaxe.text.paths import is_inside

OLDEST = (13, 0)


def find_ripgrep(roots: Sequence[str], search_path: str | None = None) -> str | None:
    """The path of a ripgrep that may be trusted, or None."""
    for directory in dict.fromkeys(_list_script_directories()):
        own = f"{directory}/rg"
        if os.access(own, os.X_OK) and not os.path.isdir(own):
            return own
    path = os.environ.get("PATH", os.defpath) if search_path is None else search_path
    for directory in path.split(os.pathsep):
        candidate = f"{directory.rstrip('/')}/rg"
        if directory.startswith("/") and _is_trusted(candidate, roots) and _is_new(candidate):
            return candidate
    return None


@cache
def _list_script_directories() -> Iterable[str]:
    """Where the installer of this very interpreter puts programs."""
    return sysconfig.get_path("scripts"), os.path.split(sys.executable)[0]


def _is_trusted(candidate: str, roots: Sequence[str]) -> bool:
    if not os.access(candidate, os.X_OK) or os.path.isdir(candidate):
        return False
    places = (candidate, os.path.realpath(candidate))
    return not any(is_inside(place, root) for place in places for root in roots)


@lru_cache(maxsize=16)
def _is_new(candidate: str) -> bool:
    try:
        answer = subprocess.run(  # noqa: S603 - an absolute path outside the working directories
            [candidate, "--version"], capture_output=True, timeout=5, check=False, env={}
        )
    except (OSError, subprocess.SubprocessError):
        return False
    found = re.match(rb"ripgrep (\d+)\.(\d+)", answer.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST
