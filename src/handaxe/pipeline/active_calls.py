"""A call on its way: what it is known by, its place in the order, how it is stopped and awaited."""

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
    """The calls of a session that others have open as well: each id is made by one of them."""

    def take(self, call_id: str) -> bool:
        """Whether the call is to be made here; else it was made, or another holder makes it."""
        ...

    def release(self, call_id: str) -> None:
        """The call is over."""
        ...

    def join(self, learn: Callable[[str, str, object], None]) -> None:
        """Tell this one of every call that ended, by its id, its tool and its input."""
        ...


class AdmittedCall(msgspec.Struct, frozen=True):
    """A call with its place in the order, or with the answer that needs no place."""

    call: ToolCall
    fingerprint: bytes
    slot: CallSlot | None = None
    parsed: ParsedCall | None = None
    answer: ToolResult | None = None
    same_as: str | None = None
    """The id of a running call that this one repeats."""


class ActiveCall:
    """A call on its way."""

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
        """Whether the log knows of the call; it does not before the call's turn has come."""
        self.interrupt = "block"

    def stop(self) -> None:
        """Cancel the call, wherever it is."""
        if not self.is_cancelled:
            self.is_cancelled = True
            if self.task is not None:
                self.task.cancel()

    def wait(self) -> asyncio.Future[ToolResult]:
        """Done when the call is over; many may wait for it."""
        if self.done is None:
            self.done = asyncio.get_running_loop().create_future()
        return self.done

    def uncancel(self) -> None:
        """The cancellation that was ours has come to its end in this call."""
        if self.task is not None:
            self.task.uncancel()


class ActiveCalls(dict[str, ActiveCall]):
    """The calls on their way, by id."""

    def stop(self, which: Callable[[ActiveCall], bool], call_id: str | None) -> int:
        """Stop one call or all, if they are meant; how many were reached."""
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
        """The calls but that one and those around it."""
        return [
            activity
            for activity in self.values()
            if here is None
            or activity.slot is None
            or not (activity.slot is here or here.is_inside(activity.slot))
        ]

    @contextmanager
    def enter(self, call_id: str) -> Generator[str]:
        """Be in the tool of this call, or where we are if that is inside it already; its name."""
        activity = self.get(call_id)
        if activity is None or activity.slot is None:
            raise CallOverError(f"The call {call_id} is over: nothing can be done in it.")
        here = find_open_call()
        is_inside = here is not None and here.is_inside(activity.slot)
        outer = CURRENT_CALL.set(here if is_inside else activity.slot)
        parsed = None if activity.admitted is None else activity.admitted.parsed
        try:
            yield activity.slot.call.tool if parsed is None else parsed.tool.name
        finally:
            CURRENT_CALL.reset(outer)


def find_parent(around: CallSlot | None, scheduler: object) -> CallSlot | None:
    """The innermost of these calls that is one of this scheduler."""
    while around is not None and around.scheduler is not scheduler:
        around = around.parent
    return around


def stop_inner_calls(slot: CallSlot, result: ToolResult) -> None:
    """Cancel what was made in a call that is stopped; else that goes on as calls of its own."""
    if result.code in {Cancelled.code, TimedOut.code}:
        for inner in tuple(slot.inner or ()):
            if inner.stop is not None:
                inner.stop()


@contextmanager
def wait_for_call(call: ToolCall, slot: CallSlot) -> Generator[None]:
    """Let the call around us wait for the result of another one.

    Raises:
        NestedCall: that one waits for the call around us, or for one that does.
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
    """Which calls were made, so that none is made twice."""

    def __init__(self, recall: Recall, claims: Claims | None) -> None:
        self._recall = recall
        self._claims = claims
        self._fingerprints = CallFingerprints(FINGERPRINT_BYTES)
        if claims is not None:
            claims.join(self.learn)

    def __contains__(self, call_id: str) -> bool:
        return self._fingerprints.get(call_id) is not None

    def learn(self, call_id: str, tool: str, call_input: object) -> None:
        """A call was made by an earlier run of the session, or by another holder of it."""
        self._fingerprints.keep(call_id, compute_fingerprint(tool, call_input))

    def keep(self, call_id: str, fingerprint: bytes) -> None:
        """A call was made here."""
        self._fingerprints.keep(call_id, fingerprint)

    def release(self, call_id: str) -> None:
        """A call is over; others may ask for its result."""
        if self._claims is not None:
            self._claims.release(call_id)

    def find_answer(
        self, call: ToolCall, fingerprint: bytes, running: ActiveCall | None
    ) -> AdmittedCall | None:
        """The answer to a call whose id was used already; None: it is to be made now, here."""
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
        """The stored result of a call that was made; it is never made twice."""
        try:
            stored = self._recall(call.id)
            lost = ResultLost(call.id, "it is not in the log")
        except ResultLost as fault:
            stored, lost = None, fault
        return build_fault_result(call, lost) if stored is None else stored


def build_fault_result(call: ToolCall, fault: ToolFault) -> ToolResult:
    """The answer to a call that is not made."""
    return msgspec.structs.replace(
        ToolResult.from_fault(fault), id=call.id, tool=escape_surrogates(call.tool)
    )


def _answer_reused(call: ToolCall) -> ToolResult:
    reason = f"The call id {call.id!r} was used for another call already"
    return build_fault_result(call, BadInput(call.tool, [reason]))
