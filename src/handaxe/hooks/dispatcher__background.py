"""Hooks that nobody waits for: a few at a time, a bounded number behind them, none for ever."""

import asyncio
from collections.abc import Coroutine
from typing import Any

MAX_RUNNING = 8
MAX_WAITING = 256
GRACE_S = 1.5
"""How long closing waits for what is still under way."""


class BackgroundHooks:
    """The hooks under way that nobody waits for."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(MAX_RUNNING)

    @property
    def is_full(self) -> bool:
        """Whether one more would be too many."""
        return len(self._tasks) >= MAX_RUNNING + MAX_WAITING

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let it run when its turn comes."""
        task = asyncio.get_running_loop().create_task(self._in_turn(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait a moment for what is under way, then end it."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=GRACE_S)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=GRACE_S)

    async def _in_turn(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            async with self._turns:
                await work
        finally:
            # Never started if its turn did not come; closing it keeps Python from complaining.
            work.close()
