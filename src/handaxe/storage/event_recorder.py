"""What happens in a session goes to its log and to everybody who listens.

The log starts with the first event, so that a session nobody used leaves nothing behind. A log
that cannot be written stops no call, but every result says so.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from pathlib import Path

import msgspec

from handaxe.contract.events import CallDeferred, CallFinished, CallStarted, Event, SessionStarted
from handaxe.contract.result import ToolResult
from handaxe.disk.errors import DiskFault
from handaxe.storage.event_log import EventLog, LoggedEvents
from handaxe.storage.session_lock import SessionLock
from handaxe.storage.sessions import SessionHistory, read_history
from handaxe.text.redact import Redactor

Listener = Callable[[Event], None]


class EventRecorder:
    """The events of one session on their way out."""

    def __init__(
        self,
        log: Path,
        opening: Callable[[], SessionStarted],
        redactor: Redactor | None = None,
        hold: "SessionLock | None" = None,
    ) -> None:
        """`redactor` takes secrets out of what is written.

        `hold` keeps others from the session as soon as there is something in its log.
        """
        self._path = log
        self._hold = hold
        self.log = EventLog(log, opening, redactor)
        self.is_started = self._is_closed = False
        self._opening = opening
        self._listeners: list[tuple[Listener, Context]] = []
        self.shared_calls = _open_shared_calls(hold, self.log, log)
        # Another holder may ask for a call as soon as this one lets go of it.
        self.log.may_write_behind = self.shared_calls is None

    def emit(self, event: Event) -> asyncio.Future[None] | None:
        """Write an event and tell it to the listeners; what comes after the end is nobody's.

        What comes back, if anything, is done when the event is in the log.
        """
        if self._is_closed:
            return None
        written = None
        if not self.is_started:
            self.is_started = True
            if self._hold is not None:
                self._hold.take()
            self.emit(self._opening())
        if not event.at:
            event = msgspec.structs.replace(event, at=time.time())
        try:  # noqa: SIM105 - `suppress` costs more, and this is done twice in every call
            written = self.log.append(event)
        except (DiskFault, OSError):
            # Every result says so: see `noted`.
            pass
        if self._listeners:
            loop = asyncio.get_running_loop()
            for listener, context in self._listeners:
                # What a listener does is no part of the call that it is told of.
                loop.call_soon(listener, event, context=context)
        return written

    def result_of(self, call_id: str) -> ToolResult | None:
        """The stored result of a finished call, also if another holder of the session made it.

        Raises:
            ResultLost: it cannot be had any more, or not yet.
        """
        return (self.shared_calls or self.log).result_of(call_id)

    def history(self) -> SessionHistory:
        """What the log says of the past."""
        return read_history(self._path)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Be told every event soon after it happens; calling what comes back ends it."""
        entry = (listener, copy_context())
        self._listeners.append(entry)
        return lambda: self._listeners.remove(entry)

    def flush(self) -> None:
        """Write every event so far."""
        with suppress(DiskFault, OSError):
            self.log.flush()

    async def close(self) -> None:
        """Make the log durable and let go of it; whoever listens has heard everything then."""
        self._is_closed = True
        with suppress(DiskFault, OSError):
            await self.log.close()
        if self._hold is not None:
            self._hold.release()
        if self._listeners:
            await asyncio.sleep(0)

    def add_log_note(self, result: ToolResult) -> ToolResult:
        """The result, saying so if the log could not take it."""
        return result if self.log.problem is None else append_log_problem(result, self.log.problem)

    def logged(self, result: ToolResult) -> ToolResult:
        """The result, once the log has its call; for whoever is about to hand it out."""
        with suppress(DiskFault, OSError):
            self.log.flush_but_long_look()
        return self.add_log_note(result)


def _open_shared_calls(
    hold: "SessionLock | None", log: EventLog, path: Path
) -> "SharedCalls | None":
    if hold is None or not hold.is_shared:
        return None

    return SharedCalls(hold, log, path)


def append_log_problem(result: ToolResult, problem: str) -> ToolResult:
    """The result with a note on why the log lacks something."""
    note = f"The event log could not be written: {problem}."
    if note in result.notes:
        return result
    return msgspec.structs.replace(result, notes=(*result.notes, note))


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
