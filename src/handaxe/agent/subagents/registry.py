"""What all agents of a session share: kinds, seats, limits, and who is at work."""

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
    """A place for one agent to work in, made by `handaxe.app`."""

    workplace: LoopContext
    conversation: AgentConversation
    system: Callable[[Sequence[ToolSpec]], tuple[str, ...]]
    close: Callable[..., Coroutine[Any, Any, None]]
    """Ends what is the agent's own; with `keeps=True` its commands in the background go on."""
    ready: Callable[[], Coroutine[Any, Any, None]]
    """Reaches what the agent waits for before it begins."""


class AgentIsolation(ABC):
    """Checkouts for agents that want one of their own."""

    @abstractmethod
    async def open(self, state: AgentState, directory: str) -> AgentState:
        """The agent with a checkout of the directory's project; raises a fault without one."""

    @abstractmethod
    async def close(self, state: AgentState) -> AgentState:
        """The agent with its checkout where that has changes, without it where it has none."""


class AgentPaths:
    """Which calls lead to an agent; the same work leads to it by the same calls."""

    def __init__(self, above: AgentState | None) -> None:
        """`above` is the agent that starts others; None is the session's own."""
        self.calls: Mapping[str, int] = {}
        """The calls of its own conversation, numbered in their order."""
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
    """How many agents, how deep, how long in the foreground."""

    max_depth: int = 3
    max_running: int = 20
    auto_background_s: float | None = None
    background: bool = True
    """Whether agents may work without being waited for."""
    max_output_chars: int = 32_000
    """How much of an agent's last message its starter gets."""


class SubagentRegistry(msgspec.Struct, kw_only=True):
    """What all agents of a session share, however deep they are."""

    files: AgentFiles
    kinds: Callable[[], tuple[AgentDefinition, ...]]
    make_session: Callable[[AgentState, AgentDefinition, Any], SubagentSession]
    """Makes a directory below that of the agent's starter, and moves the agent there."""
    open_model: Callable[[str | None], Model]
    isolation: AgentIsolation
    """Gives agents that want one a checkout of their own."""
    emit: Callable[[Event], object]
    tell: Callable[[AgentEvent], None]
    limits: SpawnLimits = SpawnLimits()
    prices: Mapping[str, Price] = {}
    options: LoopOptions = LoopOptions()
    book: Jobs
    runs: dict[str, AgentRun] = {}
    closing: set[asyncio.Future[None]] = set()

    def list_states(self) -> tuple[AgentState, ...]:
        """Every agent of the session, also those of earlier runs, oldest first."""
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
        """The agent of this id or name, the last one if there are several."""
        latest_first = reversed(self.list_states())
        return next((s for s in latest_first if who in {s.agent_id, s.name}), None)

    def find_running(self, who: str) -> AgentRun | None:
        """The running work of an agent, by id or name."""
        state = self.find_state(who)
        run = self.runs.get(state.agent_id) if state is not None else None
        return run if run is not None and run.is_running else None

    def is_running(self, agent_id: str) -> bool:
        """Whether an agent is at work now."""
        run = self.runs.get(agent_id)
        return run is not None and run.is_running

    def refuse_if_full(self) -> None:
        """Raise if no further agent may work now."""
        limit = self.limits.max_running
        if sum(run.is_running for run in self.runs.values()) >= limit:
            raise TooManyAgents(limit)

    def find_kind(self, name: str | None) -> AgentDefinition:
        """The type of this name, whatever its case; the general one if there is no name."""
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
        """The agent's starter has its last message."""
        run.agent = msgspec.structs.replace(run.agent, is_read=True)
        self.files.keep(run.agent)

    def close_session(self, subagent: SubagentSession, *, keeps: bool = False) -> None:
        """End what is an agent's own, in the background."""
        closing = asyncio.ensure_future(subagent.close(keeps=keeps))
        self.closing.add(closing)
        closing.add_done_callback(self.closing.discard)

    def finish_run(
        self, run: AgentRun, subagent: SubagentSession, task: "asyncio.Task[None]"
    ) -> None:
        """Say that the work of an agent has ended, and end what was its own."""
        with contextlib.suppress(asyncio.CancelledError):
            # A bug in an agent is told to its parent like any other failure.
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
        """Give back an agent's own checkout, which stays where something was changed."""
        if run.agent.worktree_path:
            # Nothing may still run in there.
            await subagent.close()
            run.agent = await self.isolation.close(run.agent)

    async def wait_until_ended(self, run: AgentRun) -> None:
        """Wait until an agent that is about to end has given back what was its own."""
        await run.wait()
        # Whoever sees to its end begins right after it.
        await asyncio.sleep(0)
        await asyncio.gather(*self.closing, return_exceptions=True)
