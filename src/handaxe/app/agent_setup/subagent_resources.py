"""What a type of agent brings along: hooks, servers and a memory of its own, skills in sight."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from handaxe.agent.memory.persistent_memory import get_agent_memory
from handaxe.agent.subagents.definition_files import get_inline_servers
from handaxe.app.services.service import SessionContext
from handaxe.catalog.catalog import Catalog
from handaxe.contract.events import Event
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.contract.ports.skills import Skills
from handaxe.hooks.service import Hooks
from handaxe.skills.listing import format_skill_texts

if TYPE_CHECKING:
    from handaxe.app.services.mcp import McpService


class AgentResources:
    """All that lives as long as one agent works, beside its share of the session."""

    def __init__(
        self,
        kind: AgentDefinition,
        around: SessionContext,
        shared: Hooks,
        *,
        emit: Callable[[Event], None],
        is_main: bool = False,
    ) -> None:
        self._kind = kind
        self._around = around
        configuration = around.configuration
        self.memory = get_agent_memory(kind, configuration.root)
        self._servers: McpService | None = None
        self._shared = self.hooks = shared
        if kind.hooks:
            from handaxe.app.agent_setup.subagent_resources__agent_hooks import (
                AgentHooks,
                has_own_hooks,
            )

            if has_own_hooks(kind, configuration):
                self.hooks = AgentHooks(
                    shared, kind, configuration, emit=emit, is_main=is_main,
                    keep=lambda text: around.results.keep("hook", text),
                )  # fmt: skip

    async def open(self, catalog: Catalog) -> None:
        """Reach the agent's own servers; their tools are on offer to it alone."""
        servers = get_inline_servers(self._kind)
        if not servers or self._servers is not None:
            return
        from handaxe.app.services.mcp import McpService

        self._servers = McpService(self._around, servers, is_strict=True)
        self._servers.open(catalog)
        for name in servers:
            await self._servers.expect(f"mcp__{name}__")

    def notes(self, skills: Skills | None) -> tuple[str, ...]:
        """Sections of the agent's system prompt."""
        told = (
            [format_skill_texts(skills, self._kind.skills)] if skills and self._kind.skills else []
        )
        if self.memory is not None:
            told.append(self.memory.note())
        return tuple(note for note in told if note)

    async def close(self) -> None:
        """End what is the agent's own."""
        if self._servers is not None:
            servers, self._servers = self._servers, None
            await servers.close()
        if self.hooks is not self._shared:
            await self.hooks.close()
