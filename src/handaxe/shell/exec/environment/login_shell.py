"""Finding programs that only the user's login shell knows, such as freshly installed ones."""

import asyncio
import os
import pwd
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from shlex import quote

SHOWN_PLACES = 8
HOLDS_S = 30.0
"""How long an answer of the login shell is used."""

Ask = Callable[[str, str, Mapping[str, str]], Awaitable[bytes | None]]
"""Runs a text in a directory with an environment; returns its output, or None after a timeout."""

_SHELLS = frozenset({"bash", "zsh", "fish", "ksh", "dash", "sh"})


class LoginShell:
    """Extends the PATH of commands by directories that the user's login shell searches."""

    def __init__(self, env: dict[str, str], ask: Ask) -> None:
        """`env` is the environment of commands; its PATH grows when a program is found."""
        self._env = env
        self._ask = ask
        self._directories: tuple[str, ...] = ()
        self._holds_until = 0.0
        self._lock = asyncio.Lock()

    async def seek(self, program: str) -> str:
        """Look for a program that was not found; returns what to tell the model, if anything."""
        async with self._lock:
            before = self._env.get("PATH", "")
            if _find_program_directory(program, before) is not None:
                # The command had a PATH of its own.
                return ""
            path = _extend_path(before, await self._list_directories())
            place = _find_program_directory(program, path)
            if place is None:
                return _format_not_found(program, path)
            self._env["PATH"] = path
        return (
            f"`{program}` is in {place}, where the user's login shell finds it now; commands find "
            "it there from now on. Run the command again."
        )

    async def _list_directories(self) -> tuple[str, ...]:
        if time.monotonic() >= self._holds_until:
            self._directories = await self._ask_for_path()
            self._holds_until = time.monotonic() + HOLDS_S
        return self._directories

    async def _ask_for_path(self) -> tuple[str, ...]:
        program = self._env.get("SHELL") or _find_user_shell()
        if Path(program).name not in _SHELLS or not os.access(program, os.X_OK):
            return ()
        # Start-up files may print anything, so the answer has a mark that they cannot know.
        mark = f"handaxe-{secrets.token_hex(8)}="
        printing = quote(f"""printf '\\n{mark}%s\\n' "$PATH" """)
        # Interactive too: most people set PATH in files that only such a shell reads.
        text = f"{quote(program)} -l -i -c {printing}"
        if Path(program).name == "bash":
            # A login shell reads other files than the one in a terminal.
            text += f"\n{quote(program)} -i -c {printing}"
        output = await self._ask(text, "/", self._env)
        lines = os.fsdecode(output or b"").splitlines()
        paths = [line.removeprefix(mark) for line in lines if line.startswith(mark)]
        return tuple(place for path in paths for place in path.split(os.pathsep))


def _extend_path(path: str, directories: tuple[str, ...]) -> str:
    """A PATH with the missing directories at its end, so that what was found stays the same."""
    places = path.split(os.pathsep)
    more = dict.fromkeys(place for place in directories if place.startswith("/"))
    return os.pathsep.join([*places, *(place for place in more if place not in places)])


def _find_program_directory(program: str, path: str) -> str | None:
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


def _format_not_found(program: str, path: str) -> str:
    places = list(dict.fromkeys(filter(None, path.split(os.pathsep))))
    shown = ", ".join(places[:SHOWN_PLACES])
    rest = len(places) - SHOWN_PLACES
    more = f" and {rest} more" if rest > 0 else ""
    return f"`{program}` is neither in PATH nor in that of the login shell: {shown}{more}."
