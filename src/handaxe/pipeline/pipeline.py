"""Run one call from start to end, and find running calls by id.

Every call gets exactly one result, which is in the log before the caller gets it; no exception
escapes.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextvars import Token
from typing import Any

import msgspec

from handaxe.contract.call import CURRENT_CALL, IS_STARTING, CallSlot, ToolCall, find_open_call
from handaxe.contract.cancellation import (
    CancelledWithResult,
    find_current_task,
    is_external_stop,
)
from handaxe.contract.decision import Decision, Deny
from handaxe.contract.events import CallDecided, CallDeferred, CallFinished, CallStarted
from handaxe.contract.faults import (
    LEFT_OPEN,
    Cancelled,
    Deferred,
    NestedCall,
    ToolFault,
)
from handaxe.contract.ports.tools import ToolCaller
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import get_display_name
from handaxe.hooks.service import Hooks
from handaxe.pipeline.active_calls import (
    ActiveCall,
    ActiveCalls,
    AdmittedCall,
    CallDeduplicator,
    Claims,
    Recall,
    build_fault_result,
    find_parent,
    stop_inner_calls,
    wait_for_call,
)
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.finalize import finalize_result
from handaxe.pipeline.hook_events import BatchHooks
from handaxe.pipeline.parse import ParsedCall, compute_order_effects, parse
from handaxe.pipeline.permission_request import CallRefused, DeferredCall, HookFeedback
from handaxe.pipeline.prepare import prepare
from handaxe.pipeline.run import build_error_result, record_changes, run
from handaxe.pipeline.scheduler import Scheduler
from handaxe.session.call_fingerprints import compute_fingerprint
from handaxe.storage.home import generate_session_id
from handaxe.text.sanitize import escape_surrogates
from handaxe.text.tokens import estimate_tokens

CLOSE_S = 2.0
"""How long a stopped call may take to end when its session closes or its caller leaves."""


class ToolPipeline:
    """Runs calls for one session."""

    def __init__(
        self,
        context: PipelineContext,
        *,
        max_parallel: int,
        recall: Recall,
        order: Scheduler | None = None,
        claims: Claims | None = None,
    ) -> None:
        """`order` is the order of another pipeline to share.

        `claims` is set if other processes work in the same session.
        """
        self._context = context
        self._scheduler = order or Scheduler(max_parallel)
        self._made = CallDeduplicator(recall, claims)
        self.active = ActiveCalls()
        """The running calls."""
        self.is_closed = False
        self.batch_hooks = BatchHooks(context)
        """The hooks for complete batches."""
        self._expected: set[str] = set()
        self._written: asyncio.Future[None] | None = None
        """Done when the last result is in the log, if that takes long."""

    @property
    def order(self) -> Scheduler:
        """The order, for other pipelines to share."""
        return self._scheduler

    @property
    def is_busy(self) -> bool:
        """Whether a call is running."""
        return bool(self.active)

    def remember_call(self, call_id: str, tool: str, call_input: object) -> None:
        """Record a call of an earlier run, so that repeating it returns its result."""
        self._made.learn(call_id, tool, call_input)

    def has_call(self, call_id: str) -> bool:
        """Whether a call with this id runs or has run."""
        return call_id in self.active or call_id in self._made

    def refuse(self, call: ToolCall, fault: ToolFault) -> AdmittedCall:
        """Answer a call with a fault without running anything."""
        fingerprint = compute_fingerprint(call.tool, call.input)
        return self._reject_call(call, fingerprint, ToolResult.from_fault(fault))

    def call(self, call: ToolCall, *, is_new: bool = False) -> Coroutine[Any, Any, ToolResult]:
        """Run one call in the caller's task; `is_new`: the id was generated for it."""
        return self.run_admitted(self.admit(call, is_new=is_new))

    def call_inside(self, parent_id: str, call: ToolCall) -> Coroutine[Any, Any, ToolResult]:
        """Run a new call inside an unfinished one.

        Raises:
            CallOverError: the outer call has ended.
        """
        with self.active.enter(parent_id):
            return self.run_admitted(self.admit(call, is_new=True))

    def expect(self, tool_name: str) -> None:
        """Start slow preparations for a tool whose call is about to arrive."""
        if tool_name not in self._expected and _prepare_ports(tool_name, self._context):
            self._expected.add(tool_name)

    def admit(
        self, call: ToolCall, fingerprint: bytes | None = None, *, is_new: bool = False
    ) -> AdmittedCall:
        """Give a call its slot, or answer it if no slot is needed.

        `fingerprint` is the call's, if known; `is_new`: no earlier call can have its id.
        """
        fingerprint = fingerprint or compute_fingerprint(call.tool, call.input)
        if not is_new:
            known = self._made.find_answer(call, fingerprint, self.active.get(call.id))
            if known is not None:
                return known
        self.active[call.id] = activity = ActiveCall(fingerprint)
        if call.tool not in self._expected:
            self.expect(call.tool)
        try:
            parsed = parse(call, self._context)
            effects = compute_order_effects(parsed, self._context)
            activity.slot = slot = self._scheduler.join(call, effects, find_open_call())
        except ToolFault as fault:
            return self._reject_call(call, fingerprint, ToolResult.from_fault(fault))
        except BaseException as error:
            # A bug in a tool's facts is a result too.
            if is_external_stop(error, find_current_task()):
                raise
            return self._reject_call(call, fingerprint, build_error_result(call.tool, error))
        if slot.depth:
            slot.stop = activity.stop
        return AdmittedCall(call, fingerprint, slot, parsed)

    async def run_admitted(self, admitted: AdmittedCall) -> ToolResult:
        """Run an admitted call and return its result."""
        if admitted.answer is not None:
            return admitted.answer
        if admitted.same_as is not None:
            return await self._share(admitted.call)
        assert admitted.parsed is not None
        assert admitted.slot is not None
        activity = self.active[admitted.call.id]
        if activity.is_cancelled:
            return self.abandon(admitted)
        activity.task = asyncio.current_task()
        activity.interrupt = admitted.parsed.tool.interrupt
        activity.admitted = admitted
        activity.began = time.perf_counter()
        written = _report_in_turn(self._context, activity, admitted, self._scheduler)
        outer = CURRENT_CALL.set(admitted.slot)
        try:
            if written is not None:
                await asyncio.shield(written)
            result = await self._run_stages(admitted.parsed, admitted.slot, activity)
            if activity.is_cancelled:
                # The tool stopped itself; take delivery of the cancellation here, not later.
                await asyncio.sleep(0)
                activity.uncancel()
        except asyncio.CancelledError as stop:
            result = ToolResult.from_fault(Cancelled(started=activity.has_started))
            if isinstance(stop, CancelledWithResult):
                result = stop.result
            if not activity.is_cancelled:
                self._finish_active(activity, result)
                # To the host it is its own cancellation, nothing more special.
                raise asyncio.CancelledError from stop
            activity.uncancel()
        except DeferredCall as deferred:
            left = _leave_open(self._context, admitted, activity, deferred)
            return activity.result or self._ended(admitted.call.id, left)
        except (KeyboardInterrupt, GeneratorExit):
            # The process or the task is going; the log learns how the call ended.
            stopped = ToolResult.from_fault(Cancelled(started=activity.has_started))
            self._finish_active(activity, stopped)
            raise
        finally:
            self._scheduler.leave(admitted.slot)
            _leave_context(outer)
        result = self._finish_active(activity, result)
        if self._written is not None:
            written, self._written = self._written, None
            await asyncio.shield(written)
        return result

    def repeat_result(self, call: ToolCall, original: ToolResult) -> ToolResult:
        """Answer a call that repeats another one of its message."""
        if original.code in LEFT_OPEN:
            return build_fault_result(call, Deferred.behind(original.id))
        note = f"The same call as {original.id}; it ran once."
        result = msgspec.structs.replace(original, notes=(*original.notes, note))
        _report_start(self._context, call, None, find_parent(find_open_call(), self._scheduler))
        admitted = AdmittedCall(call, compute_fingerprint(call.tool, call.input))
        return self._finish(admitted, result, time.perf_counter())

    def abandon(self, admitted: AdmittedCall) -> ToolResult:
        """Close a call without a waiting caller, unless it has its result."""
        activity = self.active.get(admitted.call.id)
        result = ToolResult.from_fault(Cancelled(started=False))
        if admitted.slot is None or activity is None:
            return self._made.recall(admitted.call) if self.has_call(admitted.call.id) else result
        if activity.admitted is not None:
            # It is running and continues; it may have changed something.
            cut_off = ToolResult.from_fault(Cancelled(started=activity.has_started))
            return self._finish_active(activity, cut_off)
        _report_admitted(self._context, admitted, self._scheduler)
        self._scheduler.leave(admitted.slot)
        return self._finish(admitted, result, time.perf_counter())

    def withdraw(self, call_id: str) -> None:
        """Stop a call that has not started yet."""
        self.active.stop(lambda activity: not activity.has_started, call_id)

    def cancel(self, call_id: str | None = None) -> int:
        """Cancel one call or all; return how many."""
        if call_id is None:
            self.batch_hooks.cancel()
        return self.active.stop(lambda _: True, call_id)

    def interrupt(self) -> int:
        """Stop the calls whose tools allow it when the user writes something."""
        return self.active.stop(lambda activity: activity.interrupt == "cancel", None)

    async def close(self) -> None:
        """Stop all calls; one that does not stop gets its result now."""
        self.is_closed = True
        self.cancel()
        others = self.active.list_others(find_open_call())
        if others:
            await asyncio.wait([activity.wait() for activity in others], timeout=CLOSE_S)
        for activity in others:
            if activity.result is None:
                cut_off = ToolResult.from_fault(Cancelled(started=activity.has_started))
                self._finish_active(activity, cut_off)
        if self._context.outliving:
            from handaxe.pipeline.run import cancel_abandoned

            await cancel_abandoned(self._context.outliving)

    async def _run_stages(
        self, parsed: ParsedCall, slot: CallSlot, activity: ActiveCall
    ) -> ToolResult:
        decision: Decision | None = None
        heard = HookFeedback()
        try:
            if self._context.opening is not None and not IS_STARTING.get():
                await self._context.opening()
            if not self._scheduler.is_clear(slot):
                await self._scheduler.clear(slot)
            questions = self._context.questions
            if parsed.asked or slot.put_off or questions.answers or not activity.is_announced:
                parsed = await _enter_turn(self._context, parsed, slot, activity)
            prepared = await prepare(parsed, heard, self._context)
            decision = prepared.decision
            if prepared.was_rewritten:
                self._scheduler.isolate(slot)
            if slot.is_alone or not self._scheduler.try_acquire(slot):
                await self._scheduler.start(slot)
            if slot.put_off or questions.asked:
                await _close_question(self._context, slot, decision)
            activity.has_started = True
            try:
                began = time.perf_counter()
                result = await run(prepared, self._context)
                took_s = time.perf_counter() - began
                result = await finalize_result(result, prepared, self._context, took_s=took_s)
            finally:
                prepared.ctx.mute()
                told = await record_changes(prepared, self._context)
            return msgspec.structs.replace(result, notes=(*result.notes, *told)) if told else result
        except CallRefused as refused:
            return _build_refused_result(refused, heard)
        except ToolFault as fault:
            return msgspec.structs.replace(ToolResult.from_fault(fault), decision=decision)
        except DeferredCall:
            raise
        except BaseException as error:
            home = activity.task if CURRENT_CALL.get() is slot else None
            if is_external_stop(error, home):
                raise
            return build_error_result(parsed.tool.name, error)

    def _reject_call(self, call: ToolCall, fingerprint: bytes, result: ToolResult) -> AdmittedCall:
        _report_start(self._context, call, None, find_parent(find_open_call(), self._scheduler))
        admitted = AdmittedCall(call, fingerprint)
        return msgspec.structs.replace(
            admitted, answer=self._finish(admitted, result, time.perf_counter())
        )

    def _finish_active(self, activity: ActiveCall, result: ToolResult) -> ToolResult:
        """The result of a running call, unless the session already closed it."""
        if activity.result is None and activity.admitted is not None:
            if not activity.is_announced:
                _report_admitted(self._context, activity.admitted, self._scheduler)
            return self._finish(activity.admitted, result, activity.began)
        return activity.result or result

    def _finish(self, admitted: AdmittedCall, result: ToolResult, began: float) -> ToolResult:
        call = admitted.call
        if admitted.slot is not None and admitted.slot.inner:
            stop_inner_calls(admitted.slot, result)
        result = _complete_result(admitted, result, began)
        # Most of it was redacted when it was settled; hooks and faults have spoken since.
        result = self._context.redactor.redact_value(result)
        self._written = self._context.emit(
            CallFinished(at=time.time(), call_id=call.id, result=result)
        )
        if self._context.questions.asked:
            self._context.questions.end(call.id)
        self._made.keep(call.id, admitted.fingerprint)
        return self._ended(call.id, result)

    def _ended(self, call_id: str, result: ToolResult) -> ToolResult:
        self._made.release(call_id)
        activity = self.active.pop(call_id, None)
        if activity is not None:
            activity.result = result
            if activity.done is not None and not activity.done.done():
                activity.done.set_result(result)
        return result

    async def _share(self, call: ToolCall) -> ToolResult:
        activity = self.active.get(call.id)
        if activity is None or activity.slot is None:
            return self._made.recall(call)
        try:
            with wait_for_call(call, activity.slot):
                return await asyncio.shield(activity.wait())
        except NestedCall as fault:
            return build_fault_result(call, fault)


