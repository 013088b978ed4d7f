"""Resume a session from its log."""

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
    """Restore the whole state of the log."""
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
        # The next resume uses the current choices.
        record.emit(ModeChanged(mode=mode))


def resume_state(
    history: SessionHistory, ledger: ReadLedger, edits: AppliedEdits, workdir: Workdir
) -> None:
    """Restore seen files, edits and the working directory."""
    for seen in history.seen:
        ledger.replay(seen)
    for edit in history.edits:
        edits.replay(edit)
    directory = history.directory
    if directory and any(is_inside(directory, root) for root in workdir.roots):
        workdir.current = directory


def resume_jobs(history: SessionHistory, jobs: Jobs, *, are_gone: bool) -> None:
    """Restore background jobs; those lost with the earlier run end now."""
    for job in history.jobs:
        jobs.replay(job)
    if are_gone:
        jobs.close_lost()
    else:
        jobs.forget_lost()


def resume_agent(
    history: SessionHistory, agent_id: str, record: EventRecorder, pipeline: ToolPipeline
) -> None:
    """Restore the calls of an agent."""
    history, are_gone = _take_over_open(history, record)
    resume_calls(history, agent_id, record, pipeline, PendingQuestions(), are_gone=are_gone)
    record.flush()


def _take_over_open(history: SessionHistory, record: EventRecorder) -> tuple[SessionHistory, bool]:
    """The current past, and whether the processes of open calls have ended."""
    if not (history.open_calls or history.open_jobs or history.questions.requests):
        return history, True
    if not record.log.take_over():
        return history, False
    # Another process may have closed it between reading and locking.
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
    """Restore the calls; interrupted ones get an end, except those that wait for answers."""
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
                # It never ran, so its id can be used again.
                record.emit(CallDeferred(call_id=call_id))
            continue
        # Its question was not answered.
        cut_off = ToolResult.from_fault(CallInterrupted(started=call_id not in asked))
        result = msgspec.structs.replace(cut_off, id=call_id, tool=tool)
        record.emit(CallFinished(call_id=call_id, result=result))
