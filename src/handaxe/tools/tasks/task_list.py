"""TaskList: every task of the shared list in one line each."""

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display, Table
from handaxe.contract.effects import Effects, Resource
from handaxe.contract.ports import task_list as port
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs


class TaskListArgs(ToolArgs, kw_only=True):
    pass


class Row(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A task in one line."""

    id: str
    subject: str
    status: str
    owner: str | None = None
    blocked_by: list[str]
    """What it still waits for: what is done holds nobody up any more."""


class TaskList(Tool[TaskListArgs]):
    search_hint = "overview of work items, status, owners"
    uses = (port.TaskStore,)
    effects = Effects(reads=(Resource("state", "tasks"),))

    async def call(self, args: TaskListArgs, ctx: ToolContext) -> ToolResult:
        tasks = await ctx[port.TaskStore].all()
        rows = [
            Row(
                id=task.id,
                subject=task.subject,
                status=task.status,
                owner=task.owner,
                blocked_by=port.find_open_blockers(task, tasks),
            )
            for task in tasks
        ]
        text = "\n".join(port.format_task(task, tasks) for task in tasks) or "There are no tasks."
        return ToolResult(text, data={"tasks": rows}, display=_to_display(rows))


def _to_display(rows: list[Row]) -> Display | None:
    if not rows:
        return None
    cells = tuple((row.id, row.status, row.subject, row.owner or "") for row in rows)
    return (Table(("id", "status", "subject", "owner"), cells),)
