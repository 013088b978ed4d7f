"""The shared task list: several agents write in it at once and none loses what another wrote."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

TaskStatus = Literal["pending", "in_progress", "completed"]


class Task(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something to do, who does it, and what it waits for."""

    id: str
    subject: str
    description: str
    active_form: str | None = None
    status: TaskStatus = "pending"
    owner: str | None = None
    blocks: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    taken_by: str | None = None
    """The session that set it under way."""
    version: int = 1
    """Grows with every change."""


class TaskChange(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a task. None leaves a field unchanged."""

    status: TaskStatus | Literal["deleted"] | None = None
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    """An empty name gives the task back."""
    add_blocks: tuple[str, ...] = ()
    add_blocked_by: tuple[str, ...] = ()
    by: str | None = None
    """The session that wants it so."""
    metadata: dict[str, Any] | None = None
    """Merged by key; a null takes the key out."""


def format_task(task: Task, all_tasks: Sequence[Task]) -> str:
    """A task in one line, with the open tasks that it waits for."""
    owner = f" ({task.owner})" if task.owner else ""
    waits = ", ".join(f"#{other}" for other in find_open_blockers(task, all_tasks))
    blocked = f" [waits for {waits}]" if waits else ""
    return f"#{task.id} [{task.status}] {task.subject}{owner}{blocked}"


def find_open_blockers(task: Task, all_tasks: Sequence[Task]) -> list[str]:
    """The tasks that one waits for and that are not done."""
    still_open = {other.id for other in all_tasks if other.status != "completed"}
    return [other for other in task.blocked_by if other in still_open]


class TaskStore(ABC):
    """The tasks of a session and its agents, or of a named list that sessions share."""

    @abstractmethod
    async def create(
        self, subject: str, description: str, active_form: str | None, metadata: dict[str, Any]
    ) -> Task:
        """Add a task."""

    @abstractmethod
    async def find(self, task_id: str) -> Task | None:
        """One task, or None if there is none of that id."""

    @abstractmethod
    async def all(self) -> tuple[Task, ...]:
        """Every task, the oldest first."""

    async def summary(self) -> str:
        """A line for each open task, as a reminder for the model."""
        tasks = await self.all()
        return "\n".join(f"- {format_task(t, tasks)}" for t in tasks if t.status != "completed")

    @abstractmethod
    async def change(self, task_id: str, change: TaskChange) -> tuple[Task, Task]:
        """Change a task in one step and return its old and its new state.

        Raises:
            ToolFault: no such task, another agent has it, or tasks would wait for each other.
        """
