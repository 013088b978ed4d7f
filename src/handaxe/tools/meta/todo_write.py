"""TodoWrite: the simple list of what to do."""

from typing import Annotated, Any

from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display, Items
from handaxe.contract.effects import Effects
from handaxe.contract.result import ToolResult
from handaxe.contract.todo import Todo
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.todos import Todos

_SIGNS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}


class TodoWriteArgs(ToolArgs, kw_only=True):
    todos: Annotated[list[Todo], "The whole list, in the order of work."]


class TodoWrite(Tool[TodoWriteArgs]):
    search_hint = "plan steps, track progress in a checklist"
    uses = (Todos,)
    effects = Effects.on_state("todos")

    async def call(self, args: TodoWriteArgs, ctx: ToolContext) -> ToolResult:
        before = ctx[Todos].replace(args.todos)
        active = [todo for todo in args.todos if todo.status == "in_progress"]
        left = sum(todo.status != "completed" for todo in args.todos)
        text = f"The list has {len(args.todos)} items, {left} of them open."
        notes = ()
        if len(active) > 1:
            notes = ("More than one item is in progress; work on one at a time.",)
        return ToolResult(
            text,
            data={"oldTodos": before, "newTodos": tuple(args.todos)},
            display=_shown(args.todos),
            notes=notes,
        )

    def title(self, partial_input: dict[str, Any]) -> str:
        todos = partial_input.get("todos")
        return f"TodoWrite({len(todos)} items)" if isinstance(todos, list) else "TodoWrite"  # pyright: ignore[reportUnknownArgumentType] - the model's own JSON


def _shown(todos: list[Todo]) -> Display | None:
    if not todos:
        return None
    return (Items(tuple(f"{_SIGNS[todo.status]} {todo.content}" for todo in todos)),)
