"""Save the state of own tools after successful calls; restore it after failures."""

from collections.abc import Awaitable, Callable

import msgspec

from handaxe.contract.result import ToolResult
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.prepare import PreparedCall
from handaxe.session.own_state import OwnState, Snapshot


async def run_with_state(
    run: Callable[[], Awaitable[ToolResult]], prepared: PreparedCall, context: PipelineContext
) -> ToolResult:
    """Run a call and save the changed state of its tool.

    Raises:
        TypeError, ValueError: the state cannot be saved.
    """
    store: OwnState = context.ports[OwnState]
    states, call_id = prepared.parsed.tool.states, prepared.parsed.call.id
    before = store.snapshot(states)
    try:
        result = await run()
        saved = store.save(states, call_id) if result.ok else []
    except BaseException:
        _restore(store, before, call_id)
        raise
    if not result.ok:
        _restore(store, before, call_id)
        return result
    if context.redactor and any(context.redactor.redact_value(value) != value for value in saved):
        note = "The state contains a secret, which is not saved; it will be missing after a resume."
        return msgspec.structs.replace(result, notes=(*result.notes, note))
    return result


def _restore(store: OwnState, before: Snapshot, call_id: str) -> None:
    store.restore(before)
    # A call made inside of this one may have saved what holds no longer.
    store.save(before, call_id)
