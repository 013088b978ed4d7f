"""What can be wrong with a call about background work."""

from collections.abc import Sequence

from handaxe.contract.faults import ToolFault
from handaxe.contract.job_state import JobState


class UnknownJob(ToolFault):
    """No background work has this id."""

    code = "task.unknown"

    def __init__(self, job_id: str, running: Sequence[JobState]) -> None:
        super().__init__(f"No task has the id {job_id!r}. {_list_running(running)}")


class JobNotRunning(ToolFault):
    """The work is over already."""

    code = "task.not_running"

    def __init__(self, state: JobState, running: Sequence[JobState]) -> None:
        kind = {"shell": "Shell", "monitor": "Monitor", "agent": "Agent"}[state.kind]
        super().__init__(
            f"{kind} {state.job_id} is not running, so cannot be killed "
            f"(status: {state.status}). {_list_running(running)}"
        )


class TooManyTasks(ToolFault):
    """So much goes on in the background that nothing can be added."""

    code = "task.too_many"

    def __init__(self, count: int, running: Sequence[JobState]) -> None:
        others = count - len(running)
        tasks = "1 task is" if count == 1 else f"{count} tasks are"
        where = f" ({others} of them in other sessions of this user)" if others else ""
        super().__init__(
            f"{tasks} running in the background{where}, which is the most there may be. "
            f"Stop one with TaskStop, or wait for one to end. {_list_running(running)}"
        )


class NoBackground(ToolFault):
    """The settings let nothing go on in the background."""

    code = "task.no_background"

    def __init__(self) -> None:
        super().__init__(
            "Nothing may go on in the background here. Do it so that it can be waited for."
        )


class NoTaskNamed(ToolFault):
    """A call about background work does not say which."""

    code = "task.not_named"

    def __init__(self, running: Sequence[JobState]) -> None:
        super().__init__(f"Give the task_id. {_list_running(running)}")


def _list_running(running: Sequence[JobState]) -> str:
    if not running:
        return "Nothing is running in the background."
    rows = "\n".join(f"  {state.job_id}: {state.description or state.command}" for state in running)
    return f"Running:\n{rows}"
