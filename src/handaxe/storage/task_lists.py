"""Task lists on disk: one file per list, read and replaced under a lock, so no change is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from handaxe.contract.faults.agent import (
    NoTask,
    TaskBlocked,
    TaskClaimed,
    TaskCycle,
    TaskListBroken,
)
from handaxe.contract.ports.task_list import Task, TaskChange, TaskStore
from handaxe.disk import atomic
from handaxe.disk.threads import run_in_thread
from handaxe.storage.home import make_private_directory

FILE_NAME = "tasks.json"
_ATTEMPTS = 100

T = TypeVar("T")


class _Stored(msgspec.Struct, kw_only=True):
    next_id: int = 1
    tasks: dict[str, Task] = {}


class DiskTaskList(TaskStore):
    """A list in a directory of its own; any number of processes may use it at once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / FILE_NAME

    async def create(
        self, subject: str, description: str, active_form: str | None, metadata: dict[str, Any]
    ) -> Task:
        """Add a task."""

        def add(stored: _Stored) -> Task:
            task = Task(
                id=str(stored.next_id),
                subject=subject,
                description=description,
                active_form=active_form,
                metadata=metadata,
            )
            stored.tasks[task.id] = task
            stored.next_id += 1
            return task

        return await run_in_thread(lambda: self._changed(add))

    async def find(self, task_id: str) -> Task | None:
        """One task, or None."""
        return self._read()[0].tasks.get(_normalize_id(task_id))

    async def all(self) -> tuple[Task, ...]:
        """Every task, the oldest first."""
        return tuple(self._read()[0].tasks.values())

    async def change(self, task_id: str, change: TaskChange) -> tuple[Task, Task]:
        """Change a task in one step and return its old and its new state."""

        def apply(stored: _Stored) -> tuple[Task, Task]:
            before = _find_task(stored, task_id)
            if change.status == "deleted":
                _delete(stored, before)
                return before, before
            _link(stored, before, change)
            before_links = stored.tasks[before.id]
            after = _apply_change(stored, before_links, change)
            if after != before:
                after = msgspec.structs.replace(after, version=before.version + 1)
                stored.tasks[before.id] = after
            return before, after

        return await run_in_thread(lambda: self._changed(apply))

    def _changed(self, step: Callable[[_Stored], T]) -> T:
        """Read, change and replace; again from the start after a concurrent change."""
        make_private_directory(self._directory)
        for _ in range(_ATTEMPTS):
            stored, version = self._read()
            before = msgspec.json.encode(stored)
            outcome = step(stored)
            content = msgspec.json.encode(stored)
            if content == before:
                return outcome
            try:
                atomic.replace(self._file, [content], expect=version, mode=0o600)
            except atomic.VersionChanged:
                continue
            except atomic.DiskFault as fault:
                raise TaskListBroken(path=str(self._file), problem=str(fault)) from None
            return outcome
        raise TaskListBroken(path=str(self._file), problem="others never stop writing it")

    def _read(self) -> tuple[_Stored, atomic.Version | atomic.Absent]:
        try:
            content, version = atomic.read_regular(self._file)
            return msgspec.json.decode(content, type=_Stored), version
        except FileNotFoundError:
            return _Stored(), atomic.ABSENT
        except (msgspec.MsgspecError, atomic.DiskFault, OSError) as error:
            raise TaskListBroken(path=str(self._file), problem=str(error)) from None


def _normalize_id(task_id: str) -> str:
    return task_id.strip().removeprefix("#")


def _find_task(stored: _Stored, task_id: str) -> Task:
    task = stored.tasks.get(_normalize_id(task_id))
    if task is None:
        raise NoTask(task_id, list(stored.tasks))
    return task


def _apply_change(stored: _Stored, task: Task, change: TaskChange) -> Task:
    """The task with a change that needs only the task itself."""
    values: dict[str, Any] = {
        name: value
        for name in ("subject", "description", "active_form", "status")
        if (value := getattr(change, name)) is not None
    }
    if change.owner is not None:
        if change.owner and task.owner and task.owner != change.owner:
            raise TaskClaimed(task_id=task.id, owner=task.owner)
        values["owner"] = change.owner or None
    values["taken_by"] = _find_holder(task, change)
    if change.status == "in_progress" and task.status != "in_progress":
        waiting = [other for other in task.blocked_by if _is_open(stored, other)]
        if waiting:
            raise TaskBlocked(task_id=task.id, waiting_for=", ".join(waiting))
    if change.metadata is not None:
        merged = {**task.metadata, **change.metadata}
        values["metadata"] = {key: value for key, value in merged.items() if value is not None}
    return msgspec.structs.replace(task, **values)


def _find_holder(task: Task, change: TaskChange) -> str | None:
    """The session that has the task under way after the change; a fault if another one has."""
    if change.owner == "" or change.status not in {None, "in_progress"}:
        return None
    wants_it = change.status == "in_progress" or bool(change.owner)
    is_others = task.taken_by is not None and change.by not in {None, task.taken_by}
    # Whoever bears the owner's name goes on with the owner's work, in another session too.
    is_owner = bool(task.owner) and change.owner == task.owner
    if wants_it and is_others and task.status == "in_progress" and not is_owner:
        raise TaskClaimed(task_id=task.id, owner=task.owner or f"session {task.taken_by}")
    if change.status == "in_progress":
        return change.by or task.taken_by
    return task.taken_by


def _is_open(stored: _Stored, task_id: str) -> bool:
    task = stored.tasks.get(task_id)
    return task is not None and task.status != "completed"


def _link(stored: _Stored, task: Task, change: TaskChange) -> None:
    """Write dependencies down at both ends."""
    pairs = [(task.id, _find_task(stored, other).id) for other in change.add_blocks]
    pairs += [(_find_task(stored, other).id, task.id) for other in change.add_blocked_by]
    for first, then in pairs:
        if first == then or _is_waiting_for(stored, first, then):
            raise TaskCycle(task_id=first, other=then)
        earlier, later = stored.tasks[first], stored.tasks[then]
        stored.tasks[first] = _extend_links(earlier, blocks=(*earlier.blocks, then))
        stored.tasks[then] = _extend_links(later, blocked_by=(*later.blocked_by, first))


def _extend_links(task: Task, **links: tuple[str, ...]) -> Task:
    unique = {name: tuple(dict.fromkeys(ids)) for name, ids in links.items()}
    return msgspec.structs.replace(task, **unique)


def _is_waiting_for(stored: _Stored, task_id: str, other: str) -> bool:
    """Whether a task waits for another, directly or through others."""
    seen: set[str] = set()
    open_ids = [task_id]
    while open_ids:
        current = open_ids.pop()
        if current == other:
            return True
        if current not in seen:
            seen.add(current)
            open_ids.extend(stored.tasks[current].blocked_by if current in stored.tasks else ())
    return False


def _delete(stored: _Stored, task: Task) -> None:
    del stored.tasks[task.id]
    for other_id, other in stored.tasks.items():
        blocks = tuple(name for name in other.blocks if name != task.id)
        blocked_by = tuple(name for name in other.blocked_by if name != task.id)
        if (blocks, blocked_by) != (other.blocks, other.blocked_by):
            stored.tasks[other_id] = msgspec.structs.replace(
                other, blocks=blocks, blocked_by=blocked_by, version=other.version + 1
            )
