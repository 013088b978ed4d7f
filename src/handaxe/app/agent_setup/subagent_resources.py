"""The resources of an agent type: hooks, servers, memory and skills."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handaxe.agent.memory.persistent_memory import get_agent_memory
from handaxe.agent.subagents.definition_files import get_inline_servers
from handaxe.app.services.hooks import build_hook_policy
from handaxe.app.services.service import SessionContext
from handaxe.catalog.catalog import Catalog
from handaxe.config.project import Configuration
from handaxe.contract.events import Event, HookRan
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.contract.ports.skills import Skills
from handaxe.hooks.outcome import Outcome, merge_outcomes
from handaxe.hooks.service import Hooks
from handaxe.skills.listing import format_skill_texts

if TYPE_CHECKING:
    from handaxe.app.services.mcp import McpService
    from handaxe.hooks.dispatcher import Covers


class AgentResources:
    """The resources of one agent, besides its share of the session."""

    def __init__(
        self,
        kind: AgentDefinition,
        session_context: SessionContext,
        shared: Hooks,
        *,
        emit: Callable[[Event], object],
        is_main: bool = False,
    ) -> None:
        self._kind = kind
        self._session_context = session_context
        configuration = session_context.configuration
        self.memory = get_agent_memory(kind, configuration.root)
        self._servers: McpService | None = None
        self._shared = self.hooks = shared
        if kind.hooks and has_own_hooks(kind, configuration):
            self.hooks = AgentHooks(
                shared, kind, configuration, emit=emit, is_main=is_main,
                keep=lambda text: session_context.results.keep("hook", text),
            )  # fmt: skip

    async def open(self, catalog: Catalog) -> None:
        """Connect the agent's servers; only this agent gets their tools."""
        servers = get_inline_servers(self._kind)
        if not servers or self._servers is not None:
            return
        from handaxe.app.services.mcp import McpService

        self._servers = McpService(self._session_context, servers, is_strict=True)
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
        """Close the resources of the agent."""
        if self._servers is not None:
            servers, self._servers = self._servers, None
            await servers.close()
        if self.hooks is not self._shared:
            await self.hooks.close()


class AgentHooks(Hooks):
    """The session's hooks, then those of the agent."""

    def __init__(
        self,
        shared: Hooks,
        kind: AgentDefinition,
        configuration: Configuration,
        *,
        emit: Callable[[HookRan], object],
        keep: Callable[[str], str],
        is_main: bool = False,
    ) -> None:
        self._shared = shared
        self._before = self._after = False
        super().__init__(emit=emit, keep=keep)
        self.servers = shared.servers
        self.variables = shared.variables
        from handaxe.hooks.config import read_hooks
        from handaxe.hooks.local_runner import LocalHookPrograms

        hooks = dict(kind.hooks)
        if not is_main and "Stop" in hooks:
            # A Stop hook of the file is a SubagentStop hook here.
            hooks["SubagentStop"] = [*hooks.get("SubagentStop", ()), *hooks.pop("Stop")]
        book = read_hooks(hooks, source=kind.source, is_projects=True)
        policy = build_hook_policy(configuration.settings, configuration.root)
        self.configure(book, policy, LocalHookPrograms())

    @property
    def watch_before(self) -> bool:
        """Whether a hook runs before calls."""
        return self._before or self._shared.watch_before

    @watch_before.setter
    def watch_before(self, own: bool) -> None:
        self._before = own

    @property
    def watch_after(self) -> bool:
        """Whether a hook runs after calls."""
        return self._after or self._shared.watch_after

    @watch_after.setter
    def watch_after(self, own: bool) -> None:
        self._after = own

    def take_late(self) -> tuple[str, ...]:
        """Deliver late output once; output of session hooks goes to the running agent."""
        return (*self._shared.take_late(), *super().take_late())

    def watches(self, event: str) -> bool:
        """Whether a hook handles this event."""
        return super().watches(event) or self._shared.watches(event)

    async def fire(
        self,
        event: dict[str, Any],
        *,
        aliases: tuple[str, ...] = (),
        covers: "Covers | None" = None,
        call_id: str | None = None,
    ) -> Outcome:
        """The combined outcome of all hooks."""
        name = event["hook_event_name"]
        said = Outcome()
        for hooks, hears in ((self._shared, self._shared.watches(name)), (super(), True)):
            if hears:
                answer = await hooks.fire(event, aliases=aliases, covers=covers, call_id=call_id)
                said = merge_outcomes(said, answer)
        return said

    def tell(self, event: dict[str, Any]) -> None:
        """Start all hooks of an event without waiting for them."""
        self._shared.tell(event)
        super().tell(event)


def has_own_hooks(kind: AgentDefinition, configuration: Configuration) -> bool:
    """Whether a type's hooks run here."""
    settings = configuration.settings
    is_off = settings.disable_all_hooks or settings.allow_managed_hooks_only
    return bool(kind.hooks) and not is_off
