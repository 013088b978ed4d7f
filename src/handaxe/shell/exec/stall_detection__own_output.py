"""Noticing a command that prints what it reads from the file its own output goes to: `tail -f`.

Nothing else stops such a loop before the limit. Only a process that reads the file and prints to
the command's own pipe counts: one that reads the file and writes elsewhere feeds no loop.
"""

import os
from contextlib import suppress

from handaxe.shell.exec.stall_detection import find_process_family

FIRST_LOOK_BYTES = 1 << 20


class SelfTailDetector:
    """Looks whenever the output has doubled, so that looking costs next to nothing."""

    def __init__(self) -> None:
        self._next_bytes = FIRST_LOOK_BYTES

    def is_loop(self, total_bytes: int, pid: int, path: str, pipe: int) -> bool:
        """Whether a process below `pid` prints to `pipe` what it reads from `path`."""
        if total_bytes < self._next_bytes or not pid:
            return False
        self._next_bytes = 2 * total_bytes
        try:
            file, output = os.stat(path), os.readlink(f"/proc/self/fd/{pipe}")
        except OSError:
            return False
        return any(
            _read_link(f"/proc/{name}/fd/1") == output and _has_file_open(name, file)
            for name, _ in find_process_family(pid)
        )


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _has_file_open(name: str, file: os.stat_result) -> bool:
    """Whether a process has this very file open, under whatever name."""
    with suppress(OSError):
        for entry in os.listdir(f"/proc/{name}/fd"):
            with suppress(OSError):
                if os.path.samestat(os.stat(f"/proc/{name}/fd/{entry}"), file):
                    return True
    return False
