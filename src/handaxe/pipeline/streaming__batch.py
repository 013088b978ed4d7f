"""One message, many calls: side by side where they do not collide, answers in the order asked."""

import asyncio
from collections.abc import Sequence

from handaxe.contract.call import ToolCall
from handaxe.contract.result import ToolResult
from handaxe.pipeline.pipeline import CLOSE_S, ToolPipeline
from handaxe.pipeline.streaming__arrivals import BatchCalls


async def run_batch(
    calls: Sequence[ToolCall], pipeline: ToolPipeline, *, stop_on_error: bool = False
) -> list[ToolResult]:
    """One result per call, in the order asked; one failure stops no sibling unless told to."""
    arrivals = BatchCalls(pipeline)
    for call in calls:
        arrivals.add(call)
    admitted = arrivals.admitted
    results: dict[int, ToolResult] = {}

    async def conduct(position: int) -> None:
        result = results[position] = await pipeline.run_admitted(admitted[position])
        if stop_on_error and not result.ok:
            for later in list(admitted.values()):
                pipeline.withdraw(later.call.id)

    try:
        if len(admitted) == 1:
            await conduct(next(iter(admitted)))
        else:
            await _wait_for_all([asyncio.ensure_future(conduct(position)) for position in admitted])
    finally:
        # However this ends, every call gets its result.
        for position, call in admitted.items():
            results.setdefault(position, pipeline.abandon(call))
        for position, original in arrivals.twin_of.items():
            results[position] = pipeline.repeat_result(calls[position], results[original])
    asked = [
        (call, admitted[position].parsed if position in admitted else None)
        for position, call in enumerate(calls)
    ]
    return await pipeline.end_batch(asked, [results[position] for position in range(len(calls))])


async def _wait_for_all(calls: list[asyncio.Task[None]]) -> None:
    """Wait for every call; whoever stops the wait stops them, and sees how they end."""
    try:
        await asyncio.gather(*calls)
    except asyncio.CancelledError:
        # The first that was stopped ends the gathering, while others still put things in order.
        await asyncio.wait(calls, timeout=CLOSE_S)
        raise
