"""A real pseudo-terminal, with somebody who reads and types."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios

from tests.waiting import blocked_until

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")

_START = "from handaxe.__main__ import main; sys.exit(main())"
PATIENT = (
    "-c",
    f"import sys; from handaxe.frontends.cli.repl import repl; repl._TWICE_S = 600; {_START}",
)
"""Here Ctrl-C counts as pressed twice however long somebody took for it."""
HELD = (
    "-c",
    (
        "import os, sys, termios, time\n"
        "flush = termios.tcflush\n"
        "def hold_and_flush(*given):\n"
        "    while os.path.exists('hold'):\n"
        "        time.sleep(0.01)\n"
        "    flush(*given)\n"
        "termios.tcflush = hold_and_flush\n"
        f"{_START}"
    ),
)
"""Here a question gets its last line only when the file `hold` is gone."""


class Terminal:
    """Somebody in front of a terminal."""

    def __init__(self, *words, cwd, columns=80, program=("-m", "handaxe"), **env):
        self.main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, *program, *words],
            stdin=other, stdout=other, stderr=other, cwd=cwd, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
            env={**os.environ, "PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm-256color", **env},
        )  # fmt: skip
        os.close(other)
        self.raw = ""
        self._seen = 0

    @property
    def shown(self) -> str:
        return _CODES.sub("", self.raw)

    def wait_for(self, text: str) -> str:
        """Read until the text appears after what was waited for before."""
        self.wait_for_one(text)
        return self.shown

    def wait_for_one(self, *texts: str) -> str:
        """Read until one of the texts appears after what was waited for before; the text."""

        def find() -> str:
            return next((text for text in texts if text in self.shown[self._seen :]), "")

        def has_come() -> bool:
            if find():
                return True
            if not self._read(0.2) and self.process.poll() is not None:
                raise AssertionError(f"it ended: {self.shown}")
            return bool(find())

        blocked_until(has_come, lambda: self.shown)
        found = find()
        self._seen = self.shown.index(found, self._seen) + len(found)
        return found

    def type(self, keys: str) -> None:
        os.write(self.main, keys.encode())

    def has_ended(self) -> bool:
        """Read what is there; whether the process is gone."""
        return not self._read(0.2) and self.process.poll() is not None

    def end(self) -> int:
        """Read to the end; the exit code."""
        blocked_until(lambda: not self._read(0.1) and self.process.poll() is not None)
        while self._read(0.05):
            pass
        return self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.main)

    def _read(self, limit_s: float) -> bool:
        if not select.select([self.main], [], [], limit_s)[0]:
            return False
        with contextlib.suppress(OSError):
            piece = os.read(self.main, 65536)
            self.raw += piece.decode(errors="replace")
            return bool(piece)
        return False
