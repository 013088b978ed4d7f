"""What stands in the way of starting or reaching an agent."""

from collections.abc import Sequence
from typing import Any

from handaxe.contract.faults import ToolFault


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
