"""Start an agent, send it a message, find it again."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from handaxe.contract.job_state import EndedBy, JobState
from handaxe.contract.messages import TokenUsage

AgentStatus = Literal["running", "completed", "failed", "killed", "interrupted"]
Isolation = Literal["worktree", "remote"]
MemoryScope = Literal["user", "project", "local"]


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A type of agent: its purpose, its tools, its prompt."""

    name: str
    description: str
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    """The tools it gets; None: all of its parent's."""
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    permission_mode: str | None = None
    max_turns: int | None = None
    background: bool = False
    skills: tuple[str, ...] = ()
    """Skills whose texts it has from the start."""
    mcp_servers: tuple[str | dict[str, Any], ...] = ()
    """Servers: names of the session's, or definitions of its own by name."""
    hooks: dict[str, Any] = {}
    """Hooks that live as long as it works, as settings write them."""
    memory: MemoryScope | None = None
    """Where it keeps what it learned: below the user's directory or the project's."""
    effort: str | None = None
    isolation: Isolation | None = None
    color: str | None = None
    initial_prompt: str = ""
    """Its first prompt when it is the main agent."""
    is_lean: bool = False
    """Whether it works without the project's instructions and the repository's state."""
    source: str = "built-in"


class AgentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The task and options of a new agent."""

    description: str
    prompt: str
    kind: str | None = None
    model: str | None = None
    name: str | None = None
    in_background: bool | None = None
    call_id: str | None = None
    isolation: Isolation | None = None
    effort: str | None = None


class AgentState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of an agent, in memory and on disk."""

    agent_id: str
    agent_type: str
    description: str
    status: AgentStatus
    name: str | None = None
    prompt: str = ""
    model: str = ""
    parent_id: str | None = None
    tool_use_id: str | None = None
    path: str = ""
    """The numbers of the calls that led to it, from the main conversation on, such as `2.1`."""
    depth: int = 1
    permission_mode: str | None = None
    """The widest mode it may work in; None: its parent's."""
    tools: tuple[str, ...] | None = None
    """The tools it may use; None: the session's tools."""
    started_at: float = 0.0
    ended_at: float | None = None
    last_active_at: float = 0.0
    output_file: str = ""
    result: str = ""
    """Its last message."""
    is_read: bool = False
    """Whether its result reached its starter."""
    stopped_by_user: bool = False
    ended_by: EndedBy | None = None
    """The cause of the end, if the agent did not finish by itself."""
    effort: str | None = None
    isolation: Isolation | None = None
    worktree_path: str = ""
    """Its own checkout, while there is one."""
    worktree_branch: str = ""
    worktree_base: str = ""
    """The commit that its checkout began with."""


def to_job_state(agent: AgentState, result: str) -> JobState:
    """How an agent stands, as background work."""
    return JobState(
        job_id=agent.agent_id,
        kind="agent",
        name=agent.name,
        agent_type=agent.agent_type,
        status="killed" if agent.status == "interrupted" else agent.status,
        description=agent.description,
        output_path=agent.output_file,
        started_at=agent.started_at,
        ended_at=agent.ended_at,
        ended_by="host_ended" if agent.status == "interrupted" else agent.ended_by,
        last_active_at=agent.last_active_at or None,
        result=result,
    )


def describe_worktree(state: AgentState) -> str:
    """Where an agent's changes are, if it made them in a checkout of its own."""
    if not state.worktree_path:
        return ""
    branch = f" on branch {state.worktree_branch}" if state.worktree_branch else ""
    return (
        f"Its changes are in the worktree {state.worktree_path}{branch}; "
        "nothing of them is in the main checkout yet.\n"
    )


class AgentOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an agent's work, or a note that it continues in the background."""

    state: AgentState
    in_background: bool = False
    text: str = ""
    tool_uses: int = 0
    duration_ms: float = 0.0
    usage: TokenUsage = TokenUsage()
    models: tuple[str, ...] = ()
    tool_counts: dict[str, int] = {}
    errors: tuple[str, ...] = ()
    has_failed: bool = False
    """Whether the agent broke off because its model gave no answer, or because of a bug."""
    why_background: Literal["asked", "timeout"] = "asked"


class Agents(ABC):
    """The agents of one session."""

    @abstractmethod
    def kinds(self) -> tuple[AgentDefinition, ...]:
        """The types that can be started, sorted by name."""

    @abstractmethod
    async def start(self, request: AgentRequest, report: Callable[[str], None]) -> AgentOutcome:
        """Start an agent and wait for it, unless it works in the background.

        Raises a fault of `handaxe.contract.faults.agent` where it cannot be started.
        """

    @abstractmethod
    async def send(self, to: str, text: str, *, call_id: str | None = None) -> AgentState:
        """Send an agent a message, by id or name; an ended one continues in the background."""

    def tell_main(self, text: str) -> bool:  # noqa: ARG002 - nobody is above by default
        """Tell the session's own agent something; False if that is the one who speaks."""
        return False

    @abstractmethod
    def listed(self) -> tuple[AgentState, ...]:
        """Every agent of the session, also those of earlier runs, oldest first."""

    @abstractmethod
    def find(self, who: str) -> Any:  # noqa: ANN401 - a `Job`, or None
        """The running work of an agent, by id or name; None if it does not run."""
