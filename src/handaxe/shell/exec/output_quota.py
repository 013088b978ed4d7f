"""The disk quota for the output of a session's commands.

`retention` handles the files of other sessions.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from handaxe.shell.exec.retention import list_outputs


class OutputQuota:
    """The quota of one session; files of ended commands are deleted first, oldest first."""

    def __init__(
        self,
        directory: str,
        max_bytes: int,
        *,
        on_written: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._directory = Path(directory)
        self._max_bytes = max_bytes
        self._on_written = on_written
        self._used_bytes: int | None = None
        self._open: set[Path] = set()

    def enter(self, path: str) -> None:
        """A command starts to save its output there."""
        self._open.add(Path(path))

    def leave(self, path: str) -> None:
        """It has ended; its file may be deleted."""
        self._open.discard(Path(path))

    def take(self, wanted: int) -> int:
        """How many of these bytes may be written; they count as written."""
        if self._used_bytes is None:
            self._used_bytes = sum(left.size_bytes for left in list_outputs(self._directory))
        if self._used_bytes + wanted > self._max_bytes:
            self._used_bytes = self._make_room(wanted)
        granted = max(0, min(wanted, self._max_bytes - self._used_bytes))
        self._used_bytes += granted
        self._on_written(granted)
        return granted

    def _make_room(self, wanted: int) -> int:
        """The usage after deleting old files; deletes more than needed, so that this is rare."""
        found = sorted(list_outputs(self._directory), key=lambda left: left.written_at)
        used = sum(left.size_bytes for left in found)
        enough = self._max_bytes - max(wanted, self._max_bytes // 8)
        for left in found:
            if used <= enough:
                break
            if left.path in self._open:
                continue
            with suppress(OSError):
                left.path.unlink()
                used -= left.size_bytes
        return used