def _report_in_turn(
    context: PipelineContext, activity: ActiveCall, admitted: AdmittedCall, order: Scheduler
) -> asyncio.Future[None] | None:
    """Log a call, unless it waits for others.

    A waiting call has done nothing, so a log that ends there omits it.
    """
    slot = admitted.slot
    activity.is_announced = slot is None or (not slot.put_off and order.is_clear(slot))
    return _report_admitted(context, admitted, order) if activity.is_announced else None


def _report_admitted(
    context: PipelineContext, admitted: AdmittedCall, order: object
) -> asyncio.Future[None] | None:
    """Log a call that has its slot in the order, or needs none."""
    around = find_open_call() if admitted.slot is None else admitted.slot.parent
    parent = None if around is None else find_parent(around, order)
    return _report_start(context, admitted.call, admitted.parsed, parent)


def _report_start(
    context: PipelineContext, call: ToolCall, parsed: ParsedCall | None, parent: CallSlot | None
) -> asyncio.Future[None] | None:
    """Log the start of a call; an unparsed call has no details."""
    return context.emit(
        CallStarted(
            at=time.time(),
            call_id=call.id,
            tool=parsed.tool.name if parsed else call.tool,
            input=call.input,
            derived=parsed.derived() if parsed else {},
            is_read_only=parsed is None or parsed.effects.is_read_only,
            parent_id=None if parent is None else parent.call.id,
            display_name=get_display_name(parsed.tool, parsed.args)
            if parsed is not None and parsed.tool.has_display_name
            else None,
        )
    )


