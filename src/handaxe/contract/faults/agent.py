"""Faults of agents, tasks and the models that tools use."""

from collections.abc import Sequence

from handaxe.contract.faults import TemplateFault, ToolFault
from handaxe.contract.job_state import JobState


class UnknownAgentType(ToolFault):
    """There is no agent type of that name."""

    code = "agent.unknown_type"

    def __init__(self, name: str, near: str | None, known: Sequence[str]) -> None:
        hint = f" Did you mean {near!r}?" if near else ""
        super().__init__(
            f"There is no agent type {name[:100]!r}.{hint} Available agents: {', '.join(known)}."
        )


class NoToolsForAgent(
    TemplateFault,
    code="agent.no_tools",
    sentence=(
        "Agent {kind!r} would be spawned with zero tools — refusing. The tools that it names "
        "are not available here. Use another type, or do the work yourself."
    ),
):
    """The agent type names only tools that are not available here."""


class TooManyAgents(ToolFault):
    """The maximum number of agents is running."""

    code = "agent.too_many"

    def __init__(self, limit: int) -> None:
        agents = "1 agent is" if limit == 1 else f"{limit} agents are"
        super().__init__(
            f"Concurrent subagent limit reached: {agents} at work. "
            "Wait until one has ended, or do the work yourself."
        )


class AgentsTooDeep(
    TemplateFault,
    code="agent.too_deep",
    sentence=(
        "Agents can be nested {limit} deep, and this agent has that depth. Do the work yourself."
    ),
):
    """Agents at this depth cannot start agents."""


class AgentFailed(ToolFault):
    """The agent failed because its model did not answer."""

    code = "agent.failed"


class AgentNotFound(ToolFault):
    """No agent has that id or name."""

    code = "agent.not_found"

    def __init__(self, who: str, known: Sequence[str]) -> None:
        listed = "; ".join(known) or "none"
        super().__init__(f"There is no agent {who[:100]!r}. Agents of this session: {listed}.")


class AgentNameTaken(
    TemplateFault,
    code="agent.name_taken",
    sentence=(
        "Another agent already has the name {name!r}. Choose another name, or send a message "
        "to that agent."
    ),
):
    """Another agent of the session has this name."""


class AgentStoppedByUser(
    TemplateFault,
    code="agent.stopped_by_user",
    sentence=(
        "The user stopped agent {who!r}, so a message does not resume it. Start another agent "
        "if the work is still needed."
    ),
):
    """The user stopped this agent, so only the user can resume it."""


class IsolationUnavailable(
    TemplateFault,
    code="agent.no_isolation",
    sentence=(
        "An agent with isolation {wanted!r} cannot start here: {why}. Leave out `isolation` "
        "only if the agent may work in the current directory."
    ),
):
    """The requested isolation is not available."""


class UnknownJob(ToolFault):
    """No background task has this id."""

    code = "task.unknown"

    def __init__(self, job_id: str, running: Sequence[JobState]) -> None:
        super().__init__(f"No task has the id {job_id!r}. {_list_running(running)}")


class JobNotRunning(ToolFault):
    """The task has already ended."""

    code = "task.not_running"

    def __init__(self, state: JobState, running: Sequence[JobState]) -> None:
        kind = {"shell": "Shell", "monitor": "Monitor", "agent": "Agent"}[state.kind]
        super().__init__(
            f"{kind} {state.job_id} is not running, so cannot be killed "
            f"(status: {state.status}). {_list_running(running)}"
        )


class TooManyTasks(ToolFault):
    """The maximum number of background tasks is running."""

    code = "task.too_many"

    def __init__(self, count: int, running: Sequence[JobState]) -> None:
        others = count - len(running)
        tasks = "1 task is" if count == 1 else f"{count} tasks are"
        where = f" ({others} of them in other sessions of this user)" if others else ""
        super().__init__(
            f"{tasks} running in the background{where}, which is the maximum. "
            f"Stop one with TaskStop, or wait for one to end. {_list_running(running)}"
        )


class NoBackground(
    TemplateFault,
    code="task.no_background",
    sentence="The settings do not allow background work here. Run it in the foreground.",
):
    """The settings do not allow background work."""


class NoTaskNamed(ToolFault):
    """The call does not name a background task."""

    code = "task.not_named"

    def __init__(self, running: Sequence[JobState]) -> None:
        super().__init__(f"Give the task_id. {_list_running(running)}")


def _list_running(running: Sequence[JobState]) -> str:
    if not running:
        return "Nothing is running in the background."
    rows = "\n".join(f"  {state.job_id}: {state.description or state.command}" for state in running)
    return f"Running:\n{rows}"


class NoTask(ToolFault):
    """No task has this id."""

    code = "task.not_found"

    def __init__(self, task_id: str, known: list[str]) -> None:
        listed = ", ".join(known[:20]) or "none"
        super().__init__(f"There is no task {task_id!r}. Tasks: {listed}. TaskList shows them.")


class TaskClaimed(
    TemplateFault,
    code="task.claimed",
    sentence=(
        "Task {task_id!r} belongs to {owner!r}. Take another task, or let {owner!r} release it "
        "by setting an empty owner or the status pending."
    ),
):
    """Another agent works on the task."""


class TaskBlocked(
    TemplateFault,
    code="task.blocked",
    sentence="Task {task_id!r} waits for {waiting_for}. Finish these first.",
):
    """The task waits for unfinished tasks."""


class TaskCycle(
    TemplateFault,
    code="task.cycle",
    sentence=(
        "Tasks {task_id!r} and {other!r} would wait for each other. Leave out one of the two "
        "dependencies."
    ),
):
    """Tasks would wait for each other forever."""


class TaskListBroken(
    TemplateFault,
    code="task.list_broken",
    sentence="The task list in {path} cannot be used: {problem}. Repair or remove the file.",
):
    """The file of the task list is damaged."""


class NoModel(ToolFault):
    """A tool asks a model, and the session has none."""

    code = "model.none"

    def __init__(self, why: str) -> None:
        super().__init__(
            "This tool asks a model, and the session has none. Set `model` in the settings, or "
            f"let an agent make the call (`handaxe -p`, `handaxe.Agent`). {why}".strip()
        )


class ModelUnreachable(
    TemplateFault,
    code="model.failed",
    sentence="The model that this tool uses did not answer: {sentence}",
):
    """The model that a tool uses does not answer."""


class ModelBudgetReached(
    TemplateFault,
    code="model.budget",
    sentence="This tool cannot use the model any more: {sentence}",
):
    """The budget of the run is used up, so a tool cannot use the model."""
