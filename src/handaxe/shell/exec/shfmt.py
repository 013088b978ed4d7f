"""Count the commands of a text with `shfmt`, if it is installed beside handaxe."""

import subprocess
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path

from handaxe.shell.analysis import count_from_shfmt

_TIMEOUT_S = 2.0


@cache
def find_cross_check() -> Callable[[str], int | None] | None:
    """A function that counts commands with shfmt; None if shfmt is not installed.

    Without it, tree-sitter is the only second parser. The function returns None for a text that
    shfmt cannot read.
    """
    # Never a program from `PATH`: one of the project could give any answer.
    program = Path(sysconfig.get_path("scripts"), "shfmt")
    return (lambda text: _count_commands(str(program), text)) if program.exists() else None


def _count_commands(program: str, text: str) -> int | None:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program, the text only on its standard input
            [program, "-ln", "bash", "--to-json"],
            input=text.encode("utf-8", "surrogatepass"),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return count_from_shfmt(done.stdout) if done.returncode == 0 else None