async def _enter_turn(
    context: PipelineContext, parsed: ParsedCall, slot: CallSlot, activity: ActiveCall
) -> ParsedCall:
    """Refresh a call that waited for other calls, an answer or files.

    Raises:
        DeferredCall: it would overtake an earlier call of its message.
        CallRefused: the user refused it later.
    """
    _refuse_overtaking(slot)
    if not activity.is_announced and activity.admitted is not None:
        activity.is_announced = True
        written = _report_admitted(context, activity.admitted, slot.scheduler)
        if written is not None:
            await asyncio.shield(written)
    answer = context.questions.answers.get(parsed.call.id)
    if isinstance(answer, Deny):
        # Said after the question, it holds whatever would let the call run by now.
        from handaxe.pipeline.person_questions import refuse_later

        await refuse_later(parsed.call.id, answer, context)
    return parsed if parsed.asked is None else parse(parsed.asked, context)


async def _close_question(context: PipelineContext, slot: CallSlot, decision: Decision) -> None:
    """Close the open question of a call that starts."""
    _refuse_overtaking(slot)
    if context.questions.is_open(slot.call.id):
        from handaxe.pipeline.person_questions import record_decision

        await record_decision(CallDecided(call_id=slot.call.id, decision=decision), context)


def _leave_open(
    context: PipelineContext, admitted: AdmittedCall, activity: ActiveCall, deferred: DeferredCall
) -> ToolResult:
    """Leave a deferred call without a result, so that it can come again under its id."""
    call, slot = admitted.call, admitted.slot
    if slot is not None and slot.put_off is not None:
        slot.put_off.append(slot)
    if activity.is_cancelled:
        activity.uncancel()
    if activity.is_announced and activity.result is None:
        context.emit(CallDeferred(at=time.time(), call_id=call.id))
    result = build_fault_result(call, deferred.fault)
    return msgspec.structs.replace(result, decision=deferred.decision)


