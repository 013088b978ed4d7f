"""A second reader of bash: the `shfmt` program that comes with the package, asked per command."""

import subprocess
import sysconfig
from functools import cache
from pathlib import Path

from handaxe.shell.analysis import count_from_shfmt

TIMEOUT_S = 2.0


def count_commands(text: str) -> int | None:
    """How many commands shfmt sees in a text; None if it cannot read it or is not there."""
    program = _find_shfmt()
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program, the text only on its standard input
            [program, "-ln", "bash", "--to-json"],
            input=text.encode("utf-8", "surrogatepass"),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return count_from_shfmt(done.stdout) if done.returncode == 0 else None


@cache
def _find_shfmt() -> str | None:
    # Only the one installed beside us: a program of the project could answer anything.
    found = Path(sysconfig.get_path("scripts")) / "shfmt"
    return str(found) if found.exists() else None
