"""TaskCreate: add a task to the shared list."""

from typing import Annotated, Any, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.ports.task_list import TaskStore
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs


class TaskCreateArgs(ToolArgs, kw_only=True, rename="camel"):
    subject: Annotated[
        str, msgspec.Meta(min_length=1), "A short title in the imperative: `Fix the login test`."
    ]
    description: Annotated[str, "What to do, and how to verify that it is done."]
    active_form: Annotated[str | None, "The title in progress: `Fixing the login test`."] = None
    metadata: Annotated[dict[str, Any] | None, "Any data to store with the task."] = None


class NewTaskData(TypedDict):
    """The id and the title of a task."""

    id: str
    subject: str


class TaskCreateData(TypedDict):
    """The task that was added."""

    task: NewTaskData


class TaskCreate(Tool[TaskCreateArgs]):
    search_hint = "add work item to shared list with dependencies"
    output_type = TaskCreateData
    uses = (TaskStore,)
    effects = Effects.on_state("tasks")
    defer = True

    async def call(self, args: TaskCreateArgs, ctx: ToolContext) -> ToolResult:
        task = await ctx[TaskStore].create(
            args.subject, args.description, args.active_form, args.metadata or {}
        )
        data: TaskCreateData = {"task": {"id": task.id, "subject": task.subject}}
        return ToolResult(f"Task #{task.id} created: {task.subject}", data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"TaskCreate({partial_input.get('subject', '')})"
