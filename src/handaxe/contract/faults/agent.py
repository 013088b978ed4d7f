"""What stands in the way of starting or reaching an agent."""

from collections.abc import Sequence
from typing import Any

from handaxe.contract.faults import ToolFault
from handaxe.contract.job_state import JobState


class UnknownAgentType(ToolFault):
    """There is no agent type of that name."""

    code = "agent.unknown_type"

    def __init__(self, name: str, near: str | None, known: Sequence[str]) -> None:
        hint = f" Did you mean {near!r}?" if near else ""
        super().__init__(
            f"There is no agent type {name[:100]!r}.{hint} Available agents: {', '.join(known)}."
        )


class NoToolsForAgent(ToolFault):
    """The type names only tools that are not on offer here."""

    code = "agent.no_tools"

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"Agent {kind!r} would be spawned with zero tools — refusing. The tools it names "
            "are not on offer here; use another type, or do the work yourself."
        )


class TooManyAgents(ToolFault):
    """As many agents as allowed are at work."""

    code = "agent.too_many"

    def __init__(self, limit: int) -> None:
        agents = "1 agent is" if limit == 1 else f"{limit} agents are"
        super().__init__(
            f"Concurrent subagent limit reached: {agents} at work. "
            "Wait until one has ended, or do the work yourself."
        )


class AgentsTooDeep(ToolFault):
    """An agent's agents may not start agents of their own."""

    code = "agent.too_deep"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"Agents may be nested {limit} deep, and this one is that deep. Do the work yourself."
        )


class AgentFailed(ToolFault):
    """The agent broke off: its model gave no answer."""

    code = "agent.failed"

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        super().__init__(text, data=data)


class AgentNotFound(ToolFault):
    """Nobody has that id or name."""

    code = "agent.not_found"

    def __init__(self, who: str, known: Sequence[str]) -> None:
        listed = "; ".join(known) or "none"
        super().__init__(f"There is no agent {who[:100]!r}. Agents of this session: {listed}.")


class AgentNameTaken(ToolFault):
    """Another agent of the session has this name."""

    code = "agent.name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Another agent is called {name!r} already. Choose another name, "
            "or send that agent a message."
        )


class AgentStoppedByUser(ToolFault):
    """The person stopped this agent, so nobody but the person wakes it."""

    code = "agent.stopped_by_user"

    def __init__(self, who: str) -> None:
        super().__init__(
            f"The user stopped agent {who!r}; it is not resumed by a message. "
            "Start another one if the work is still wanted."
        )


class IsolationUnavailable(ToolFault):
    """The wanted isolation cannot be had, and working without it would be worse."""

    code = "agent.no_isolation"

    def __init__(self, wanted: str, why: str) -> None:
        super().__init__(
            f"An agent with isolation {wanted!r} cannot be started here: {why}. "
            "Leave `isolation` out only if the agent may work in this very directory."
        )


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


class NoModel(ToolFault):
    """A tool asks a model, and the session has none."""

    code = "model.none"

    def __init__(self, why: str) -> None:
        super().__init__(
            "This tool asks a model, and the session has none. Set `model` in the settings, or "
            f"let an agent make the call (`handaxe -p`, `handaxe.Agent`). {why}".strip()
        )


class ModelUnreachable(ToolFault):
    """The model that a tool asks gives no answer."""

    code = "model.failed"

    def __init__(self, sentence: str) -> None:
        super().__init__(f"The model that this tool asks gave no answer: {sentence}")


class ModelBudgetReached(ToolFault):
    """The budget of the run is used up, so that a tool cannot ask the model."""

    code = "model.budget"

    def __init__(self, sentence: str) -> None:
        super().__init__(f"This tool cannot ask the model any more: {sentence}")
