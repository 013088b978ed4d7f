"""Build the parts of a subagent: its own and those of its session."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from handaxe.agent.subagents.policy import SubagentPolicy, SubagentRestrictions, make_tool_filter
from handaxe.agent.subagents.spawn import SpawnedAgents
from handaxe.agent.subagents.worktree import find_linked_directories
from handaxe.app.agent_setup.subagent_resources import AgentResources
from handaxe.app.builder import SessionBuilder
from handaxe.app.resume import resume_agent, resume_state
from handaxe.app.services.service import ServiceGroup, SessionContext
from handaxe.app.session import Session, get_parts
from handaxe.catalog.catalog import Catalog
from handaxe.catalog.edit_formats import choose_edit_tool
from handaxe.config.settings_paths import WORKTREES
from handaxe.contract.effects import Effects
from handaxe.contract.ports.agents import AgentDefinition, Agents, AgentState
from handaxe.contract.ports.result_store import ResultStore
from handaxe.contract.ports.tools import ToolCaller
from handaxe.contract.ports.undo import ChangeHistory, Checkpoints
from handaxe.hooks.notify import notify_directory_change
from handaxe.hooks.service import Hooks
from handaxe.permission.decide import build_hidden_check
from handaxe.pipeline.context import PipelineContext
from handaxe.session.jobs import Jobs
from handaxe.session.port_registry import PortRegistry
from handaxe.session.read_ledger import AppliedEdits, ReadLedger
from handaxe.session.turn_overrides import TurnOverrides
from handaxe.session.workdir import Workdir
from handaxe.storage.sessions import LOG_NAME
from handaxe.text.paths import is_inside


class SubagentBuilder(SessionBuilder):
    """Builds a subagent inside a session.

    Files, the undo record, settings and permission prompts are those of the session.
    """

    resources: AgentResources
    jobs: Jobs | None

    def __init__(
        self,
        session: Session,
        directory: Path,
        state: AgentState,
        kind: AgentDefinition,
        agents: SpawnedAgents,
    ) -> None:
        self._session_parts = get_parts(session)
        self._state = state
        self._kind = kind
        self._agents = agents
        self._parent = agents.pipeline_context
        has_past = (directory / LOG_NAME).exists()
        super().__init__(
            state.agent_id, directory, self._session_parts.configuration, has_past=has_past
        )

    def build_workdir(self) -> Workdir:
        """The roots of the parent, or a worktree of its own."""
        state, above = self._state, self._parent.workdir
        checkout = state.worktree_path or None
        linked = self.configuration.settings.worktree.symlink_directories
        workdir = Workdir(
            (checkout,) if checkout else above.roots,
            home=above.home,
            spellings={} if checkout else above.spellings,
            free_to_read=(
                *above.free_to_read,
                str(self.results.directory),
                *find_linked_directories(state, linked),
            ),
            own_places=above.own_places,
            announce=lambda old, new: notify_directory_change(self.pipeline_context, old, new),
        )
        workdir.current = _find_start_directory(state, above)
        return workdir

    def build_session_context(self) -> SessionContext:
        """The session's context, with its own directory, results and events."""
        return msgspec.structs.replace(
            self._session_parts.session_context,
            session_directory=self.directory,
            workdir=self.workdir,
            results=self.results,
            emit=self.recorder.emit,
            pipeline_context=lambda: self.pipeline_context,
            recovered=(),
        )

    def build_policy(self) -> SubagentPolicy:
        """The narrowed rules of the parent; the agent may use its own directories."""
        self.resources = AgentResources(
            self._kind, self.session_context, self._parent.hooks, emit=self.recorder.emit
        )
        own = self.resources.memory.places if self.resources.memory else ()
        self.workdir.free_to_read = (*self.workdir.free_to_read, *own)
        above = self._parent.workdir
        return SubagentPolicy(
            self._parent.policy,
            above,
            self.workdir,
            SubagentRestrictions(
                mode=self._state.permission_mode,
                checkout=self._state.worktree_path or None,
                project=_find_main_checkout(self._state, above),
                memory=own,
            ),
        )

    def build_ports(self) -> PortRegistry:
        """The parent's ports with its own state."""
        ports = PortRegistry(
            {
                **self._parent.ports,
                Workdir: self.workdir,
                ReadLedger: self.ledger,
                AppliedEdits: self.edits,
                Agents: self._agents,
                ResultStore: self.results,
                ToolCaller: self.caller,
            }
        )
        # Changes of the session are undone by the session.
        ports.pop(ChangeHistory, None)
        # A skill of an agent does not change the model of others.
        ports.pop(TurnOverrides, None)
        jobs = self._parent.ports.get(Jobs)
        self.jobs = jobs and jobs.share_with_agent(self._state.agent_id)
        if self.jobs is not None:
            ports[Jobs] = self.jobs
        return ports

    def build_services(self) -> ServiceGroup:
        """The services of the session that have one for each agent."""
        made = [
            service.create_for_agent(self.session_context, self.history)
            for service in self._session_parts.services.members
        ]
        return ServiceGroup(*(service for service in made if service is not None))

    def build_hooks(self) -> Hooks:
        """The parent's hooks and those of the agent's definition."""
        return self.resources.hooks

    def build_catalog(self) -> Catalog:
        """The parent's tools, limited by the agent's definition and start."""
        policy = self.policy
        catalog = self._parent.catalog.narrow(
            make_tool_filter(
                self._kind, may_start_agents=self._agents.may_start, parent_tools=self._state.tools
            ),
            self.ports,
        )
        catalog.edit_tool = choose_edit_tool(self.configuration.settings.edit, self._state.model)
        catalog.ask_what_is_hidden(lambda: build_hidden_check(policy()))
        return catalog

    def build_pipeline_context(self) -> PipelineContext:
        """The parent's pipeline context with its own parts."""
        parent = self._parent
        return msgspec.structs.replace(
            parent,
            catalog=self.catalog,
            deferral=self.deferral,
            ports=self.ports,
            workdir=self.workdir,
            policy=self.policy,
            hooks=self.hooks,
            emit=self.recorder.emit,
            results=self.results,
            checkpoints=_PrefixedCheckpoints(parent.checkpoints, self._state.agent_id)
            if parent.checkpoints
            else None,
            opening=None,
            may_put_off=None,
            model_classifier=None,
            agent_transcript_path=str(self.log),
            agent_id=self._state.agent_id,
            agent_type=self._kind.name,
        )

    def resume(self) -> None:
        """Restore the agent's state and calls."""
        resume_state(self.history, self.ledger, self.edits, self.workdir)
        resume_agent(self.history, self._state.agent_id, self.recorder, self.pipeline)


