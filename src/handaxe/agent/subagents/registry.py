"""What all agents of a session share: kinds, seats, limits, and who is at work."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import AgentEvent
from handaxe.agent.limits import LoopOptions, Price
from handaxe.agent.loop_context import LoopContext
from handaxe.agent.subagents.execution import AgentRun
from handaxe.contract.events import Event
from handaxe.contract.ports.agents import AgentDefinition, AgentState
from handaxe.contract.ports.jobs import JobRegistry
from handaxe.contract.ports.model import Model, ToolSpec
from handaxe.storage.agent_files import AgentFiles


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
        """The agent with a checkout of what is around a directory; a fault if there is none."""

    @abstractmethod
    async def close(self, state: AgentState) -> AgentState:
        """The agent with its checkout where that has changes, without it where it has none."""


class SpawnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many agents, how deep, how long in the foreground."""

    max_depth: int = 3
    max_running: int = 20
    auto_background_s: float | None = None
    background: bool = True
    """Whether agents may work without being waited for."""
    max_output_chars: int = 32_000
    """How much of what an agent says at its end its starter is told."""


class SubagentRegistry(msgspec.Struct, kw_only=True):
    """What all agents of a session share, however deep they are."""

    files: AgentFiles
    kinds: Callable[[], tuple[AgentDefinition, ...]]
    make_seat: Callable[[AgentState, AgentDefinition, Any], SubagentSession]
    """Makes a place below that of whoever starts the agent, and moves it in there."""
    open_model: Callable[[str | None], Model]
    housing: AgentIsolation
    """Gives agents that want one a checkout of their own."""
    emit: Callable[[Event], None]
    tell: Callable[[AgentEvent], None]
    say_to_main: Callable[[str], None] = lambda _: None
    """Says something to the session's own agent, as soon as it can hear it."""
    limits: SpawnLimits = SpawnLimits()
    prices: Mapping[str, Price] = {}
    options: LoopOptions = LoopOptions()
    book: JobRegistry | None = None
    runs: dict[str, AgentRun] = {}
    notices: list[str] = []
    closing: set[asyncio.Future[None]] = set()
