"""What is still to do, in words for a model: open items only, so that nothing is done twice."""

from collections.abc import Mapping
from typing import Any

from handaxe.app.session import Session
from handaxe.contract.ports.task_list import TaskStore
from handaxe.session.todos import Todos


async def open_tasks(session: Session) -> str:
    """The open todos and shared tasks of a session, to be told again; empty if there are none."""
    return "\n\n".join(await list_open_items(session.collaborators.offers))


async def list_open_items(offers: Mapping[type[Any], Any]) -> list[str]:
    """Both lists, each with its heading; without what is done, and without an empty one."""
    todos: Todos | None = offers.get(Todos)
    tasks: TaskStore | None = offers.get(TaskStore)
    lists = (
        ("Your todo list:", todos.summary() if todos is not None else ""),
        ("The shared task list:", await tasks.summary() if tasks is not None else ""),
    )
    return [f"{heading}\n{items}" for heading, items in lists if items]
