"""The main agent as a user-defined agent type: `--agent reviewer`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handaxe.agent.loop_context import LoopContext
from handaxe.agent.subagents.definition_files import AgentDefinitions, find_agent_directories
from handaxe.agent.subagents.policy import make_main_tool_filter
from handaxe.app.agent_setup.subagent_resources import AgentResources
from handaxe.app.session import Session, get_parts
from handaxe.config.settings_paths import is_users_own
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.contract.ports.skills import Skills
from handaxe.rules.modes import choose_strictest_mode
from handaxe.storage.home import MANAGED_DIRECTORIES, get_user_directories
from handaxe.text.escape import format_suggestion


def find_agent_definitions(session: Session, given: Mapping[str, Any] | None) -> AgentDefinitions:
    """The agent types of a session."""
    workdir = session.workdir
    configuration = get_parts(session).configuration
    sources = configuration.sources
    users = get_user_directories() if "user" in sources else ()
    if "project" in sources:
        directories = find_agent_directories(workdir.current, workdir.root, users)
    else:
        directories = [path for user in users if (path := Path(user) / "agents").is_dir()]
    managed = [Path(place) / ".claude" / "agents" for place in MANAGED_DIRECTORIES]
    if not configuration.discovery.agents:
        directories = managed = []
    return AgentDefinitions(given, directories, configuration, managed)


def choose_main_agent(name: str | None, kinds: AgentDefinitions) -> AgentDefinition | None:
    """The chosen type of the main agent."""
    if name is None:
        return None
    known = {kind.name: kind for kind in kinds()}
    if name not in known:
        hint = format_suggestion(name, known)
        raise SetupError(f"There is no agent type {name!r}.{hint} Agents: {', '.join(known)}.")
    return known[name]


class MainAgent:
    """Changes of an agent type for the session that it leads."""

    def __init__(self, kind: AgentDefinition, session: Session, workplace: LoopContext) -> None:
        self._kind = kind
        self._session = session
        self._catalog = get_parts(session).catalog
        context = get_parts(session).pipeline_context
        self._equipment = AgentResources(
            kind, get_parts(session).session_context, context.hooks, emit=context.emit, is_main=True
        )
        context.hooks = self._equipment.hooks
        context.agent_type = kind.name
        self._catalog.keep_only(make_main_tool_filter(kind))
        self._choose_mode()
        if (memory := self._equipment.memory) is not None:
            memory.open_in(session.workdir)
        notes = workplace.notes
        workplace.notes = lambda: (*notes(), *self._equipment.notes(context.ports.get(Skills)))

    async def open(self) -> None:
        """Connect the servers that the agent needs."""
        await self._equipment.open(self._catalog)

    async def close(self) -> None:
        """Close the resources of the agent."""
        await self._equipment.close()

    def _choose_mode(self) -> None:
        """The mode of the type; a file of a project can only make it stricter."""
        wanted, now = self._kind.permission_mode, self._session.permissions.mode
        if wanted is None:
            return
        is_own = self._kind.source == "arguments" or is_users_own(Path(self._kind.source))
        chosen = wanted if is_own and now == "default" else choose_strictest_mode(wanted, now)
        if chosen is not None and chosen != now:
            self._session.set_mode(chosen)


def choose_main_prompt(kind: AgentDefinition | None, replace: str | None) -> str | None:
    """The identity and rules of the prompt: from the host or the agent type."""
    if replace is not None or kind is None:
        return replace
    return kind.prompt or None