class _PrefixedCheckpoints(Checkpoints):
    """The session's undo record, where the agent's calls have their own names."""

    def __init__(self, record: Checkpoints, agent_id: str) -> None:
        self._record = record
        self._agent_id = agent_id

    async def before(self, call_id: str, tool: str, effects: Effects) -> None:
        """Record the state before the call changes something."""
        await self._record.before(f"{self._agent_id}.{call_id}", tool, effects)

    async def after(self, call_id: str) -> tuple[str, ...]:
        """Record the end of the call and return notes for its result."""
        return await self._record.after(f"{self._agent_id}.{call_id}")

    async def find_loss(self, effects: Effects, paths: Sequence[str]) -> str:
        """Why changes of these paths could not be undone."""
        return await self._record.find_loss(effects, paths)


def _find_start_directory(state: AgentState, above: Workdir) -> str:
    """The start directory of an agent: its parent's, or the same place in its worktree."""
    checkout, top = state.worktree_path, _find_main_checkout(state, above)
    if not checkout or top is None:
        return above.current
    inside = checkout + above.current[len(top) :] if is_inside(above.current, top) else checkout
    return inside if Path(inside).is_dir() else checkout


def _find_main_checkout(state: AgentState, above: Workdir) -> str | None:
    """The source of an agent's worktree; hooks make theirs anywhere."""
    if not state.worktree_path:
        return None
    if not state.worktree_branch:
        return above.root
    return state.worktree_path.rpartition(f"/{WORKTREES}/")[0]
