"""TodoWrite: the session's todo list."""

from typing import Annotated, Any, TypedDict, cast

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display, Items
from handaxe.contract.effects import Effects
from handaxe.contract.events import Todo, TodoStatus
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.todos import Todos
from handaxe.text.escape import format_count

_SIGNS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}


class TodoWriteArgs(ToolArgs, kw_only=True):
    todos: Annotated[list[Todo], "The whole list, in the order of work."]


class TodoData(TypedDict):
    """A todo item and its status."""

    content: str
    status: TodoStatus
    activeForm: str


class TodoWriteData(TypedDict):
    """The list before and after."""

    oldTodos: list[TodoData]
    newTodos: list[TodoData]


class TodoWrite(Tool[TodoWriteArgs]):
    search_hint = "plan steps, track progress in a checklist"
    output_type = TodoWriteData
    uses = (Todos,)
    effects = Effects.on_state("todos")

    async def call(self, args: TodoWriteArgs, ctx: ToolContext) -> ToolResult:
        before = ctx[Todos].replace(args.todos)
        active = [todo for todo in args.todos if todo.status == "in_progress"]
        left = sum(todo.status != "completed" for todo in args.todos)
        text = f"The list has {format_count(len(args.todos), 'item')}, {left} of them open."
        notes = ()
        if len(active) > 1:
            notes = ("More than one item is in progress; work on one at a time.",)
        data: TodoWriteData = {
            "oldTodos": msgspec.to_builtins(list(before)),
            "newTodos": msgspec.to_builtins(args.todos),
        }
        return ToolResult(text, data=data, display=_to_display(args.todos), notes=notes)

    def title(self, partial_input: dict[str, Any]) -> str:
        todos = partial_input.get("todos")
        if not isinstance(todos, list):
            return "TodoWrite"
        return f"TodoWrite({format_count(len(cast('list[Any]', todos)), 'item')})"


def _to_display(todos: list[Todo]) -> Display | None:
    if not todos:
        return None
    return (Items(tuple(f"{_SIGNS[todo.status]} {todo.content}" for todo in todos)),)
