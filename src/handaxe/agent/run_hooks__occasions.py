"""What hooks are told of an agent's end, in the ecosystem's words."""

from typing import Any

from handaxe.contract.ports.model import Failure
from handaxe.pipeline.context import PipelineContext
from handaxe.session.jobs import Jobs

MAX_TEXT_CHARS = 1_000
STOP_ERRORS: dict[Failure, str] = {
    "authentication": "authentication_failed",
    "not_found": "model_not_found",
    "rate_limited": "rate_limit",
    "overloaded": "overloaded",
    "too_long": "invalid_request",
    "bad_request": "invalid_request",
    "unreachable": "server_error",
    "broken_stream": "server_error",
    "timed_out": "server_error",
    "script_ended": "unknown",
}
_KINDS = {"bash": "shell", "agent": "subagent", "monitor": "monitor"}


def build_stop_details(among: PipelineContext) -> dict[str, Any]:
    """What hooks want to know when an agent is about to end."""
    # Nothing here wakes a session at a time; the list has its place all the same.
    told: dict[str, Any] = {"background_tasks": _list_running_jobs(among), "session_crons": []}
    if among.agent_id is not None:
        told["agent_transcript_path"] = among.agent_transcript_path
    return told


def _list_running_jobs(among: PipelineContext) -> list[dict[str, Any]]:
    jobs: Jobs | None = among.offers.get(Jobs)
    if jobs is None:
        return []
    told: list[dict[str, Any]] = []
    for state in jobs.running():
        entry = {
            "id": state.job_id,
            "type": _KINDS.get(state.kind, state.kind),
            "status": state.status,
            "description": _clip_text(state.description),
        }
        if state.command:
            entry["command"] = _clip_text(state.command)
        if state.agent_type:
            entry["agent_type"] = state.agent_type
        told.append(entry)
    return told


def _clip_text(text: str) -> str:
    more = len(text) - MAX_TEXT_CHARS
    return f"{text[:MAX_TEXT_CHARS]}… [+{more} chars]" if more > 0 else text
