"""Calls that changed something, noted beside the journal once their records are on the device.

What is noted here and stands neither in the journal nor among the pruned calls was taken away.
"""

import contextlib
from pathlib import Path

import msgspec

from handaxe.disk.append_log import LineLog, scan
from handaxe.disk.errors import DiskFault
from handaxe.undo.journal_files.records import Record, has_changes
from handaxe.undo.journal_files.records__layout import ENDED_NAME


class EndedCall(msgspec.Struct, frozen=True):
    """A call that changed something, and when it ended."""

    call_id: str
    at: float


class EndedCalls:
    """Collects calls until their records are durable, then writes them down."""

    def __init__(self, directory: Path) -> None:
        self._log = LineLog(directory / ENDED_NAME)
        self._waiting: list[EndedCall] = []

    def expect(self, record: Record) -> None:
        """A record was written that is not durable yet."""
        if has_changes(record):
            self._waiting.append(EndedCall(record.call_id, record.at))

    def take(self) -> list[EndedCall]:
        """The calls whose records a sync from here on makes durable."""
        taken, self._waiting = self._waiting, []
        return taken

    def note(self, calls: list[EndedCall]) -> None:
        """Write down calls whose records are durable."""
        # The journal has the call; without this note only a later loss of it goes unnoticed.
        with contextlib.suppress(DiskFault, OSError):
            self._log.extend([msgspec.json.encode(call) for call in calls])

    def close(self) -> None:
        """Let go of the file."""
        self._log.close()


def read_ended(directory: Path) -> list[EndedCall]:
    """The calls that were noted, in the order in which they ended."""
    path = directory / ENDED_NAME
    if not path.exists():
        return []
    noted: list[EndedCall] = []
    for line in scan(path):
        with contextlib.suppress(msgspec.MsgspecError):
            noted.append(msgspec.json.decode(line.payload, type=EndedCall))
    return noted
