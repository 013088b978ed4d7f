"""TaskUpdate: change, claim, finish or delete a task of the shared list."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.ports.task_list import Task, TaskChange, TaskStore
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.workdir import SessionIdentity

_COMPARED = {
    "subject": "subject", "description": "description", "active_form": "activeForm",
    "status": "status", "owner": "owner", "blocks": "blocks", "blocked_by": "blockedBy",
    "metadata": "metadata",
}  # fmt: skip
"""The fields of a task that can change, and their names in TaskGet."""


class TaskUpdateArgs(ToolArgs, kw_only=True, rename="camel"):
    numbered = ("taskId", "addBlocks", "addBlockedBy")
    task_id: Annotated[str, "The task's id, as TaskList shows it."]
    status: Annotated[
        Literal["pending", "in_progress", "completed", "deleted"] | None, "The new status."
    ] = None
    subject: Annotated[str | None, "A new title."] = None
    description: Annotated[str | None, "A new description."] = None
    active_form: Annotated[str | None, "The title in progress."] = None
    add_blocks: Annotated[tuple[str, ...], "Ids of tasks that wait for this one."] = ()
    add_blocked_by: Annotated[tuple[str, ...], "Ids of tasks this one waits for."] = ()
    owner: Annotated[str | None, "The owner; an empty name releases it."] = None
    metadata: Annotated[
        dict[str, Any] | None, "Merged with the stored metadata; null removes a key."
    ] = None


StatusChangeData = TypedDict("StatusChangeData", {"from": str, "to": str})


class TaskUpdateData(TypedDict):
    """The result of TaskUpdate."""

    success: bool
    taskId: str
    updatedFields: Annotated[list[str], "The fields that changed; `deleted` for a deleted task."]
    statusChange: NotRequired[StatusChangeData]


class TaskUpdate(Tool[TaskUpdateArgs]):
    search_hint = "change status, claim ownership, set work dependencies"
    output_type = TaskUpdateData
    uses = (TaskStore, SessionIdentity)
    effects = Effects.on_state("tasks")
    defer = True

    async def call(self, args: TaskUpdateArgs, ctx: ToolContext) -> ToolResult:
        change = TaskChange(
            status=args.status,
            subject=args.subject,
            description=args.description,
            active_form=args.active_form,
            owner=args.owner,
            add_blocks=args.add_blocks,
            add_blocked_by=args.add_blocked_by,
            metadata=args.metadata,
            by=ctx[SessionIdentity].session_id,
        )
        before, after = await ctx[TaskStore].change(args.task_id, change)
        deleted = args.status == "deleted"
        fields = ["deleted"] if deleted else _list_changed(before, after)
        data: TaskUpdateData = {"success": True, "taskId": before.id, "updatedFields": fields}
        if deleted or before.status != after.status:
            now = "deleted" if deleted else after.status
            data["statusChange"] = {"from": before.status, "to": now}
        return ToolResult(_format_update(before, after, fields, deleted=deleted), data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        status = partial_input.get("status")
        what = f"#{partial_input.get('taskId', '')}"
        return f"TaskUpdate({what} → {status})" if status else f"TaskUpdate({what})"


def _list_changed(before: Task, after: Task) -> list[str]:
    old, new = msgspec.structs.asdict(before), msgspec.structs.asdict(after)
    return [told for name, told in _COMPARED.items() if old[name] != new[name]]


def _format_update(before: Task, after: Task, fields: list[str], *, deleted: bool) -> str:
    if deleted:
        return f"Task #{before.id} deleted."
    if not fields:
        return f"Task #{before.id} has these values already; nothing changed."
    told = f"Task #{before.id} updated: {', '.join(fields)}."
    if before.status != "completed" and after.status == "completed" and after.blocks:
        freed = ", ".join(f"#{other}" for other in after.blocks)
        told += f" It no longer blocks: {freed}. TaskList shows what is next."
    return told
