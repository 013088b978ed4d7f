"""Record the events of a session in its log, and pass them to listeners.

The log starts with the first event, so that an unused session leaves nothing behind. A log that
cannot be written stops no call, but every result says so.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from handaxe.contract.events import CallDeferred, CallFinished, CallStarted, Event, SessionStarted
from handaxe.contract.faults import SetupError
from handaxe.contract.result import ToolResult
from handaxe.disk.errors import DiskFault
from handaxe.storage.event_log import EventLog, LoggedEvents
from handaxe.storage.session_lock import SessionLock
from handaxe.storage.sessions import SessionHistory, read_history
from handaxe.text.redact import Redactor

if TYPE_CHECKING:
    from handaxe.storage.listener_queue import ListenerQueue

Listener = Callable[[Event], Awaitable[object] | None]
"""A function, or an async function, that gets events."""


class EventListener:
    """A listener with the context in which it subscribed."""

    def __init__(self, listener: Listener, problems: dict[str, str]) -> None:
        self._listener = listener
        self._name = getattr(listener, "__qualname__", type(listener).__name__)
        self._context = copy_context()
        self._problems = problems
        self.queue: ListenerQueue | None = None
        """Events that an async function has not received yet."""

    def hear(self, event: Event) -> None:
        """Deliver soon: the work of a listener is not a part of the call."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._context.copy().run(self._tell, event)
        else:
            loop.call_soon(self._tell, event, context=self._context)

    def _tell(self, event: Event) -> None:
        try:
            answer = cast("object", self._listener(event))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - also `sys.exit` would end the event loop
            from handaxe.storage.listener_queue import note_failure

            note_failure(self._name, error, self._problems)
            return
        # A plain function may give anything: what it adds to a list, for instance.
        if answer is not None and isinstance(answer, Awaitable):
            from handaxe.storage.listener_queue import ListenerQueue

            if self.queue is None:
                self.queue = ListenerQueue(self._name, self._context, self._problems)
            self.queue.add(event, cast("Awaitable[object]", answer))


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
        self._listeners: list[EventListener] = []
        self._leaving: list[EventListener] = []
        """Removed listeners that must still receive earlier events."""
        self._problems: dict[str, str] = {}
        self.shared_calls = _open_shared_calls(hold, self.log, log)
        # Another holder may ask for a call as soon as this one lets go of it.
        self.log.may_write_behind = self.shared_calls is None

    def emit(self, event: Event) -> asyncio.Future[None] | None:
        """Write an event and pass it to the listeners; events after the end are dropped.

        A returned future is done when the event is in the log.
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
        for listener in self._listeners:
            listener.hear(event)
        return written

    def result_of(self, call_id: str) -> ToolResult | None:
        """The stored result of a finished call, also if another holder of the session made it.

        Raises:
            ResultLost: it cannot be had any more, or not yet.
        """
        return (self.shared_calls or self.log).result_of(call_id)

    def history(self) -> SessionHistory:
        """The past of the session, as the log has it."""
        return read_history(self._path)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Get every event soon after it happens; calling the result ends that.

        An async function is awaited, one event after the other.

        Raises:
            SetupError: it is not a function.
        """
        if not callable(listener):
            raise SetupError(f"subscribe() takes a function or an async function, not {listener!r}")
        entry = EventListener(listener, self._problems)
        self._listeners.append(entry)

        def leave() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)
                busy = [one for one in self._leaving if one.queue and not one.queue.is_empty]
                self._leaving = [*busy, entry]

        return leave

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems of listeners, in words for the user."""
        return tuple(self._problems.values())

    def flush(self) -> None:
        """Write every event so far."""
        with suppress(DiskFault, OSError):
            self.log.flush()

    async def close(self) -> None:
        """Make the log durable and close it, after the listeners got all events."""
        self._is_closed = True
        with suppress(DiskFault, OSError):
            await self.log.close()
        if self._hold is not None:
            self._hold.release()
        if self._listeners or self._leaving:
            await asyncio.sleep(0)
            for one in (*self._listeners, *self._leaving):
                if one.queue is not None:
                    await one.queue.finish()

    def add_log_note(self, result: ToolResult) -> ToolResult:
        """The result, saying so if the log could not take it."""
        return result if self.log.problem is None else append_log_problem(result, self.log.problem)

    def logged(self, result: ToolResult) -> ToolResult:
        """The result, once the log has its call; called before it is returned."""
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
    """One holder's knowledge of all calls, from the common log."""

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
        """Whether this holder must make the call. Otherwise another holder does, or did."""
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
        """The stored result of a finished call of any process."""
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
