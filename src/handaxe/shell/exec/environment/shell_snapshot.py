"""The state of the user's interactive bash, captured once: functions, aliases, PATH.

Reading start-up files for every command would cost a good part of a second each, and what they do
would happen each time. So one interactive bash reads them once and writes down what it then knows.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from handaxe.process.worker import START_TEXT

CAPTURE_S = 10.0
"""Start-up files that take longer are done without."""
MAX_BYTES = 1 << 20

_VARIABLE = "HANDAXE_SNAPSHOT"
# The end of the file is the proof that all of it was written.
_COMPLETE = b"# complete\n"
_CAPTURE = f"""\
exec bash -i -c '
{{
  printf "%s\\0" "$PATH"
  echo shopt -s expand_aliases extglob
  declare -f
  shopt -p extglob
  alias -p
  echo "# complete"
}} >"${_VARIABLE}" 2>/dev/null
exit' >/dev/null 2>&1
"""

Run = Callable[[str, Mapping[str, str], float], Awaitable[None]]


class ShellSnapshot:
    """The file that a shell reads before a command, with what was captured."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._file: int | None = None
        self.path: str | None = None
        """Where that bash finds programs, once it was captured."""
        self._lock = asyncio.Lock()

    async def file(self) -> int:
        """A descriptor of it, captured when it is first asked for."""
        async with self._lock:
            if self._file is None:
                path, sign, known = (await self._captured()).partition(b"\0")
                self.path = os.fsdecode(path) if sign else None
                self._file = _start_file(known)
            return self._file

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    async def _captured(self) -> bytes:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="handaxe-") as directory:
            path = Path(directory) / "snapshot"
            await self._run(_CAPTURE, {_VARIABLE: str(path)}, CAPTURE_S)
            try:
                known = path.read_bytes()
            except OSError:
                return b""
        return known if known.endswith(_COMPLETE) and len(known) <= MAX_BYTES else b""


def _start_file(known: bytes) -> int:
    file = os.memfd_create("handaxe-start", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(file), "wb") as writer:
        # What is ours first: a mistake in the user's part must not cost the directory.
        writer.write(START_TEXT.encode() + known)
    return file
