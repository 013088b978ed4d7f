"""TaskOutput: status and output of background work."""

import time
from typing import Annotated, Any, Literal, TypedDict

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.job_state import EndedBy, JobState, JobStatus
from handaxe.contract.ports.jobs import Job
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.jobs import Jobs
from handaxe.text.framing import frame, frame_field

MAX_CHARS = 30_000
MAX_TIMEOUT_MS = 600_000
TYPES = {"shell": "local_bash", "monitor": "monitor", "agent": "local_agent"}


class TaskOutputArgs(ToolArgs, kw_only=True):
    task_id: Annotated[str | None, "The id of the task, or an agent's name."] = None
    block: Annotated[bool, "Wait until it ends."] = True
    timeout: Annotated[float, "Timeout in milliseconds; maximum 600000."] = 30_000
    shell_id: Annotated[str | None, "Old name of task_id."] = None
    bash_id: Annotated[str | None, "Old name of task_id."] = None


class JobData(TypedDict):
    """The state of a background job."""

    task_id: str
    task_type: Annotated[str, "`local_bash`, `monitor` or `local_agent`."]
    name: str | None
    status: JobStatus
    description: str
    command: str | None
    output: Annotated[str, "New output; for an agent, its messages."]
    new_bytes: int
    total_bytes: int
    exitCode: int | None
    signal: int | None
    ended_by: EndedBy | None
    output_path: Annotated[str, "A file with the complete output; empty if there is none."]
    output_is_cut: Annotated[bool, "Whether the file is incomplete."]
    waiting_for_input: Annotated[str | None, "Its last output, if it seems to wait for input."]
    last_active_at: Annotated[float | None, "Seconds since the epoch."]


class OneJobData(TypedDict):
    """The requested job."""

    retrieval_status: Annotated[
        Literal["success", "timeout", "not_ready"],
        "`timeout` and `not_ready`: it still runs, after a wait or without one.",
    ]
    task: JobData


class KnownJobsData(TypedDict):
    """Without an id: all background jobs."""

    tasks: list[JobData]


class TaskOutput(Tool[TaskOutputArgs]):
    """The state and output of background work."""

    aliases = ("BashOutput", "AgentOutputTool")
    search_hint = "background task status result wait output shell agent"
    output_type = OneJobData | KnownJobsData
    uses = (Jobs,)
    effects = Effects.pure()
    defer = True

    async def call(self, args: TaskOutputArgs, ctx: ToolContext) -> ToolResult:
        jobs = ctx[Jobs]
        wanted = args.task_id or args.shell_id or args.bash_id
        if not wanted:
            return _list_known(jobs.known())
        state, job = jobs.named(wanted)
        notes: tuple[str, ...] = ()
        timeout_ms = max(0.0, args.timeout)
        if timeout_ms > MAX_TIMEOUT_MS:
            notes = (
                (
                    f"Timeout reduced from {timeout_ms:,.0f} ms to the maximum of "
                    f"{MAX_TIMEOUT_MS:,} ms."
                ),
            )
            timeout_ms = MAX_TIMEOUT_MS
        if job is not None:
            if args.block and state.status == "running":
                await job.wait(timeout_ms / 1000)
            state = job.state
        retrieval: Literal["success", "timeout", "not_ready"] = "success"
        if state.status == "running":
            retrieval = "timeout" if args.block else "not_ready"
        else:
            await jobs.mark_reported(state.job_id)
        new_bytes = jobs.count_new_bytes(state)
        said = _read_output(state, job, new_bytes)
        task = _to_task_data(state, said, new_bytes)
        data: OneJobData = {"retrieval_status": retrieval, "task": task}
        return ToolResult(_format_text(state, retrieval, said, new_bytes), data=data, notes=notes)

    def title(self, partial_input: dict[str, Any]) -> str:
        named = (partial_input.get(key) for key in ("task_id", "shell_id", "bash_id"))
        return f"TaskOutput({next(filter(None, named), '')})"


def _list_known(states: list[JobState]) -> ToolResult:
    """Without an id: list all jobs, running ones first."""
    states = sorted(states, key=lambda state: state.status != "running")
    text = (
        "\n".join(map(_format_row, states)) or "This session has no background tasks and no agents."
    )
    data: KnownJobsData = {"tasks": [_to_task_data(state, "", 0) for state in states]}
    return ToolResult(text, data=data)


def _format_row(state: JobState) -> str:
    name = f" ({state.name})" if state.name else ""
    silence = _measure_silence(state)
    since = f" (last active {silence})" if silence else ""
    about = state.description or state.command
    return f"{state.job_id}{name}: {TYPES[state.kind]}, {state.status}{since}: {about}"


def _measure_silence(state: JobState) -> str:
    """How long a running agent has been inactive; it may be stuck."""
    if state.status != "running" or state.last_active_at is None:
        return ""
    return f"{max(0.0, time.time() - state.last_active_at):,.0f} s ago"


def _read_output(state: JobState, job: Job | None, new_bytes: int) -> str:
    if state.kind == "agent":
        said = state.result or (job.tail(MAX_CHARS) if job is not None else "")
        return said[:MAX_CHARS].rstrip("\n")
    return job.tail(min(MAX_CHARS, new_bytes)).rstrip("\n") if job is not None and new_bytes else ""


def _format_text(state: JobState, retrieval: str, said: str, new_bytes: int) -> str:
    lines: list[str] = [
        frame_field("retrieval_status", retrieval),
        frame_field("task_id", state.job_id),
        frame_field("task_type", TYPES[state.kind]),
        frame_field("status", state.status),
    ]
    if silence := _measure_silence(state):
        lines.append(frame_field("last_active", silence))
    if state.exit_code is not None:
        lines.append(frame_field("exit_code", str(state.exit_code)))
    if state.ended_by is not None and state.ended_by != "exit":
        lines.append(frame_field("ended_by", state.ended_by))
    if state.waiting_for_input is not None:
        lines.append(frame_field("waiting_for_input", str(state.waiting_for_input)))
    if state.output_path:
        lines.append(frame_field("output_file", state.output_path))
    if state.output_is_cut:
        so_far = " so far" if state.status == "running" else ""
        lines.append(frame_field("output_cut", f"The file lacks part of the output{so_far}."))
    if said and state.kind == "agent":
        lines.append(frame("result", said))
    elif said:
        more = "" if new_bytes <= MAX_CHARS else f"(the end of {new_bytes:,} new bytes)\n"
        lines.append(frame("output", f"{more}{said}"))
    else:
        lines.append("(nothing new was printed)")
    return "\n".join(lines)


def _to_task_data(state: JobState, said: str, new_bytes: int) -> JobData:
    return {
        "task_id": state.job_id,
        "task_type": TYPES[state.kind],
        "name": state.name,
        "status": state.status,
        "description": state.description,
        "command": state.command,
        "output": said,
        "new_bytes": new_bytes,
        "total_bytes": state.output_bytes,
        "exitCode": state.exit_code,
        "signal": state.signal,
        "ended_by": state.ended_by,
        "output_path": state.output_path,
        "output_is_cut": state.output_is_cut,
        "waiting_for_input": state.waiting_for_input,
        "last_active_at": state.last_active_at,
    }
