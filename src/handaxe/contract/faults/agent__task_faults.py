"""What can go wrong with the shared task list."""

from handaxe.contract.faults import ToolFault


class NoTask(ToolFault):
    """There is no task of that id."""

    code = "task.not_found"

    def __init__(self, task_id: str, known: list[str]) -> None:
        listed = ", ".join(known[:20]) or "none"
        super().__init__(f"There is no task {task_id!r}. Tasks: {listed}. TaskList shows them.")


class TaskClaimed(ToolFault):
    """Somebody else works on the task."""

    code = "task.claimed"

    def __init__(self, task_id: str, owner: str) -> None:
        super().__init__(
            f"Task {task_id!r} belongs to {owner!r}. Take another one, or let {owner!r} give it "
            "back by setting an empty owner or the status pending."
        )


class TaskBlocked(ToolFault):
    """The task waits for others that are not done."""

    code = "task.blocked"

    def __init__(self, task_id: str, waiting_for: list[str]) -> None:
        listed = ", ".join(waiting_for)
        super().__init__(f"Task {task_id!r} waits for {listed}. Finish these first.")


class TaskCycle(ToolFault):
    """Tasks would wait for each other for ever."""

    code = "task.cycle"

    def __init__(self, task_id: str, other: str) -> None:
        super().__init__(
            f"Tasks {task_id!r} and {other!r} would wait for each other. Leave one of the two "
            "dependencies out."
        )


class TaskListBroken(ToolFault):
    """The file of the task list cannot be used."""

    code = "task.list_broken"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"The task list in {path} cannot be used: {problem}. Mend or remove the file."
        )
