"""Go on where a session's log ends."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from handaxe.contract.events import CallDeferred, CallFinished, ModeChanged, SessionResumed
from handaxe.contract.faults import CallInterrupted
from handaxe.contract.result import ToolResult
from handaxe.pipeline.pipeline import ToolPipeline
from handaxe.session.jobs import Jobs
from handaxe.session.pending_questions import PendingQuestions
from handaxe.session.permission_state import PermissionState
from handaxe.session.read_ledger import AppliedEdits, ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.storage.event_recorder import EventRecorder
from handaxe.storage.sessions import SessionHistory
from handaxe.text.paths import is_inside
from handaxe.version import __version__

if TYPE_CHECKING:
    from handaxe.app.services.hooks import SessionHooks


def resume(
    history: SessionHistory,
    session_id: str,
    record: EventRecorder,
    pipeline: ToolPipeline,
    ports: Mapping[type[Any], Any],
    hooks: "SessionHooks",
    questions: PendingQuestions,
) -> None:
    """Take over everything that the log tells."""
    resume_state(history, ports[ReadLedger], ports[AppliedEdits], ports[Workdir])
    history, are_gone = _take_over_open(history, record)
    if are_gone:
        questions.take_over(history.questions, session_id)
    resume_calls(history, session_id, record, pipeline, questions, are_gone=are_gone)
    resume_jobs(history, ports[Jobs], are_gone=are_gone)
    record.flush()
    hooks.resume(history)
    mode = ports[PermissionState].mode
    if history.mode not in {None, mode}:
        # What is asked for now is what the next resume goes on with.
        record.emit(ModeChanged(mode=mode))


def resume_state(
    history: SessionHistory, ledger: ReadLedger, edits: AppliedEdits, workdir: Workdir
) -> None:
    """Take over what the session knew: seen files, edits made, where it stood."""
    for seen in history.seen:
        ledger.replay(seen)
    for edit in history.edits:
        edits.replay(edit)
    directory = history.directory
    if directory and any(is_inside(directory, root) for root in workdir.roots):
        workdir.current = directory


def resume_jobs(history: SessionHistory, jobs: Jobs, *, are_gone: bool) -> None:
    """Know what ran in the background; what was lost with the earlier run ends now."""
    for job in history.jobs:
        jobs.replay(job)
    if are_gone:
        jobs.close_lost()
    else:
        jobs.forget_lost()


def resume_agent(
    history: SessionHistory, agent_id: str, record: EventRecorder, pipeline: ToolPipeline
) -> None:
    """Know the calls that an agent made."""
    history, are_gone = _take_over_open(history, record)
    resume_calls(history, agent_id, record, pipeline, PendingQuestions(), are_gone=are_gone)
    record.flush()


def _take_over_open(history: SessionHistory, record: EventRecorder) -> tuple[SessionHistory, bool]:
    """The past as it stands, and whether those who left something open in it are gone."""
    if not (history.open_calls or history.open_jobs or history.questions.requests):
        return history, True
    if not record.log.take_over():
        return history, False
    # Somebody may have closed it after we read it, and before nobody could any more.
    return record.history(), True


def resume_calls(
    history: SessionHistory,
    session_id: str,
    record: EventRecorder,
    pipeline: ToolPipeline,
    questions: PendingQuestions,
    *,
    are_gone: bool,
) -> None:
    """Know the calls that were made; what was cut off gets the end it lacks, but for questions."""
    if history.started is None and not history.calls:
        return
    record.is_started = True
    for call_id, offset in history.results.items():
        record.log.replay(call_id, offset)
    for call in history.calls.values():
        if questions.is_open(call.call_id):
            continue
        pipeline.remember_call(call.call_id, call.tool, call.input)
    record.emit(
        SessionResumed(session_id=session_id, version=__version__, repairs=tuple(history.damage))
    )
    if not are_gone:
        record.log.elsewhere = frozenset(call.call_id for call in history.open_calls)
        return
    asked = {request.call_id: request.tool for request in history.questions.requests}
    open_calls = asked | {call.call_id: call.tool for call in history.open_calls}
    for call_id, tool in open_calls.items():
        if questions.is_open(call_id):
            if call_id in history.calls:
                # It never ran, so its id is free for the time that it does.
                record.emit(CallDeferred(call_id=call_id))
            continue
        # Whoever was asked had not answered.
        cut_off = ToolResult.from_fault(CallInterrupted(started=call_id not in asked))
        result = msgspec.structs.replace(cut_off, id=call_id, tool=tool)
        record.emit(CallFinished(call_id=call_id, result=result))
