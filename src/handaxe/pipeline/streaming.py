"""Start calls while the model still talks: the rule of a batch, one call at a time.

A call is read, ordered and on its way as soon as it is added. It runs when it collides with no
unfinished call before it. Results come in the order asked, one for each call, however it ends.
"""

import asyncio
from collections.abc import Callable

from handaxe.contract.call import ToolCall
from handaxe.contract.faults import Deferred, ToolFault
from handaxe.contract.result import ToolResult
from handaxe.pipeline.active_calls import AdmittedCall
from handaxe.pipeline.pipeline import ToolPipeline
from handaxe.pipeline.streaming__arrivals import BatchCalls

OnResult = Callable[[ToolResult], None]


class CallStream:
    """The calls of one message, started as they come in."""

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
        """Whether the session knows a call of this id already."""
        return self._pipeline.has_call(call_id) or any(
            call.id == call_id for call in self._arrivals.calls
        )

    def expect(self, tool_name: str) -> None:
        """The model has begun to ask for this tool; its input is still to come."""
        self._pipeline.expect(tool_name)

    def add(self, call: ToolCall, *, fault: ToolFault | None = None) -> None:
        """Take the next call; with a `fault` it is answered with that and never runs."""
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
        """Wait for all calls; one result each, in the order asked.

        Cancelling the wait cancels no call: `cancel` does, and then this can be awaited again.
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
        ended = await self._pipeline.end_batch(asked, ordered)
        self._ended = [self._noted(result) for result in ended]
        return self._ended

    def cancel(self) -> int:
        """Stop every call that has not ended; how many were reached."""
        return sum(
            self._pipeline.cancel(self._arrivals.calls[position].id)
            for position, task in self._running.items()
            if not task.done()
        )

    async def close(self) -> list[ToolResult]:
        """Stop what still runs and answer every call, without asking any hook."""
        while any(not task.done() for task in self._running.values()):
            self.cancel()
            await asyncio.wait(list(self._running.values()))
        self._settle()
        return [self._results[position] for position in range(len(self))]

    def _settle(self) -> None:
        for position in self._running:
            # A task that somebody killed has closed its call in the log; its answer is here.
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
            if result.code != Deferred.code:
                self._on_result(result)
