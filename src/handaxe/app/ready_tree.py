"""The roots are kept for undo before the first command comes, in a session that may run some.

Not here: how that is done (`handaxe.storage.tree_snapshots.preparation`).
"""

import asyncio
from contextlib import suppress

from handaxe.app.companions import Companion, Surroundings
from handaxe.runtime.catalog.catalog import Catalog

START_S = 0.5
"""How long a session is in use before it begins: what came with the start goes first."""
_COMMANDS = ("Bash", "Monitor")


class ReadyTree(Companion):
    """Sees to it that the first command of a session waits for little."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._is_wanted = True
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Future[None] | None = None

    def open(self, catalog: Catalog) -> None:
        """The session is in use: begin in a moment."""
        if self._is_wanted:
            with suppress(RuntimeError):
                # Without a running loop there is nobody to wait in.
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(START_S, self._begin, catalog)

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

    def _begin(self, catalog: Catalog) -> None:
        if catalog.could_offer(*_COMMANDS):
            self._work = asyncio.ensure_future(self._around.checkpoints.prepare())
