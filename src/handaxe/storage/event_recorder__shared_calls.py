"""The calls of a session that several have open: each is made once, by whoever takes it first."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from handaxe.contract.events import CallDeferred, CallFinished, CallStarted
from handaxe.contract.result import ToolResult
from handaxe.disk.errors import DiskFault
from handaxe.storage.event_log import EventLog, LoggedEvents
from handaxe.storage.session_lock import SessionLock

Learn = Callable[[str, str, object], None]
"""Told of a finished call: its id, its tool, its input."""


class SharedCalls:
    """What one holder knows of the calls of all, by what they write to the common log."""

    def __init__(self, hold: SessionLock, log: EventLog, path: Path) -> None:
        self._hold = hold
        self._log = log
        self._path = path
        self._learn: Learn = lambda _id, _tool, _input: None
        self._begun: dict[str, CallStarted] = {}
        """Calls of any holder without an end in the log so far."""
        self._read_to = 0

    def join(self, learn: Learn) -> None:
        """Tell this one of every call that ended."""
        self._learn = learn

    def take(self, call_id: str) -> bool:
        """Whether the call is to be made here; else it was made, or another holder makes it."""
        is_taken = self._hold.take_call(call_id)
        # Others write down how a call ended before they let go of it.
        self._read_on()
        is_over = call_id in self._begun or self._log.has_result(call_id)
        if is_taken and not is_over:
            return True
        if is_taken:
            self._hold.release_call(call_id)
        if not self._log.has_result(call_id):
            self._log.elsewhere |= {call_id}
        return False

    def release(self, call_id: str) -> None:
        """The call is over, and so is its record."""
        with suppress(DiskFault, OSError):
            self._log.flush()
        self._hold.release_call(call_id)

    def result_of(self, call_id: str) -> ToolResult | None:
        """The stored result of a finished call, whoever made it."""
        self._read_on()
        return self._log.result_of(call_id)

    def _read_on(self) -> None:
        try:
            if self._path.stat().st_size < self._read_to:
                # It was cut short, or begun anew.
                self._read_to = 0
            events = LoggedEvents(self._path, self._read_to)
            for offset, event in events:
                self._take_note(offset, event)
        except OSError:
            return
        self._read_to = events.end

    def _take_note(self, offset: int, event: object) -> None:
        if isinstance(event, CallStarted):
            self._begun[event.call_id] = event
        elif isinstance(event, CallDeferred):
            # It never ran, so its id is free for the time that it does.
            self._begun.pop(event.call_id, None)
        elif isinstance(event, CallFinished):
            started = self._begun.pop(event.call_id, None)
            self._log.replay(event.call_id, offset)
            if started is not None:
                self._learn(event.call_id, started.tool, started.input)
