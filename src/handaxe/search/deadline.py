"""The deadline of a search, and its cancellation."""

import time
from collections.abc import Callable


class SearchCancelled(Exception):
    """The caller cancelled the search."""


class SearchDeadline:
    """Shared by the thread that searches and the task that waits for it."""

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
        """The end of a step that may take only a part of the time."""
        return min(self._ends_at, time.monotonic() + at_most_s)

    def cancel(self) -> None:
        """Cancel the search; any thread may do so at any time."""
        self.is_cancelled = True
        if (stop := self._on_cancel) is not None:
            stop()

    def on_cancel(self, stop: Callable[[], None] | None) -> None:
        """Call `stop` as soon as the search is cancelled."""
        self._on_cancel = stop
        if stop is not None and self.is_cancelled:
            stop()
