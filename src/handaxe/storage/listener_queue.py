"""Events on their way to an async listener: in order, one at a time, beside the session's work."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context

from handaxe.contract.cancellation import is_external_stop
from handaxe.contract.events import CallProgress, Event
from handaxe.contract.faults import describe_error

MOST_WAITING = 1000
"""Up to this many events wait for one listener."""
STUCK_S = 10.0
"""Seconds that a closing session waits for a listener to handle one event."""
TIDY_S = 0.5

_log = logging.getLogger("handaxe.listeners")


def note_failure(name: str, error: BaseException, problems: dict[str, str]) -> None:
    """Remember the first failure of a listener among what is wrong."""
    fact = f"{name} failed"
    if fact not in problems:
        why = f"{type(error).__name__}: {describe_error(error)}".rstrip(": ")
        told = f"The listener {name} failed ({why}). It still gets the next events."
        problems[fact] = told
        _log.warning("%s", told, exc_info=error)


class ListenerQueue:
    """Events that one async listener has not received yet."""

    def __init__(self, name: str, context: Context, problems: dict[str, str]) -> None:
        self._name = name
        self._context = context
        self._problems = problems
        self._waiting: deque[tuple[Event, Awaitable[object]]] = deque()
        self._work: asyncio.Task[None] | None = None
        self._heard = self._left_out = self._left_out_progress = 0
        self._is_cut_off = False

    @property
    def is_empty(self) -> bool:
        """Whether everything has been heard."""
        return not self._waiting and self._work is None

    def add(self, event: Event, hearing: Awaitable[object]) -> None:
        """Let the listener hear an event when it has heard those before."""
        self._waiting.append((event, hearing))
        if len(self._waiting) > MOST_WAITING:
            self._leave_one_out()
        self._start()

    async def finish(self) -> None:
        """Wait until all events are delivered, while there is progress."""
        self._start()
        work = self._work
        if work is None or work is asyncio.current_task():
            # It is the listener itself that closes the session.
            return
        while not work.done():
            before = self._heard
            await asyncio.wait((work,), timeout=STUCK_S)
            if self._heard == before and not work.done():
                self._is_cut_off = True
                work.cancel()
                await asyncio.wait((work,), timeout=TIDY_S)
                break

    def _start(self) -> None:
        if self._work is not None or not self._waiting:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # With the next event, or at the end.
            return
        self._work = loop.create_task(self._deliver(), context=self._context)

    async def _deliver(self) -> None:
        home, is_over = asyncio.current_task(), False
        try:
            while self._waiting and not self._is_cut_off:
                _, hearing = self._waiting.popleft()
                try:
                    await hearing
                except BaseException as error:
                    # What listeners do is no part of the session, also if they want to end it.
                    if is_external_stop(error, home):
                        raise
                    note_failure(self._name, error, self._problems)
                self._heard += 1
            is_over = not self._is_cut_off
        finally:
            self._work = None
            if not is_over:
                self._give_up()

    def _leave_one_out(self) -> None:
        """Make room: progress goes first, the oldest of it."""
        kinds = (isinstance(event, CallProgress) for event, _ in self._waiting)
        position = next((index for index, is_progress in enumerate(kinds) if is_progress), None)
        if position is None:
            self._left_out += 1
        else:
            self._left_out_progress += 1
        _, hearing = self._waiting[position or 0]
        del self._waiting[position or 0]
        _discard(hearing)
        missed = f"{self._left_out_progress:,} progress events and {self._left_out:,} others"
        told = (
            f"The listener {self._name} is too slow: it missed {missed}, because "
            f"{MOST_WAITING:,} events waited for it. Let it take less time for each."
        )
        self._note_loss("missed events", told)

    def _give_up(self) -> None:
        number = len(self._waiting) + 1
        while self._waiting:
            _discard(self._waiting.popleft()[1])
        told = (
            f"The listener {self._name} was stopped with {number:,} of its events: it did not "
            "finish when the session closed."
        )
        self._note_loss("was stopped", told)

    def _note_loss(self, what: str, told: str) -> None:
        """Log it the first time; a later number takes the place of an earlier one."""
        fact = f"{self._name} {what}"
        if fact not in self._problems:
            _log.warning("%s", told)
        self._problems[fact] = told


def _discard(hearing: Awaitable[object]) -> None:
    """Drop undelivered events at the end."""
    let_go: Callable[[], object] | None
    let_go = getattr(hearing, "cancel", None) or getattr(hearing, "close", None)
    if let_go is not None:
        let_go()
