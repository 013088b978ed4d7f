"""Which programs are run: bash, and others that are the user's own."""

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from handaxe.contract.faults import SetupError
from handaxe.session.workdir import is_inside

_ELSEWHERE = ("/bin", "/usr/bin", "/usr/local/bin")


@lru_cache(maxsize=64)
def bash_program(path: str) -> str:
    """The first bash in `path`, or in the usual places."""
    for directory in (*path.split(os.pathsep), *_ELSEWHERE):
        program = f"{directory}/bash"
        # A relative entry would mean something else in every project.
        if directory.startswith("/") and os.access(program, os.X_OK):
            return program
    raise SetupError("There is no bash on this machine. Install it to run commands.")


def own_program(name: str, path: str, roots: Sequence[str]) -> str | None:
    """The user's own program of a name: one that lies in a project, or leads there, is not."""
    for directory in path.split(os.pathsep):
        program = f"{directory}/{name}"
        if not directory.startswith("/") or not os.access(program, os.X_OK):
            continue
        places = {os.path.normpath(program), os.path.realpath(program)}
        if Path(program).is_file() and not any(
            is_inside(place, root) for place in places for root in roots
        ):
            return program
    return None
