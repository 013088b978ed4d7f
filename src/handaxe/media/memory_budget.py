"""The memory budget of media child processes, over all sessions of a process.

A child reserves its memory limit. If too little is left it waits, in the order of arrival.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

DEFAULT_BYTES = 1 << 30


class MediaMemory:
    """Reservable bytes; sessions may use event loops of several threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[_Waiter] = deque()
        self.used_bytes = 0

    @asynccontextmanager
    async def reserve(self, wanted_bytes: int, ceiling_bytes: int) -> AsyncGenerator[int]:
        """Wait for memory below the ceiling; yields the amount, at most the ceiling."""
        waiter = _Waiter(min(wanted_bytes, ceiling_bytes), ceiling_bytes)
        with self._guard:
            self._waiting.append(waiter)
            self._serve()
        try:
            await waiter.served
            yield waiter.size_bytes
        finally:
            with self._guard:
                self._leave(waiter)
                self._serve()

    def _serve(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            if self.used_bytes and self.used_bytes + first.size_bytes > first.ceiling_bytes:
                return
            self._waiting.popleft()
            if first.tell():
                first.has_room = True
                self.used_bytes += first.size_bytes

    def _leave(self, waiter: "_Waiter") -> None:
        if waiter.has_room:
            self.used_bytes -= waiter.size_bytes
        elif waiter in self._waiting:
            self._waiting.remove(waiter)


class _Waiter:
    """One child that waits to start."""

    def __init__(self, size_bytes: int, ceiling_bytes: int) -> None:
        self.size_bytes, self.ceiling_bytes = size_bytes, ceiling_bytes
        self.has_room = False
        self._loop = asyncio.get_running_loop()
        self.served: asyncio.Future[None] = self._loop.create_future()

    def tell(self) -> bool:
        """Wake it from any thread; False if its loop is closed."""
        try:
            self._loop.call_soon_threadsafe(self._go_on)
        except RuntimeError:
            return False
        return True

    def _go_on(self) -> None:
        if not self.served.done():
            self.served.set_result(None)


MEDIA_MEMORY = MediaMemory()
"""Shared by all children of this process."""
