"""Which bash runs commands."""

import os
from functools import lru_cache

from handaxe.contract.faults import SetupError

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
