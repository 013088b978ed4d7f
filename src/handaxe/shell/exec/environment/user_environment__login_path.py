"""Where the user's login shell finds programs now: something may have been installed meanwhile."""

import os
import pwd
import time
from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from handaxe.shell.exec.environment.env_probe import Ask

HOLDS_S = 30.0
"""So long an answer is taken for true."""

_SHELLS = frozenset({"bash", "zsh", "fish", "ksh", "dash", "sh"})
_SIGN = "handaxe-path="


class LoginPath:
    """Asks the login shell, and remembers for a while."""

    def __init__(self, env: Mapping[str, str], ask: Ask) -> None:
        self._env = env
        self._ask = ask
        self._found: tuple[str, ...] = ()
        self._holds_until = 0.0

    async def directories(self) -> tuple[str, ...]:
        """The absolute directories of its PATH; none where it cannot be asked."""
        if time.monotonic() >= self._holds_until:
            self._found = await self._asked()
            self._holds_until = time.monotonic() + HOLDS_S
        return self._found

    async def _asked(self) -> tuple[str, ...]:
        program = self._env.get("SHELL") or _find_user_shell()
        if Path(program).name not in _SHELLS or not os.access(program, os.X_OK):
            return ()
        saying = quote(f"""printf '\\n{_SIGN}%s\\n' "$PATH" """)
        # Interactive too: most people set PATH in files that only such a shell reads.
        text = f"{quote(program)} -l -i -c {saying}"
        if Path(program).name == "bash":
            # A login shell reads other files than the one in a terminal.
            text += f"\n{quote(program)} -i -c {saying}"
        said = await self._ask(text, "/", self._env)
        lines = os.fsdecode(said.out).splitlines() if said is not None else []
        paths = [line.removeprefix(_SIGN) for line in lines if line.startswith(_SIGN)]
        return tuple(place for path in paths for place in path.split(os.pathsep))


def extend_path(path: str, directories: tuple[str, ...]) -> str:
    """A PATH with what it lacks at its end: what was found before is found as before."""
    places = path.split(os.pathsep)
    more = dict.fromkeys(place for place in directories if place.startswith("/"))
    return os.pathsep.join([*places, *(place for place in more if place not in places)])


def find_program_directory(program: str, path: str) -> str | None:
    """The directory in which a shell finds a program."""
    for place in path.split(os.pathsep):
        found = f"{place}/{program}"
        if place.startswith("/") and Path(found).is_file() and os.access(found, os.X_OK):
            return place
    return None


def _find_user_shell() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return ""
