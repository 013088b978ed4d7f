"""The program that mounts overlays: bubblewrap, if it is new enough to know them."""

import os
import re
import subprocess
from collections.abc import Sequence
from functools import lru_cache

from handaxe.shell.sandbox.bubblewrap import SYSTEM_PLACES, find_bundled_paths
from handaxe.text.paths import is_inside

OLDEST = (0, 11)


def find_overlay_program(roots: Sequence[str]) -> str | None:
    """A bubblewrap with overlays: the one that came with us, or the system's; never a root's."""
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
