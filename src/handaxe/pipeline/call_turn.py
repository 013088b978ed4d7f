"""A call's turn: what the log records when it begins, and which calls it may not overtake."""

import asyncio
import time

import msgspec

from handaxe.contract.call import CallSlot, ToolCall, find_open_call
from handaxe.contract.decision import Decision, Deny
from handaxe.contract.events import CallDecided, CallDeferred, CallStarted
from handaxe.contract.faults import Deferred
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import get_display_name
from handaxe.pipeline.active_calls import (
    ActiveCall,
    AdmittedCall,
    build_fault_result,
    find_parent,
)
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.parse import ParsedCall, parse
from handaxe.pipeline.permission_request import DeferredCall
from handaxe.pipeline.scheduler import Scheduler


def report_in_turn(
    context: PipelineContext, activity: ActiveCall, admitted: AdmittedCall, order: Scheduler
) -> asyncio.Future[None] | None:
    """Log a call, unless it waits for others.

    A waiting call has done nothing, so a log that ends there omits it.
    """
    slot = admitted.slot
    activity.is_announced = slot is None or (not slot.put_off and order.is_clear(slot))
    return report_admitted(context, admitted, order) if activity.is_announced else None


def report_admitted(
    context: PipelineContext, admitted: AdmittedCall, order: object
) -> asyncio.Future[None] | None:
    """Log a call that has its slot in the order, or needs none."""
    around = find_open_call() if admitted.slot is None else admitted.slot.parent
    parent = None if around is None else find_parent(around, order)
    return report_start(context, admitted.call, admitted.parsed, parent)


def report_start(
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


async def enter_turn(
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
        written = report_admitted(context, activity.admitted, slot.scheduler)
        if written is not None:
            await asyncio.shield(written)
    answer = context.questions.answers.get(parsed.call.id)
    if isinstance(answer, Deny):
        # Said after the question, it holds whatever would let the call run by now.
        from handaxe.pipeline.person_questions import refuse_later

        await refuse_later(parsed.call.id, answer, context)
    return parsed if parsed.asked is None else parse(parsed.asked, context)


async def close_question(context: PipelineContext, slot: CallSlot, decision: Decision) -> None:
    """Close the open question of a call that starts."""
    _refuse_overtaking(slot)
    if context.questions.is_open(slot.call.id):
        from handaxe.pipeline.person_questions import record_decision

        await record_decision(CallDecided(call_id=slot.call.id, decision=decision), context)


def leave_open(
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
