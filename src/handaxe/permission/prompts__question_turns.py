"""Whose question is put next: one at a time, and what somebody waits for comes first."""

import asyncio
import heapq
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class PromptQueue:
    """A queue in which work in the background lets everybody else go before."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._count = 0

    @asynccontextmanager
    async def turn(self, *, in_background: bool) -> AsyncGenerator[None]:
        """Wait for the turn, have it, and pass it on."""
        if self._is_taken:
            await self._wait(in_background=in_background)
        self._is_taken = True
        try:
            yield
        finally:
            self._release()

    async def _wait(self, *, in_background: bool) -> None:
        self._count += 1
        called = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (in_background, self._count, called))
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                # It was called and went away: the turn is the next one's.
                self._release()
            raise

    def _release(self) -> None:
        while self._waiting:
            called = heapq.heappop(self._waiting)[2]
            if not called.done():
                # It stays taken, so that nobody who comes now slips in between.
                called.set_result(None)
                return
        self._is_taken = False
