"""The read-only view of an own tool on the work around its call, and the people it can ask."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from handaxe.contract.messages import AssistantMessage, Message
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.contract.ports.mcp_servers import McpServer
from handaxe.contract.ports.model import Model


class Conversation:
    """The messages before a call, for a tool that declares it in `uses`."""

    is_of_call: ClassVar[bool] = True
    __slots__ = ("messages", "parent_message")

    def __init__(
        self, messages: tuple[Message, ...] = (), parent_message: AssistantMessage | None = None
    ) -> None:
        self.messages = messages
        """The messages before the answer that makes the call; none where no `Agent` is at work."""
        self.parent_message = parent_message
        """The answer that makes the call, up to now. None if no model made it."""


class SessionInfo(ABC):
    """The options of a session now, for a tool that declares it in `uses`."""

    is_of_call: ClassVar[bool] = True

    @property
    @abstractmethod
    def session_id(self) -> str:
        """The id of the session."""

    @property
    @abstractmethod
    def root(self) -> str:
        """The directory of the project."""

    @property
    @abstractmethod
    def directories(self) -> tuple[str, ...]:
        """All working directories, the root first."""

    @property
    @abstractmethod
    def permission_mode(self) -> str:
        """The permission mode, such as `default`."""

    @property
    @abstractmethod
    def model(self) -> str | None:
        """The name of the model at work; None where none is."""

    @property
    @abstractmethod
    def agent_id(self) -> str | None:
        """Which subagent makes the call; None for the main agent."""

    @property
    @abstractmethod
    def agent_type(self) -> str | None:
        """The type of the agent at work, where one was chosen."""

    @property
    @abstractmethod
    def is_interactive(self) -> bool:
        """Whether a person, or a callback, can be asked now."""

    @property
    @abstractmethod
    def is_verbose(self) -> bool:
        """Whether the program logs what happens inside (`--debug`)."""

    @property
    @abstractmethod
    def mcp_servers(self) -> tuple[McpServer, ...]:
        """The MCP servers with their state."""

    @property
    @abstractmethod
    def agents(self) -> tuple[AgentDefinition, ...]:
        """The types of agents that can be started."""

    @property
    @abstractmethod
    def commands(self) -> tuple[str, ...]:
        """The slash commands that a person can type."""


class ModelQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One question of a tool to a model, without the conversation."""

    prompt: str
    system: str = ""
    model: str | None = None
    """As `--model` takes it, or `small`; None is the model at work."""
    max_tokens: int = 2_000


class AgentAccess(ABC):
    """The agent that makes the calls, as tools reach it."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The model at work."""

    @abstractmethod
    def read_conversation(self, call_ids: Sequence[str]) -> Conversation:
        """The messages before the first of these calls that the conversation contains."""

    @abstractmethod
    async def ask_model(self, question: ModelQuestion) -> str:
        """The text of the answer; a fault of `handaxe.contract.faults.agent` if there is none."""
