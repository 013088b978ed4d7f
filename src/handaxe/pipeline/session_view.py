"""The read-only view of own tools on their session: the conversation and the options."""

import logging
from collections.abc import Generator
from typing import Any

from handaxe.contract.call import CURRENT_CALL
from handaxe.contract.ports.agents import AgentDefinition, Agents
from handaxe.contract.ports.conversation import Conversation, SessionInfo
from handaxe.contract.ports.mcp_servers import McpServer, McpServers
from handaxe.contract.ports.skills import Skills
from handaxe.contract.tool import Tool
from handaxe.pipeline.context import PipelineContext


def make_own_ports(tool: Tool[Any], context: PipelineContext) -> dict[type[Any], Any]:
    """The objects that a tool gets for one call."""
    own: dict[type[Any], Any] = {}
    if tool.states:
        from handaxe.session.own_state import OwnState

        own |= context.ports[OwnState].open(tool.states)
    if Conversation in tool.reach:
        agent = context.agent
        own[Conversation] = (
            Conversation() if agent is None else agent.read_conversation(tuple(_list_call_ids()))
        )
    if SessionInfo in tool.reach:
        own[SessionInfo] = LiveSessionInfo(context)
    return own


def _list_call_ids() -> Generator[str]:
    """The ids of the current call and of its outer calls, innermost first."""
    slot = CURRENT_CALL.get()
    while slot is not None:
        yield slot.call.id
        slot = slot.parent


class LiveSessionInfo(SessionInfo):
    """The options of a session or subagent, read on access."""

    def __init__(self, context: PipelineContext) -> None:
        self._context = context

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._context.session_id

    @property
    def root(self) -> str:
        """The directory of the project."""
        return self._context.workdir.root

    @property
    def directories(self) -> tuple[str, ...]:
        """All working directories, the root first."""
        return tuple(self._context.workdir.roots)

    @property
    def permission_mode(self) -> str:
        """The current permission mode, such as `default`."""
        return self._context.permission_mode

    @property
    def model(self) -> str | None:
        """The name of the model; None without a model."""
        agent = self._context.agent
        return None if agent is None else agent.model.name

    @property
    def agent_id(self) -> str | None:
        """The subagent that makes the call; None for the main agent."""
        return self._context.agent_id

    @property
    def agent_type(self) -> str | None:
        """The type of the agent, if one was chosen."""
        return self._context.agent_type

    @property
    def is_interactive(self) -> bool:
        """Whether the user or a callback can be asked."""
        context = self._context
        return any(one is not None and one.is_there for one in (context.asker, context.forms))

    @property
    def is_verbose(self) -> bool:
        """Whether the program logs details (`--debug`)."""
        return logging.getLogger("handaxe").isEnabledFor(logging.DEBUG)

    @property
    def mcp_servers(self) -> tuple[McpServer, ...]:
        """The MCP servers with their state."""
        servers: McpServers | None = self._context.ports.get(McpServers)
        return () if servers is None else tuple(servers.status())

    @property
    def agents(self) -> tuple[AgentDefinition, ...]:
        """The types of agents that can be started."""
        agents: Agents | None = self._context.ports.get(Agents)
        return () if agents is None else agents.kinds()

    @property
    def commands(self) -> tuple[str, ...]:
        """The slash commands."""
        skills: Skills | None = self._context.ports.get(Skills)
        listed = () if skills is None else skills.all()
        return tuple(skill.name for skill in listed if skill.for_user)