def _refuse_overtaking(slot: CallSlot) -> None:
    """Defer a call that conflicts with an earlier deferred call of its message."""
    for earlier in slot.put_off or ():
        if earlier.order < slot.order and earlier.effects.collides(slot.effects):
            raise DeferredCall(Deferred.behind(earlier.call.id))


def _leave_context(outer: Token[CallSlot | None]) -> None:
    """Restore the context from before the call."""
    try:  # noqa: SIM105 - `suppress` costs more, and this is done in every call
        CURRENT_CALL.reset(outer)
    except ValueError:
        # An abandoned call can be closed outside of its context.
        pass


def _complete_result(admitted: AdmittedCall, result: ToolResult, began: float) -> ToolResult:
    """Add the id, the duration and the size to a result."""
    call, parsed = admitted.call, admitted.parsed
    # Successful checks are settled; a failure may have any reason.
    text = result.text if result.ok else escape_surrogates(result.text)
    return msgspec.structs.replace(
        result,
        id=call.id,
        text=text,
        tool=parsed.tool.name if parsed else result.tool or escape_surrogates(call.tool),
        # Three digits; to round to them at once would go through their spelling.
        duration_ms=round((time.perf_counter() - began) * 1_000_000) / 1000,
        tokens=result.tokens or (estimate_tokens(text) if text else 0),
    )


