"""Writing to a device that may need any time, and what a cancelled call says of it."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from handaxe.contract.cancellation import CancelledWithResult
from handaxe.contract.faults import Cancelled
from handaxe.contract.result import ToolResult
from handaxe.disk.threads import ThreadWork, start_in_thread

GRACE_S = 0.1
"""So long a cancelled write may take to end; then its call is answered while it goes on."""

Unfinished = list[ThreadWork[Any]]
"""Writes that go on although their calls were cancelled."""

T = TypeVar("T")


async def write_in_thread(path: str, work: Callable[[], T], unfinished: Unfinished) -> T:
    """Do work that writes; cancelled, it goes on to its end and is added to `unfinished`."""
    job = start_in_thread(work)
    try:
        return await job.result
    except asyncio.CancelledError:
        try:
            if await job.wait(GRACE_S):
                raise
        finally:
            if not job.is_over:
                unfinished.append(job)
        cut_off = ToolResult.from_fault(Cancelled(started=True, writing=path))
        raise CancelledWithResult(cut_off) from None
