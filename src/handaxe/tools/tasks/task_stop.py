"""TaskStop: stop background work."""

import asyncio
from typing import Annotated, Any, NotRequired, TypedDict

from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Decision
from handaxe.contract.effects import Effects
from handaxe.contract.faults.agent import JobNotRunning
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.jobs import Jobs

TYPES = {"shell": "local_bash", "monitor": "monitor", "agent": "local_agent"}


class TaskStopArgs(ToolArgs, kw_only=True):
    task_id: Annotated[str | None, "The id of the task, or an agent's name."] = None
    shell_id: Annotated[str | None, "Old name of task_id."] = None


class TaskStopData(TypedDict):
    """The stopped job."""

    message: str
    task_id: str
    task_type: Annotated[str, "`local_bash`, `monitor` or `local_agent`."]
    command: NotRequired[str]


class TaskStop(Tool[TaskStopArgs]):
    """Stops background work."""

    aliases = ("KillShell", "KillBash")
    search_hint = "kill end cancel terminate background task shell agent"
    output_type = TaskStopData
    uses = (Jobs,)
    effects = Effects.on_state("jobs")
    defer = True

    async def decide(self, args: TaskStopArgs, ctx: ToolContext) -> Decision | None:
        return Allow("stops only what this session started")

    async def call(self, args: TaskStopArgs, ctx: ToolContext) -> ToolResult:
        jobs = ctx[Jobs]
        state, job = jobs.named(args.task_id or args.shell_id)
        if job is None or state.status != "running":
            raise JobNotRunning(state, jobs.running())
        await asyncio.shield(asyncio.ensure_future(job.stop()))
        state = job.state
        # The caller needs no notice about a job that it stopped itself.
        await jobs.mark_reported(state.job_id)
        named = state.command or state.description
        message = f"Successfully stopped task: {state.job_id} ({named})"
        data: TaskStopData = {
            "message": message,
            "task_id": state.job_id,
            "task_type": TYPES[state.kind],
        }
        if state.command:
            data["command"] = state.command
        return ToolResult(message, data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"TaskStop({partial_input.get('task_id') or partial_input.get('shell_id') or ''})"
