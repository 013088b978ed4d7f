"""Wait, unless something happens that is worth waking up for."""

import asyncio
from contextlib import suppress


class Wakeups:
    """Who sleeps, and what wakes them: input of a person, work that ended."""

    def __init__(self) -> None:
        self._sleepers: set[asyncio.Future[str]] = set()

    def wake(self, reason: str) -> int:
        """Wake everybody who sleeps now; how many there were."""
        sleepers = [sleeper for sleeper in self._sleepers if not sleeper.done()]
        for sleeper in sleepers:
            sleeper.set_result(reason)
        return len(sleepers)

    async def sleep(self, duration_s: float) -> str | None:
        """Sleep that long; the reason if something woke us before."""
        sleeper: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._sleepers.add(sleeper)
        try:
            with suppress(TimeoutError):
                return await asyncio.wait_for(sleeper, duration_s)
            return None
        finally:
            self._sleepers.discard(sleeper)
