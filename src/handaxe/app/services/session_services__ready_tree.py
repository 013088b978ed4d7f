"""The roots are kept for undo before the first command comes, in a session that may run some.

Not here: how that is done (`handaxe.undo.snapshot.prewarm`).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from handaxe.app.services.service import SessionContext, SessionService
from handaxe.catalog.catalog import Catalog

START_S = 0.5
"""How long nobody calls before it begins: calls that follow each other are not slowed down."""
_COMMANDS = ("Bash", "Monitor")


class SnapshotPrewarm(SessionService):
    """Sees to it that the first command of a session waits for little."""

    def __init__(self, around: SessionContext, times_used: Callable[[], int]) -> None:
        self._around = around
        self._times_used = times_used
        self._used_before = 0
        self._is_wanted = True
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Future[None] | None = None

    def open(self, catalog: Catalog) -> None:
        """The session is in use: begin when it is not for a moment."""
        with suppress(RuntimeError):
            # Without a running loop there is nobody to wait in.
            self._wait(catalog)

    def leave(self) -> None:
        """There is no need for it."""
        self._is_wanted = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        """Begin nothing any more; what has begun ends with the undo record."""
        self.leave()
        if self._work is not None:
            await asyncio.wait([self._work])

    def begin_if_idle(self, catalog: Catalog) -> None:
        """Begin, unless a call runs or came since the last look; then look again in a moment."""
        if self._around.is_busy() or self._times_used() != self._used_before:
            self._wait(catalog)
        elif catalog.can_offer(*_COMMANDS):
            self._work = asyncio.ensure_future(self._around.checkpoints.prepare())

    def _wait(self, catalog: Catalog) -> None:
        if self._is_wanted:
            self._used_before = self._times_used()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(START_S, self.begin_if_idle, catalog)
