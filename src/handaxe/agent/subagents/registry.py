"""The shared state of a session's agents: types, limits, and running agents."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import AgentEvent
from handaxe.agent.limits import LoopOptions, Price
from handaxe.agent.loop_context import LoopContext
from handaxe.agent.subagents.definitions import GENERAL
from handaxe.agent.subagents.execution import AgentRun
from handaxe.contract.events import AgentEnded, Event
from handaxe.contract.faults.agent import TooManyAgents, UnknownAgentType
from handaxe.contract.ports.agents import AgentDefinition, AgentState
from handaxe.contract.ports.model import Model, ToolSpec
from handaxe.session.jobs import Jobs
from handaxe.storage.agent_files import AgentFiles
from handaxe.text.escape import find_closest_name


class SubagentSession(msgspec.Struct, kw_only=True):
    """A session for one agent, created by `handaxe.app`."""

    workplace: LoopContext
    conversation: AgentConversation
    system: Callable[[Sequence[ToolSpec]], tuple[str, ...]]
    close: Callable[..., Coroutine[Any, Any, None]]
    """Closes the agent's resources; with `keeps=True` its background commands continue."""
    ready: Callable[[], Coroutine[Any, Any, None]]
    """Waits for what the agent needs before it starts."""


class AgentIsolation(ABC):
    """Worktrees for agents that request one."""

    @abstractmethod
    async def open(self, state: AgentState, directory: str) -> AgentState:
        """The agent with a worktree of the repository around a directory; a fault if impossible."""

    @abstractmethod
    async def close(self, state: AgentState) -> AgentState:
        """The agent with its worktree if that has changes, otherwise without it."""


class AgentPaths:
    """Paths of calls to an agent; the same work has the same path."""

    def __init__(self, above: AgentState | None) -> None:
        """`above` is the agent that starts others; None is the main agent."""
        self.calls: Mapping[str, int] = {}
        """The calls of its conversation, numbered in order."""
        self._above = f"{above.path}." if above is not None else ""
        self._inner = 0

    def build(self, call_id: str | None) -> str:
        """The path of an agent that this call starts."""
        number = self.calls.get(call_id or "")
        if number is not None:
            return f"{self._above}{number}"
        # A tool started it inside a call of its own.
        self._inner += 1
        return f"{self._above}inner{self._inner}"


class SpawnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits: number of agents, depth, time in the foreground."""

    max_depth: int = 3
    max_running: int = 20
    auto_background_s: float | None = None
    background: bool = True
    """Whether agents may work in the background."""
    max_output_chars: int = 32_000
    """The maximum length of an agent's final text for its starter."""


class SubagentRegistry(msgspec.Struct, kw_only=True):
    """The shared state of all agents of a session, at any depth."""

    files: AgentFiles
    kinds: Callable[[], tuple[AgentDefinition, ...]]
    make_session: Callable[[AgentState, AgentDefinition, Any], SubagentSession]
    """Creates a session below that of the starting agent, and moves the agent there."""
    open_model: Callable[[str | None], Model]
    isolation: AgentIsolation
    """Creates worktrees for agents."""
    emit: Callable[[Event], object]
    tell: Callable[[AgentEvent], None]
    limits: SpawnLimits = SpawnLimits()
    prices: Mapping[str, Price] = {}
    options: LoopOptions = LoopOptions()
    book: Jobs
    runs: dict[str, AgentRun] = {}
    closing: set[asyncio.Future[None]] = set()

    def list_states(self) -> tuple[AgentState, ...]:
        """Every agent of the session, including those of earlier runs, oldest first."""
        states = {state.agent_id: state for state in self.files.states()}
        for agent_id, run in self.runs.items():
            states[agent_id] = run.agent
        return tuple(
            msgspec.structs.replace(state, status="interrupted")
            if state.status == "running" and not self.is_running(state.agent_id)
            else state
            for state in states.values()
        )

    def find_state(self, who: str) -> AgentState | None:
        """The agent with this id or name, the last one if there are several."""
        latest_first = reversed(self.list_states())
        return next((s for s in latest_first if who in {s.agent_id, s.name}), None)

    def find_running(self, who: str) -> AgentRun | None:
        """A running agent, by id or name."""
        state = self.find_state(who)
        run = self.runs.get(state.agent_id) if state is not None else None
        return run if run is not None and run.is_running else None

    def is_running(self, agent_id: str) -> bool:
        """Whether an agent is running."""
        run = self.runs.get(agent_id)
        return run is not None and run.is_running

    def refuse_if_full(self) -> None:
        """Raise if the limit of running agents is reached."""
        limit = self.limits.max_running
        if sum(run.is_running for run in self.runs.values()) >= limit:
            raise TooManyAgents(limit)

    def find_kind(self, name: str | None) -> AgentDefinition:
        """The type with this name in any case; the general one without a name."""
        kinds = self.kinds()
        wanted = name or GENERAL
        for kind in kinds:
            if kind.name == wanted:
                return kind
        for kind in kinds:
            if kind.name.casefold() == wanted.casefold():
                return kind
        names = [kind.name for kind in kinds]
        raise UnknownAgentType(wanted, find_closest_name(wanted, names), names)

    def mark_read(self, run: AgentRun) -> None:
        """Note that the starter has received the agent's final text."""
        run.agent = msgspec.structs.replace(run.agent, is_read=True)
        self.files.keep(run.agent)

    def close_session(self, subagent: SubagentSession, *, keeps: bool = False) -> None:
        """Close an agent's session in the background."""
        closing = asyncio.ensure_future(subagent.close(keeps=keeps))
        self.closing.add(closing)
        closing.add_done_callback(self.closing.discard)

    def finish_run(
        self, run: AgentRun, subagent: SubagentSession, task: "asyncio.Task[None]"
    ) -> None:
        """Report the end of an agent, and close its session."""
        with contextlib.suppress(asyncio.CancelledError):
            # A bug in an agent is reported to its parent like any other failure.
            if (error := task.exception()) is not None:
                run.failed(error)
        self.close_session(subagent, keeps=run.in_background)
        status = run.state.status
        self.emit(
            AgentEnded(
                agent_id=run.agent.agent_id,
                status="failed" if status == "running" else status,
                summary=run.agent.result[:500],
            )
        )

    async def release_checkout(self, run: AgentRun, subagent: SubagentSession) -> None:
        """Release an agent's worktree, which stays if it has changes."""
        if run.agent.worktree_path:
            # Nothing may still run in there.
            await subagent.close()
            run.agent = await self.isolation.close(run.agent)

    async def wait_until_ended(self, run: AgentRun) -> None:
        """Wait until an ending agent has released its resources."""
        await run.wait()
        # The code that handles its end starts right after it.
        await asyncio.sleep(0)
        await asyncio.gather(*self.closing, return_exceptions=True)
