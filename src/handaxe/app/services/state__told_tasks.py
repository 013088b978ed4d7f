"""The task list, with hooks that are told what begins and ends there and may object."""

from collections.abc import Callable
from typing import Any

from handaxe.contract.faults import HookBlocked
from handaxe.contract.ports.task_list import Task, TaskChange, TaskStore
from handaxe.hooks.notify import HookContext, fire_hooks


class HookedTaskList(TaskStore):
    """A task list whose owner is asked before a task counts as made or as done."""

    def __init__(self, tasks: TaskStore, context: Callable[[], HookContext]) -> None:
        self._tasks = tasks
        self._context = context

    async def create(
        self, subject: str, description: str, active_form: str | None, metadata: dict[str, Any]
    ) -> Task:
        """Add a task, unless a hook objects: then it is gone again."""
        task = await self._tasks.create(subject, description, active_form, metadata)
        outcome = await fire_hooks(self._context(), "TaskCreated", **_describe_task(task))
        if outcome.blocked is not None:
            await self._tasks.change(task.id, TaskChange(status="deleted"))
            raise HookBlocked(outcome.blocked)
        return task

    async def find(self, task_id: str) -> Task | None:
        """One task, or None if there is none of that id."""
        return await self._tasks.find(task_id)

    async def all(self) -> tuple[Task, ...]:
        """Every task, the oldest first."""
        return await self._tasks.all()

    async def change(self, task_id: str, change: TaskChange) -> tuple[Task, Task]:
        """Change a task; a hook may object that it is not done yet."""
        if change.status == "completed":
            task = await self._tasks.find(task_id)
            if task is not None and task.status != "completed":
                outcome = await fire_hooks(self._context(), "TaskCompleted", **_describe_task(task))
                refusal = outcome.blocked or outcome.stop
                if refusal is not None:
                    raise HookBlocked(refusal)
        return await self._tasks.change(task_id, change)


def _describe_task(task: Task) -> dict[str, Any]:
    told = {"task_id": task.id, "task_subject": task.subject}
    return {**told, "task_description": task.description} if task.description else told
