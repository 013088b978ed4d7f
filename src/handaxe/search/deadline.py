"""When a search has to end: its time is up, or nobody wants it any more."""

import time
from collections.abc import Callable


class SearchCancelled(Exception):
    """Nobody waits for the answer."""


class SearchDeadline:
    """Shared by the thread that searches and the task that waits for it."""

    __slots__ = ("_ends_at", "_on_cancel", "is_cancelled")

    def __init__(self, timeout_s: float) -> None:
        self._ends_at = time.monotonic() + timeout_s
        self._on_cancel: Callable[[], None] | None = None
        self.is_cancelled = False

    def get_remaining_s(self) -> float:
        """Seconds that remain; raises if the search was cancelled."""
        if self.is_cancelled:
            raise SearchCancelled
        return self._ends_at - time.monotonic()

    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.get_remaining_s() <= 0

    def part(self, at_most_s: float) -> float:
        """When a piece of work has to end that may take only a part of the time."""
        return min(self._ends_at, time.monotonic() + at_most_s)

    def cancel(self) -> None:
        """End the search; safe from any thread, at any moment."""
        self.is_cancelled = True
        if (stop := self._on_cancel) is not None:
            stop()

    def on_cancel(self, stop: Callable[[], None] | None) -> None:
        """What to do the moment the search is cancelled."""
        self._on_cancel = stop
        if stop is not None and self.is_cancelled:
            stop()
