"""How much disk the output of a session's commands may take, all of it together.

Who keeps output asks here before it writes. What files of other sessions take is the business of
`retention`.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from handaxe.shell.exec.retention import list_outputs


class OutputQuota:
    """The room of one session; files of commands that have ended make way, the oldest first."""

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
        """A command begins to keep its output there."""
        self._open.add(Path(path))

    def leave(self, path: str) -> None:
        """It has ended; its file may make way for others."""
        self._open.discard(Path(path))

    def take(self, wanted: int) -> int:
        """How many of so many bytes may be written; they count as written."""
        if self._used_bytes is None:
            self._used_bytes = sum(left.size_bytes for left in list_outputs(self._directory))
        if self._used_bytes + wanted > self._max_bytes:
            self._used_bytes = self._make_room(wanted)
        granted = max(0, min(wanted, self._max_bytes - self._used_bytes))
        self._used_bytes += granted
        self._on_written(granted)
        return granted

    def _make_room(self, wanted: int) -> int:
        """What is used once old files went; some more than needed, so that this is seldom."""
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
