"""The simple todo list: replaced as a whole, never merged."""

from collections.abc import Callable, Iterable

from handaxe.contract.events import Todo, TodosChanged


class Todos:
    """The todo list of the model."""

    def __init__(self, announce: Callable[[TodosChanged], object] = lambda _: None) -> None:
        self.items: tuple[Todo, ...] = ()
        self._announce = announce

    def replace(self, todos: Iterable[Todo]) -> tuple[Todo, ...]:
        """Put another list in place; gives the one before."""
        before = self.items
        event = TodosChanged(todos=tuple(todos))
        self.replay(event)
        self._announce(event)
        return before

    def summary(self) -> str:
        """A line for each open item, as a reminder for the model."""
        still_open = (todo for todo in self.items if todo.status != "completed")
        return "\n".join(f"- [{todo.status}] {todo.content}" for todo in still_open)

    def replay(self, event: TodosChanged) -> None:
        """Take over what an earlier run of the session had announced."""
        self.items = event.todos