def _prepare_ports(tool_name: str, context: PipelineContext) -> bool:
    """Start slow preparations of a tool; return whether it exists."""
    try:
        tool, _ = context.catalog.find(tool_name)
    except ToolFault:
        return False
    for port in tool.uses:
        if hasattr(port, "get_ready") and port in context.ports:
            context.ports[port].get_ready()
    return True


def _build_refused_result(refused: CallRefused, heard: HookFeedback) -> ToolResult:
    """The result of a refused call, with messages of hooks."""
    return msgspec.structs.replace(
        ToolResult.from_fault(refused.fault),
        decision=refused.decision,
        messages=heard.messages,
        notes=heard.notes,
        stops=refused.stops or heard.stops,
    )


class CallIdGenerator:
    """Generates ids that no other call of the session has."""

    def __init__(self) -> None:
        self._token, self._given = generate_session_id()[:12], 0

    def __call__(self) -> str:
        """The next id."""
        self._given += 1
        return f"call_{self._token}_{self._given}"


class PipelineCaller(ToolCaller):
    """Runs a tool's calls without prompting."""

    def __init__(self) -> None:
        self._pipeline: ToolPipeline | None = None
        self._hooks = Hooks()
        self._calls_made = 0

    def join(self, context: PipelineContext, order: Scheduler) -> None:
        """Use these collaborators and the order of a session."""
        self._hooks = context.hooks
        self._pipeline = ToolPipeline(
            msgspec.structs.replace(context, asker=None),
            max_parallel=1,
            recall=lambda _: None,
            order=order,
        )

    async def call(self, parent_call_id: str, tool: str, call_input: dict[str, Any]) -> ToolResult:
        """Run one call; never raises."""
        if self._pipeline is None:
            raise RuntimeError("a tool made a call before its session was open")
        self._calls_made += 1
        call_id = f"{parent_call_id}.{self._calls_made}"
        result = await self._pipeline.call(ToolCall(call_id, tool, call_input))
        # The tool reads the result; hook messages to the model are passed on.
        self._hooks.late += result.messages
        return result
