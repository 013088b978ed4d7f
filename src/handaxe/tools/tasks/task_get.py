"""TaskGet: show one task of the shared list in full."""

from typing import Annotated, Any, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects, Resource
from handaxe.contract.ports.task_list import Task, TaskStatus, TaskStore
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs


class TaskGetArgs(ToolArgs, kw_only=True, rename="camel"):
    numbered = ("taskId",)
    task_id: Annotated[str, "The task's id, as TaskList shows it."]


class TaskData(TypedDict):
    """A task with all its fields."""

    id: str
    subject: str
    description: str
    activeForm: str | None
    status: TaskStatus
    owner: str | None
    blocks: Annotated[list[str], "Tasks that wait for it."]
    blockedBy: Annotated[list[str], "Tasks it waits for."]
    metadata: dict[str, Any]
    takenBy: Annotated[str | None, "The session that works on it."]
    version: Annotated[int, "Increases with every change."]


class TaskGetData(TypedDict):
    """The task, or null if the id is unknown."""

    task: TaskData | None


class TaskGet(Tool[TaskGetArgs]):
    search_hint = "show one work item with description, dependencies"
    output_type = TaskGetData
    uses = (TaskStore,)
    effects = Effects(reads=(Resource("state", "tasks"),))
    defer = True

    async def call(self, args: TaskGetArgs, ctx: ToolContext) -> ToolResult:
        task = await ctx[TaskStore].find(args.task_id)
        data: TaskGetData = {"task": msgspec.to_builtins(task)}
        if task is None:
            return ToolResult(f"There is no task #{args.task_id}.", data=data)
        return ToolResult(_format_task(task), data=data)


def _format_task(task: Task) -> str:
    lines = [f"Task #{task.id} ({task.status}): {task.subject}", task.description]
    if task.owner:
        lines.append(f"Owner: {task.owner}")
    if task.blocked_by:
        lines.append("Waits for: " + ", ".join(f"#{other}" for other in task.blocked_by))
    if task.blocks:
        lines.append("Others wait for it: " + ", ".join(f"#{other}" for other in task.blocks))
    return "\n".join(lines)
