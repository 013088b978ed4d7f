"""One message, many calls: side by side where they do not collide, answers in the order asked."""

import asyncio
from collections.abc import Sequence

from handaxe.contract.call import ToolCall
from handaxe.contract.result import ToolResult
from handaxe.runtime.pipeline.execute import Admitted, Pipeline, fingerprint_of


async def run_batch(
    calls: Sequence[ToolCall], pipeline: Pipeline, *, stop_on_error: bool = False
) -> list[ToolResult]:
    """One result per call, in the order asked; one failure stops no sibling unless told to."""
    admitted, twin_of = _admit_all(calls, pipeline)
    results: dict[int, ToolResult] = {}

    async def conduct(position: int) -> None:
        result = results[position] = await pipeline.conduct(admitted[position])
        if stop_on_error and not result.ok:
            for later in list(admitted.values()):
                pipeline.withdraw(later.call.id)

    try:
        if len(admitted) == 1:
            await conduct(next(iter(admitted)))
        else:
            await asyncio.gather(*(conduct(position) for position in admitted))
    finally:
        # However this ends, every call gets its result.
        for position, call in admitted.items():
            results.setdefault(position, pipeline.abandon(call))
        for position, original in twin_of.items():
            results[position] = pipeline.echo(calls[position], results[original])
    asked = [
        (call, admitted[position].parsed if position in admitted else None)
        for position, call in enumerate(calls)
    ]
    return await pipeline.end_batch(asked, [results[position] for position in range(len(calls))])


def _admit_all(
    calls: Sequence[ToolCall], pipeline: Pipeline
) -> tuple[dict[int, Admitted], dict[int, int]]:
    """Every call with its place in the order, and which calls only repeat an earlier one."""
    admitted: dict[int, Admitted] = {}
    twin_of: dict[int, int] = {}
    latest: dict[bytes, int] = {}
    for position, call in enumerate(calls):
        fingerprint = fingerprint_of(call.tool, call.input)
        original = latest.get(fingerprint)
        if original is not None and calls[original].id != call.id:
            between = [admitted[i] for i in admitted if i > original]
            if not _is_disturbed(admitted[original], between):
                twin_of[position] = original
                continue
        admitted[position] = pipeline.admit(call)
        latest[fingerprint] = position
    return admitted, twin_of


def _is_disturbed(original: Admitted, between: Sequence[Admitted]) -> bool:
    """Whether a call in between could change what the original would give now."""
    if original.parsed is None:
        return False
    effects = original.parsed.effects
    return any(call.parsed and effects.collides(call.parsed.effects) for call in between)
