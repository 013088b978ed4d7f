"""Running calls: their ids, their order, how to stop and await them."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from handaxe.contract.call import CURRENT_CALL, CallSlot, ToolCall, find_open_call
from handaxe.contract.context import CallOverError
from handaxe.contract.faults import BadInput, Cancelled, ResultLost, TimedOut, ToolFault
from handaxe.contract.result import ToolResult
from handaxe.pipeline.parse import ParsedCall
from handaxe.session.call_fingerprints import (
    FINGERPRINT_BYTES,
    CallFingerprints,
    compute_fingerprint,
)
from handaxe.text.sanitize import escape_surrogates

Recall = Callable[[str], ToolResult | None]
"""The stored result of a finished call, by id."""


class Claims(Protocol):
    """Ids of calls in a shared session, so that only one process runs each call."""

    def take(self, call_id: str) -> bool:
        """Whether this process may run the call; otherwise another one runs it or has run it."""
        ...

    def release(self, call_id: str) -> None:
        """Release the call after it ended."""
        ...

    def join(self, learn: Callable[[str, str, object], None]) -> None:
        """Report every call that ended, with id, tool and input, to `learn`."""
        ...


class AdmittedCall(msgspec.Struct, frozen=True):
    """A call with its slot in the order, or with an answer that needs no slot."""

    call: ToolCall
    fingerprint: bytes
    slot: CallSlot | None = None
    parsed: ParsedCall | None = None
    answer: ToolResult | None = None
    same_as: str | None = None
    """The id of a running call with the same input."""


class ActiveCall:
    """A running call."""

    __slots__ = (
        "admitted", "began", "done", "fingerprint", "has_started", "interrupt", "is_announced",
        "is_cancelled", "result", "slot", "task",
    )  # fmt: skip

    def __init__(self, fingerprint: bytes) -> None:
        self.fingerprint = fingerprint
        self.slot: CallSlot | None = None
        self.task: asyncio.Task[Any] | None = None
        self.done: asyncio.Future[ToolResult] | None = None
        self.admitted: AdmittedCall | None = None
        self.began = 0.0
        self.result: ToolResult | None = None
        self.is_cancelled = False
        self.has_started = False
        self.is_announced = True
        """Whether the call is in the log; it is not before its turn."""
        self.interrupt = "block"

    def stop(self) -> None:
        """Cancel the call at any stage."""
        if not self.is_cancelled:
            self.is_cancelled = True
            if self.task is not None:
                self.task.cancel()

    def wait(self) -> asyncio.Future[ToolResult]:
        """A future that is done when the call is over; any number of waiters."""
        if self.done is None:
            self.done = asyncio.get_running_loop().create_future()
        return self.done

    def uncancel(self) -> None:
        """Undo this pipeline's own cancellation after it was handled."""
        if self.task is not None:
            self.task.uncancel()


class ActiveCalls(dict[str, ActiveCall]):
    """The running calls, by id."""

    def stop(self, which: Callable[[ActiveCall], bool], call_id: str | None) -> int:
        """Stop one call or all matching calls; return how many."""
        wanted = [
            activity
            for active_id, activity in self.items()
            if (call_id is None or active_id == call_id)
            and not activity.is_cancelled
            and which(activity)
        ]
        slots = [activity.slot for activity in wanted]
        for activity in wanted:
            slot = activity.slot
            # What is stopped inside another one ends with that, which may be in the same task.
            if not (slot and slot.depth and any(o and slot.is_inside(o) for o in slots)):
                activity.stop()
        return len(wanted)

    def list_others(self, here: CallSlot | None) -> list[ActiveCall]:
        """All calls except this one and the calls around it."""
        return [
            activity
            for activity in self.values()
            if here is None
            or activity.slot is None
            or not (activity.slot is here or here.is_inside(activity.slot))
        ]

    @contextmanager
    def enter(self, call_id: str) -> Generator[str]:
        """Mark the running code as this call's tool if it is not yet; yield the tool's name."""
        activity = self.get(call_id)
        if activity is None or activity.slot is None:
            raise CallOverError(f"The call {call_id} is over and can make no further calls.")
        here = find_open_call()
        is_inside = here is not None and here.is_inside(activity.slot)
        outer = CURRENT_CALL.set(here if is_inside else activity.slot)
        parsed = None if activity.admitted is None else activity.admitted.parsed
        try:
            yield activity.slot.call.tool if parsed is None else parsed.tool.name
        finally:
            CURRENT_CALL.reset(outer)


