"""Start calls while the model still streams, one at a time, by the rule of a batch.

A call is parsed and ordered when it is added. It runs when it conflicts with no unfinished call
before it. Results come in the requested order, one per call.
"""

import asyncio
from collections.abc import Callable, Sequence

from handaxe.contract.call import CallSlot, ToolCall
from handaxe.contract.faults import LEFT_OPEN, ToolFault
from handaxe.contract.result import ToolResult
from handaxe.pipeline.active_calls import AdmittedCall
from handaxe.pipeline.pipeline import CLOSE_S, ToolPipeline
from handaxe.session.call_fingerprints import compute_fingerprint

OnResult = Callable[[ToolResult], None]


class CallStream:
    """The calls of one message, started as they arrive."""

    def __init__(
        self,
        pipeline: ToolPipeline,
        *,
        on_result: OnResult = lambda _: None,
        noted: Callable[[ToolResult], ToolResult] = lambda result: result,
    ) -> None:
        self._pipeline = pipeline
        self._arrivals = BatchCalls(pipeline)
        self._on_result = on_result
        self._noted = noted
        self._running: dict[int, asyncio.Task[ToolResult]] = {}
        self._results: dict[int, ToolResult] = {}
        self._ended: list[ToolResult] | None = None

    def __len__(self) -> int:
        return len(self._arrivals.calls)

    def is_taken(self, call_id: str) -> bool:
        """Whether the session already has a call with this id."""
        return self._pipeline.has_call(call_id) or any(
            call.id == call_id for call in self._arrivals.calls
        )

    def expect(self, tool_name: str) -> None:
        """Prepare for a call of this tool, whose input is still being streamed."""
        self._pipeline.expect(tool_name)

    def add(self, call: ToolCall, *, fault: ToolFault | None = None) -> None:
        """Add the next call; with a `fault` it gets that answer and never runs."""
        position = len(self)
        if fault is not None:
            admitted: AdmittedCall | None = self._pipeline.refuse(call, fault)
            self._arrivals.add_answered(admitted)
        else:
            admitted = self._arrivals.add(call)
        if admitted is None:
            return
        if admitted.answer is not None:
            self._keep(position, admitted.answer)
            return
        task = asyncio.ensure_future(self._pipeline.run_admitted(admitted))
        self._running[position] = task
        task.add_done_callback(lambda done: self._done(position, done))

    async def results(self) -> list[ToolResult]:
        """Wait for all calls; one result each, in the requested order.

        Cancelling the wait cancels no call; use `cancel`, then await this again.
        """
        if self._ended is not None:
            return self._ended
        if self._running:
            await asyncio.wait(list(self._running.values()))
        self._settle()
        admitted = self._arrivals.admitted
        asked = [
            (call, admitted[position].parsed if position in admitted else None)
            for position, call in enumerate(self._arrivals.calls)
        ]
        ordered = [self._results[position] for position in range(len(self))]
        ended = await self._pipeline.batch_hooks.fire(asked, ordered)
        self._ended = [self._noted(result) for result in ended]
        return self._ended

    def cancel(self) -> int:
        """Stop every unfinished call; return how many."""
        return sum(
            self._pipeline.cancel(self._arrivals.calls[position].id)
            for position, task in self._running.items()
            if not task.done()
        )

    async def close(self) -> list[ToolResult]:
        """Stop running calls and answer every call, without running hooks."""
        while any(not task.done() for task in self._running.values()):
            self.cancel()
            await asyncio.wait(list(self._running.values()))
        self._settle()
        return [self._results[position] for position in range(len(self))]

    def _settle(self) -> None:
        for position in self._running:
            # A killed task has closed its call in the log; its answer is here.
            if position not in self._results:
                admitted = self._arrivals.admitted[position]
                self._keep(position, self._pipeline.abandon(admitted))
        for position, original in self._arrivals.twin_of.items():
            if position not in self._results:
                call = self._arrivals.calls[position]
                self._keep(position, self._pipeline.repeat_result(call, self._results[original]))

    def _done(self, position: int, task: asyncio.Task[ToolResult]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._keep(position, task.result())

    def _keep(self, position: int, result: ToolResult) -> None:
        if position not in self._results:
            self._results[position] = result
            if result.code not in LEFT_OPEN:
                self._on_result(result)


class BatchCalls:
    """The calls of a message in order; a repeated read-only call runs once."""

    def __init__(self, pipeline: ToolPipeline) -> None:
        self._pipeline = pipeline
        self._latest: dict[bytes, int] = {}
        self.calls: list[ToolCall] = []
        self.admitted: dict[int, AdmittedCall] = {}
        self.put_off: list[CallSlot] = []
        self.twin_of: dict[int, int] = {}
        """The earlier call that a call repeats, by position."""

    def add(self, call: ToolCall) -> AdmittedCall | None:
        """Add the call; None if an earlier call answers it."""
        position = len(self.calls)
        self.calls.append(call)
        fingerprint = compute_fingerprint(call.tool, call.input)
        original = self._latest.get(fingerprint)
        if original is not None and self.calls[original].id != call.id:
            between = [self.admitted[i] for i in self.admitted if i > original]
            if _would_repeat(self.admitted[original], between):
                self.twin_of[position] = original
                return None
        return self._take(position, self._pipeline.admit(call, fingerprint))

    def add_answered(self, answered: AdmittedCall) -> None:
        """Add a call that has its answer; no other call repeats it."""
        self.calls.append(answered.call)
        self.admitted[len(self.calls) - 1] = answered

    def _take(self, position: int, admitted: AdmittedCall) -> AdmittedCall:
        self.admitted[position] = admitted
        if admitted.slot is not None:
            admitted.slot.put_off = self.put_off
        self._latest[admitted.fingerprint] = position
        return admitted


def _would_repeat(original: AdmittedCall, between: Sequence[AdmittedCall]) -> bool:
    """Whether a call only reads, and no call in between could change its result.

    A repeated change is intended.
    """
    if original.slot is None or not original.slot.is_reader:
        return False
    effects = original.slot.effects
    return not any(call.slot and effects.collides(call.slot.effects) for call in between)


async def run_batch(
    calls: Sequence[ToolCall], pipeline: ToolPipeline, *, stop_on_error: bool = False
) -> list[ToolResult]:
    """One result per call, in the requested order; a failure stops no other call by default."""
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
    return await pipeline.batch_hooks.fire(
        asked, [results[position] for position in range(len(calls))]
    )


async def _wait_for_all(calls: list[asyncio.Task[None]]) -> None:
    """Wait for every call; cancelling the wait cancels them and awaits their end."""
    try:
        await asyncio.gather(*calls)
    except asyncio.CancelledError:
        # The first that was stopped ends the gathering, while others still put things in order.
        await asyncio.wait(calls, timeout=CLOSE_S)
        raise
