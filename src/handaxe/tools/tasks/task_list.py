"""TaskList: list the shared tasks, one line each."""

from typing import Annotated, NotRequired, TypedDict

from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display, Table
from handaxe.contract.effects import Effects, Resource
from handaxe.contract.ports import task_list as port
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs


class TaskListArgs(ToolArgs, kw_only=True):
    pass


class TaskRowData(TypedDict):
    """A task in one line."""

    id: str
    subject: str
    status: port.TaskStatus
    owner: NotRequired[str]
    blockedBy: Annotated[list[str], "Open tasks it still waits for."]


class TaskListData(TypedDict):
    """The tasks of the list."""

    tasks: list[TaskRowData]


class TaskList(Tool[TaskListArgs]):
    search_hint = "overview of work items, status, owners"
    output_type = TaskListData
    uses = (port.TaskStore,)
    effects = Effects(reads=(Resource("state", "tasks"),))
    defer = True

    async def call(self, args: TaskListArgs, ctx: ToolContext) -> ToolResult:
        tasks = await ctx[port.TaskStore].all()
        rows = [_to_row(task, port.find_open_blockers(task, tasks)) for task in tasks]
        data: TaskListData = {"tasks": rows}
        text = "\n".join(port.format_task(task, tasks) for task in tasks) or "There are no tasks."
        return ToolResult(text, data=data, display=_to_display(rows))


def _to_row(task: port.Task, blocked_by: list[str]) -> TaskRowData:
    row: TaskRowData = {
        "id": task.id,
        "subject": task.subject,
        "status": task.status,
        "blockedBy": blocked_by,
    }
    if task.owner is not None:
        row["owner"] = task.owner
    return row


def _to_display(rows: list[TaskRowData]) -> Display | None:
    if not rows:
        return None
    cells = tuple((row["id"], row["status"], row["subject"], row.get("owner", "")) for row in rows)
    return (Table(("id", "status", "subject", "owner"), cells),)
