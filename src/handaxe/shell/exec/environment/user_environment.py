"""The environment of a session's commands: the user's, as it is where and when a command runs."""

import asyncio
import os
import pwd
import time
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from handaxe.shell.exec.environment.command_environment import EnvironmentSync
from handaxe.shell.exec.environment.env_probe import Ask

if TYPE_CHECKING:
    from handaxe.shell.exec.environment.env_activation import Activation


SHOWN_PLACES = 8


class UserEnvironment:
    """What commands find, by directory."""

    def __init__(
        self,
        env: Mapping[str, str],
        following: EnvironmentSync | None = None,
        ask: Ask | None = None,
    ) -> None:
        self._env = dict(env)
        self._ask = ask if following is not None else None
        self._activation = _create_activation(following, ask)
        self._login: LoginPath | None = None
        self._lock = asyncio.Lock()

    @property
    def path(self) -> str:
        """Where programs are found, in whichever directory."""
        return self._env.get("PATH", "")

    @path.setter
    def path(self, path: str) -> None:
        self._env["PATH"] = path

    async def at(self, directory: str) -> Mapping[str, str]:
        """What commands in a directory find."""
        if self._activation is None:
            return self._env
        return await self._activation.at(directory, self._env)

    @property
    def removed(self) -> tuple[str, ...]:
        """Variables that a directory would have had, were their names not those of secrets."""
        return () if self._activation is None else tuple(sorted(self._activation.removed))

    def take_notes(self) -> tuple[str, ...]:
        """What the model should know of it, each thing once."""
        return () if self._activation is None else self._activation.take_notes()

    async def seek(self, program: str, directory: str) -> str:
        """Look again for a program that was not found, where the login shell looks; what to tell.

        If it is there, commands find it from now on.
        """
        if self._ask is None:
            return ""

        async with self._lock:
            if self._login is None:
                self._login = LoginPath(self._env, self._ask)
            before = (await self.at(directory)).get("PATH", "")
            if find_program_directory(program, before) is not None:
                # Somebody else did not find it, with a PATH of their own.
                return ""
            path = extend_path(self.path, await self._login.directories())
            place = find_program_directory(program, path)
            if place is None:
                more = tuple(path.split(os.pathsep))
                return _format_not_found(program, extend_path(before, more).split(os.pathsep))
            self.path = path
        return (
            f"`{program}` is in {place}, where the user's login shell finds it now; commands find "
            "it there from now on. Run the command again."
        )


def _create_activation(following: EnvironmentSync | None, ask: Ask | None) -> "Activation | None":
    if following is None or ask is None or not following.activators:
        return None
    from handaxe.shell.exec.environment.env_activation import Activation

    return Activation(following, ask)


def _format_not_found(program: str, path: list[str]) -> str:
    places = list(dict.fromkeys(filter(None, path)))
    shown = ", ".join(places[:SHOWN_PLACES])
    rest = len(places) - SHOWN_PLACES
    more = f" and {rest} more" if rest > 0 else ""
    return f"`{program}` is neither in PATH nor in that of the login shell: {shown}{more}."


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
