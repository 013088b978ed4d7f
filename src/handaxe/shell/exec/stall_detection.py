"""Detect a program that waits for input.

A command has no terminal and its standard input is empty. But a program can open its own terminal,
and some, such as vim, read from where they write. A command counts as waiting if it has been silent
for a while and none of its processes is busy. In addition, its last line must look like a question,
or a process must read from its own output.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

SILENT_S = 2.0
"""The required time without output."""

_QUESTION = (
    r"(?i)[:?>\])…][\"' ]*$|\b(?:password|passphrase|y/n|yes/no|continue|press|enter|login)\b"
)
_RECHECK_S = 1.0
_RARELY_S = 60.0
_SHOWN_CHARS = 200
_NO_PROMPT = "(no prompt)"


class StdinWaitDetector:
    """Detects whether one command waits for input."""

    def __init__(self) -> None:
        self._spoke_at = time.monotonic()
        self._looked_at = 0.0
        self._pause_s = _RECHECK_S
        self._work = -1
        self._is_asleep = False
        self._reads_output = False

    def note_output(self) -> None:
        """Record new output."""
        self._spoke_at = time.monotonic()
        self._pause_s = _RECHECK_S

    def find_waiting_line(
        self, last_line: Callable[[], str | None], pid: int, output: int
    ) -> str | None:
        """The question that the command seems to wait for; `output` is its pipe."""
        now = time.monotonic()
        if now - self._spoke_at < SILENT_S or not pid:
            return None
        line = last_line()
        is_question = line is not None and re.search(_QUESTION, line) is not None
        may_wait = is_question or self._reads_output
        if now - self._looked_at > (_RECHECK_S if may_wait else self._pause_s):
            self._looked_at = now
            # Most that are silent are at work, for a long time.
            self._pause_s = min(self._pause_s * 2, _RARELY_S)
            self._look(pid, f"pipe:[{os.fstat(output).st_ino}]" if output >= 0 else "")
        is_waiting = self._is_asleep and (is_question or self._reads_output)
        return (line or _NO_PROMPT)[-_SHOWN_CHARS:] if is_waiting else None

    def _look(self, pid: int, output: str) -> None:
        """Whether all its processes are idle since the last check."""
        before, self._work = self._work, 0
        is_idle, self._reads_output = True, False
        for name, fields in find_process_tree(pid):
            self._work += int(fields[11]) + int(fields[12])
            is_idle = is_idle and fields[0] not in {b"R", b"D"}
            self._reads_output = self._reads_output or _read_stdin_target(name) == output
        self._is_asleep = is_idle and before in {-1, self._work}


def find_process_tree(pid: int) -> Iterator[tuple[str, list[bytes]]]:
    """The processes of its session, and their descendants in other sessions."""
    found = {name: _stat_fields(name) for name in os.listdir("/proc") if name.isdigit()}
    known = {pid}
    # A process is mostly older than its children, and numbers mostly grow.
    for name, fields in found.items():
        if fields is not None and (
            int(name) == pid or int(fields[1]) in known or int(fields[3]) == pid
        ):
            known.add(int(name))
            yield name, fields


def _read_stdin_target(name: str) -> str:
    try:
        return os.readlink(f"/proc/{name}/fd/0")
    except OSError:
        return "nothing that is visible"


def _stat_fields(name: str) -> list[bytes] | None:
    try:
        return Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None


FIRST_LOOK_BYTES = 1 << 20


class SelfTailDetector:
    """Checks whenever the output has doubled, so that checks are cheap."""

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
            for name, _ in find_process_tree(pid)
        )


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _has_file_open(name: str, file: os.stat_result) -> bool:
    """Whether a process has this file open, under any name."""
    with suppress(OSError):
        for entry in os.listdir(f"/proc/{name}/fd"):
            with suppress(OSError):
                if os.path.samestat(os.stat(f"/proc/{name}/fd/{entry}"), file):
                    return True
    return False
