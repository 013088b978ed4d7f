"""Noticing a program that waits for somebody to type.

There is nobody: a command has no terminal and its standard input is empty. Programs that bring a
terminal of their own can still ask and wait. The signs together: it has been silent for a while,
its last line has no end and looks like a question, and none of its processes is at work.
"""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

SILENT_S = 2.0
"""How long nothing must have been said."""

_QUESTION = (
    r"(?i)[:?>\])…][\"' ]*$|\b(?:password|passphrase|y/n|yes/no|continue|press|enter|login)\b"
)
_RECHECK_S = 1.0


class PromptWatch:
    """Whether one command waits for input."""

    def __init__(self) -> None:
        self._spoke_at = time.monotonic()
        self._looked_at = 0.0
        self._work = -1
        self._is_asleep = False

    def note_output(self) -> None:
        """Something was said just now."""
        self._spoke_at = time.monotonic()

    def line_waiting(self, last_line: Callable[[], str | None], pid: int) -> str | None:
        """The question it waits for an answer to, if it seems to."""
        now = time.monotonic()
        if now - self._spoke_at < SILENT_S or not pid:
            return None
        line = last_line()
        if line is None or re.search(_QUESTION, line) is None:
            return None
        if now - self._looked_at > _RECHECK_S:
            self._looked_at = now
            self._is_asleep = self._sleeps(pid)
        return line if self._is_asleep else None

    def _sleeps(self, pid: int) -> bool:
        """Whether no process of its session is at work, nor has been since the last look."""
        before, self._work = self._work, 0
        is_idle = True
        for name in os.listdir("/proc"):
            fields = _stat_fields(name) if name.isdigit() else None
            if fields is None or int(fields[3]) != pid:
                continue
            self._work += int(fields[11]) + int(fields[12])
            is_idle = is_idle and fields[0] not in {b"R", b"D"}
        return is_idle and before in {-1, self._work}


def _stat_fields(name: str) -> list[bytes] | None:
    try:
        return Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