def find_parent(around: CallSlot | None, scheduler: object) -> CallSlot | None:
    """The innermost of these calls that belongs to this scheduler."""
    while around is not None and around.scheduler is not scheduler:
        around = around.parent
    return around


def stop_inner_calls(slot: CallSlot, result: ToolResult) -> None:
    """Cancel calls made inside a stopped call; after other results they continue independently."""
    if result.code in {Cancelled.code, TimedOut.code}:
        for inner in tuple(slot.inner or ()):
            if inner.stop is not None:
                inner.stop()


@contextmanager
def wait_for_call(call: ToolCall, slot: CallSlot) -> Generator[None]:
    """Let the surrounding call wait for another call's result.

    Raises:
        NestedCall: that call waits for the surrounding one, directly or indirectly.
    """
    parent = find_open_call()
    if parent is None:
        yield
        return
    from handaxe.session.call_cycles import refuse_cycle

    waiting = CallSlot(call, slot.effects, slot.order, None, parent)
    waiting.waits = lambda: (slot,)
    parent.inner = [*(parent.inner or ()), waiting]
    try:
        refuse_cycle(waiting)
        yield
    finally:
        parent.inner.remove(waiting)


class CallDeduplicator:
    """The calls that were made, so that none runs twice."""

    def __init__(self, recall: Recall, claims: Claims | None) -> None:
        self._recall = recall
        self._claims = claims
        self._fingerprints = CallFingerprints(FINGERPRINT_BYTES)
        self.keep = self._fingerprints.keep
        """Keep the fingerprint of a call that was made here."""
        if claims is not None:
            claims.join(self.learn)

    def __contains__(self, call_id: str) -> bool:
        return self._fingerprints.get(call_id) is not None

    def learn(self, call_id: str, tool: str, call_input: object) -> None:
        """Record a call of an earlier run of the session, or of another process."""
        self._fingerprints.keep(call_id, compute_fingerprint(tool, call_input))

    def release(self, call_id: str) -> None:
        """Mark a call as over; its result can be requested."""
        if self._claims is not None:
            self._claims.release(call_id)

    def find_answer(
        self, call: ToolCall, fingerprint: bytes, running: ActiveCall | None
    ) -> AdmittedCall | None:
        """The answer for a call id that was used before; None if the call is new."""
        known = self._fingerprints.get(call.id)
        if known is None and running is None:
            if self._claims is None or self._claims.take(call.id):
                return None
            known = self._fingerprints.get(call.id)
        used_for = running.fingerprint if known is None and running is not None else known
        if used_for not in {None, fingerprint}:
            return AdmittedCall(call, fingerprint, answer=_answer_reused(call))
        if running is not None:
            return AdmittedCall(call, fingerprint, same_as=call.id)
        return AdmittedCall(call, fingerprint, answer=self.recall(call))

    def recall(self, call: ToolCall) -> ToolResult:
        """The stored result of a call; it never runs twice."""
        try:
            stored = self._recall(call.id)
            lost = ResultLost(call_id=call.id, reason="it is not in the log")
        except ResultLost as fault:
            stored, lost = None, fault
        return build_fault_result(call, lost) if stored is None else stored


def build_fault_result(call: ToolCall, fault: ToolFault) -> ToolResult:
    """The answer to a call that does not run."""
    return msgspec.structs.replace(
        ToolResult.from_fault(fault), id=call.id, tool=escape_surrogates(call.tool)
    )


def _answer_reused(call: ToolCall) -> ToolResult:
    reason = f"The call id {call.id!r} was already used for another call"
    return build_fault_result(call, BadInput(call.tool, [reason]))
