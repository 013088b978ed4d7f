"""Work that must come to its end once it has begun, away from the event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from handaxe.disk.threads import ThreadWork, start_in_thread

GRACE_S = 0.1
"""So long work may take that nobody waits for any more; then it goes on by itself."""

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run in a thread to its end, even if nobody waits for it any more."""
    job = start_in_thread(work)
    try:
        return await job.result
    except asyncio.CancelledError:
        await job.wait()
        raise


class SlowRecords:
    """Records of cancelled calls for which a slow device is at work still."""

    def __init__(self, writes: list[ThreadWork[Any]]) -> None:
        """`writes` are those that go on although their calls were cancelled."""
        self._writes = writes
        self._recording: dict[str, ThreadWork[None]] = {}
        self._unstarted: set[str] = set()
        self._late: set[asyncio.Future[None]] = set()

    async def record(self, call_id: str, record: Callable[[], None]) -> None:
        """Make the record of a call in a thread; cancelled, it comes to its end all the same."""
        job = self._recording[call_id] = start_in_thread(record)
        try:
            await job.result
        except asyncio.CancelledError:
            self._unstarted.add(call_id)
            await job.wait(GRACE_S)
            raise
        finally:
            if job.is_over:
                del self._recording[call_id]

    def take_unstarted(self, call_id: str) -> bool:
        """Whether a call was cancelled before it could change anything; told once."""
        is_unstarted = call_id in self._unstarted
        self._unstarted.discard(call_id)
        return is_unstarted

    def put_off(self, call_id: str, finish: Callable[[str], Coroutine[Any, Any, object]]) -> bool:
        """Finish the record of a call later, if something goes on; whether it does."""
        going_on = [job for job in self._writes if not job.is_over]
        self._writes.clear()
        if call_id in self._recording:
            going_on.append(self._recording.pop(call_id))
        if going_on:
            late = asyncio.ensure_future(_finish_after(going_on, call_id, finish))
            self._late.add(late)
            late.add_done_callback(self._late.discard)
        return bool(going_on)

    async def settle(self) -> None:
        """Return when everything is recorded."""
        while self._late:
            await asyncio.wait(tuple(self._late))


async def _finish_after(
    going_on: list[ThreadWork[Any]],
    call_id: str,
    finish: Callable[[str], Coroutine[Any, Any, object]],
) -> None:
    for job in going_on:
        await job.wait()
    await finish(call_id)
