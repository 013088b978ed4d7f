"""Which ripgrep runs: a system one that is new enough, otherwise the one installed with handaxe.

An `rg` in a working directory never runs, because another program may have put it there.
"""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache, lru_cache

from handaxe.contract.faults.search import RipgrepMissing
from handaxe.text.paths import is_inside

OLDEST = (15, 0)
"""Older versions take ignore files above the searched directory wrongly."""


def require_ripgrep(roots: Sequence[str]) -> str:
    """The path of a ripgrep that can run; raises `RipgrepMissing`."""
    program = find_ripgrep(roots)
    if program is None:
        raise RipgrepMissing(oldest=OLDEST[0])
    return program


def find_ripgrep(roots: Sequence[str], search_path: str | None = None) -> str | None:
    """The path of a ripgrep outside the working directories `roots`, or None."""
    path = os.environ.get("PATH", os.defpath) if search_path is None else search_path
    for directory in path.split(os.pathsep):
        candidate = f"{directory.rstrip('/')}/rg"
        if directory.startswith("/") and _is_outside(candidate, roots) and _is_new(candidate):
            return candidate
    own = (f"{directory}/rg" for directory in dict.fromkeys(_list_script_directories()))
    return next(filter(_is_new, own), None)


@cache
def _list_script_directories() -> tuple[str, ...]:
    """The directories where packages of this interpreter install programs."""
    return sysconfig.get_path("scripts"), os.path.split(sys.executable)[0]


def _is_outside(candidate: str, roots: Sequence[str]) -> bool:
    if not os.access(candidate, os.X_OK):
        return False
    places = (candidate, os.path.realpath(candidate))
    return not any(is_inside(place, root) for place in places for root in roots)


@lru_cache(maxsize=16)
def _is_new(candidate: str) -> bool:
    """Whether a program is a ripgrep that runs and is new enough; asked once per process."""
    try:
        answer = subprocess.run(  # noqa: S603 - an absolute path outside the working directories
            [candidate, "--version"], capture_output=True, timeout=5, check=False, env={}
        )
    except (OSError, subprocess.SubprocessError):
        return False
    found = re.match(rb"ripgrep (\d+)\.(\d+)", answer.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST
