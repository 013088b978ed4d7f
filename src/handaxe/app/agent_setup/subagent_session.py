"""A place of its own for each sub-agent: directory, memory of files, log; the rest is shared.

Shared are the files themselves, the undo record, hooks, settings and whoever answers questions.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from handaxe.agent.conversation import AgentConversation
from handaxe.agent.loop_context import LoopContext
from handaxe.agent.memory.instruction_files import InstructionFiles
from handaxe.agent.memory.nested_memory import NestedMemory, notify_instructions_loaded
from handaxe.agent.subagents.policy import SubagentPolicy, SubagentRestrictions, make_tool_filter
from handaxe.agent.subagents.registry import SubagentSession
from handaxe.agent.subagents.spawn import SpawnedAgents
from handaxe.agent.subagents.worktree import find_linked_directories
from handaxe.agent.system_prompt import PromptParts, build_system_prompt
from handaxe.app.agent_setup.prompt_builder import SharedPromptContext
from handaxe.app.agent_setup.session_loop_context import (
    ServerInstructions,
    ToolSpecs,
    collect_changes,
    collect_notes,
    collect_reminders,
)
from handaxe.app.agent_setup.subagent_resources import AgentResources
from handaxe.app.resume import resume_agent, resume_state
from handaxe.app.services.service import SessionContext, SessionService
from handaxe.app.session import Session
from handaxe.catalog.deferred_tools import DeferredToolAnnouncer, build_deferral
from handaxe.catalog.edit_formats import choose_edit_tool
from handaxe.config.settings_paths import WORKTREES
from handaxe.contract.effects import Effects
from handaxe.contract.events import SessionStarted
from handaxe.contract.ports.agents import AgentDefinition, Agents, AgentState
from handaxe.contract.ports.model import ToolSpec
from handaxe.contract.ports.result_store import ResultStore
from handaxe.contract.ports.skills import Skills
from handaxe.contract.ports.tools import ToolCaller, ToolIndex
from handaxe.contract.ports.undo import ChangeHistory, Checkpoints
from handaxe.contract.tool import Tool
from handaxe.hooks.notify import notify_directory_change
from handaxe.permission.decide import build_hidden_check
from handaxe.pipeline.pipeline import CallIdGenerator, PipelineCaller, ToolPipeline
from handaxe.pipeline.streaming import CallStream, OnResult
from handaxe.session.applied_edits import AppliedEdits
from handaxe.session.jobs import Jobs
from handaxe.session.loaded_tools import LoadedTools
from handaxe.session.port_registry import PortRegistry
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.turn_overrides import TurnOverrides
from handaxe.session.workdir import Workdir
from handaxe.skills.listing import SkillAnnouncer
from handaxe.storage.event_recorder import EventRecorder
from handaxe.storage.result_store import DiskResultStore
from handaxe.storage.sessions import LOG_NAME, SessionHistory, read_history
from handaxe.text.framing import neutralize
from handaxe.text.paths import is_inside
from handaxe.version import __version__

_ISOLATED = (
    "This is a worktree of your own: it holds what was committed when you started, and nothing "
    "that the main checkout has not committed. Work below the working directory only."
)
Surround = Callable[[], SharedPromptContext]


class SubagentSessionFactory:
    """Makes places for the agents of one session."""

    def __init__(self, session: Session, directory: Path, surround: Surround) -> None:
        self._session = session
        self._directory = directory
        self._surround = surround
        self._specs: dict[Tool[Any], ToolSpec] = {}

    def make(
        self, state: AgentState, kind: AgentDefinition, agents: SpawnedAgents
    ) -> SubagentSession:
        """A place for one agent; one that worked before finds what it knew."""
        place = _SubagentState(self._session, self._directory / state.agent_id, state, kind, agents)
        place.workplace.specs = ToolSpecs(place.workplace.pipeline_context, self._specs)
        agents.pipeline_context = place.workplace.pipeline_context
        session_context = self._surround()
        environment, memory, files = (
            session_context.environment,
            session_context.memory,
            session_context.files,
        )
        environment = msgspec.structs.replace(environment, directory=place.workdir.current)
        if state.worktree_path:
            branch = f"Branch: {state.worktree_branch}\n" if state.worktree_branch else ""
            git = f"{branch}{_ISOLATED}"
            environment = msgspec.structs.replace(environment, git=git, more_directories=())
        if kind.is_lean:
            environment, memory, files = msgspec.structs.replace(environment, git=""), (), None
        place.memory_files = files and files.copy(place.workdir.current)

        own_notes = place.workplace.notes()

        def system(specs: Sequence[ToolSpec]) -> tuple[str, ...]:
            return build_system_prompt(
                PromptParts(
                    tools=tuple(spec.name for spec in specs),
                    environment=environment,
                    memory=memory,
                    kinds=agents.kinds() if agents.may_start else (),
                    notes=own_notes,
                    replace=neutralize(kind.prompt) or None,
                    append=session_context.append,
                )
            )

        return SubagentSession(
            workplace=place.workplace,
            conversation=place.conversation,
            system=system,
            ready=place.ready,
            close=place.close,
        )


class _SubagentState:
    """Everything that is one agent's own."""

    def __init__(
        self,
        session: Session,
        directory: Path,
        state: AgentState,
        kind: AgentDefinition,
        agents: SpawnedAgents,
    ) -> None:
        log = directory / LOG_NAME
        history = read_history(log) if log.exists() else SessionHistory()
        parent = agents.pipeline_context
        self._session = session
        self._agent_id = state.agent_id
        self._new_call_id = CallIdGenerator()
        self._is_closed = False
        self.memory_files: InstructionFiles | None = None
        self._record = EventRecorder(log, self._opening, session.configuration.redactor)
        emit = self._record.emit
        results = DiskResultStore(
            directory / "results",
            retention_days=session.settings.retention_days,
            redactor=session.configuration.redactor,
        )
        above = parent.workdir
        checkout = state.worktree_path or None
        self.workdir = Workdir(
            (checkout,) if checkout else above.roots,
            home=above.home,
            spellings={} if checkout else above.spellings,
            free_to_read=(
                *above.free_to_read,
                str(results.directory),
                *find_linked_directories(state, session.settings.worktree.symlink_directories),
            ),
            own_places=above.own_places,
            announce=lambda old, new: notify_directory_change(self._context, old, new),
        )
        self.workdir.current = _find_start_directory(state, above)
        session_context = msgspec.structs.replace(
            session.session_context, session_directory=directory, workdir=self.workdir,
            results=results, emit=emit, pipeline_context=lambda: self._context, recovered=(),
        )  # fmt: skip
        self._equipment = AgentResources(kind, session_context, parent.hooks, emit=emit)
        own = self._equipment.memory.places if self._equipment.memory else ()
        self.workdir.free_to_read = (*self.workdir.free_to_read, *own)
        policy = SubagentPolicy(
            parent.policy,
            above,
            self.workdir,
            SubagentRestrictions(
                mode=state.permission_mode,
                checkout=checkout,
                project=_find_main_checkout(state, above),
                memory=own,
            ),
        )
        ledger, edits = ReadLedger(emit), AppliedEdits(emit)
        offers = PortRegistry(
            {
                **parent.offers,
                Workdir: self.workdir,
                ReadLedger: ledger,
                AppliedEdits: edits,
                Agents: agents,
                ResultStore: results,
                ToolCaller: (caller := PipelineCaller()),
            }
        )
        # What the session changed is the session's to put back.
        offers.pop(ChangeHistory, None)
        # A skill that an agent runs chooses no model for anybody else.
        offers.pop(TurnOverrides, None)
        jobs = parent.offers.get(Jobs)
        self._jobs: Jobs | None = jobs and jobs.share_with_agent(state.agent_id)
        if self._jobs is not None:
            offers[Jobs] = self._jobs
        self._companions = _create_agent_services(session, session_context, history)
        for companion in self._companions:
            offers.add(companion.offers)
        catalog = parent.catalog.narrow(
            make_tool_filter(kind, may_start_agents=agents.may_start, among=state.tools), offers
        )
        catalog.edit_tool = choose_edit_tool(session.settings.edit, state.model)
        catalog.ask_what_is_hidden(lambda: build_hidden_check(policy()))
        deferral = build_deferral(catalog, offers[LoadedTools], session.settings)
        offers[ToolIndex] = deferral
        context = msgspec.structs.replace(
            parent,
            catalog=catalog,
            deferral=deferral,
            offers=offers,
            workdir=self.workdir,
            policy=policy,
            hooks=self._equipment.hooks,
            emit=emit,
            results=results,
            checkpoints=_PrefixedCheckpoints(parent.checkpoints, state.agent_id)
            if parent.checkpoints
            else None,
            opening=None,
            may_put_off=None,
            agent_transcript_path=str(log),
            agent_id=state.agent_id,
            agent_type=kind.name,
        )
        self._context = context
        caller.join(context)
        self._pipeline = ToolPipeline(
            context,
            lanes=session.settings.max_parallel_calls,
            recall=self._record.log.result_of,
        )
        resume_state(history, ledger, edits, self.workdir)
        resume_agent(history, state.agent_id, self._record, self._pipeline)
        self.conversation = AgentConversation.from_events(history.said, self._record.log.result_of)
        announcer = DeferredToolAnnouncer(deferral)
        nearby = self.nearby = NestedMemory(
            ledger, emit, history.instructions, partial(notify_instructions_loaded, context)
        )
        skills = SkillAnnouncer(offers, session.settings)
        words = ServerInstructions(offers, catalog.list_visible_names)
        self.workplace = LoopContext(
            pipeline_context=context,
            open_stream=self._stream,
            specs=ToolSpecs(context),
            notes=lambda: (
                *collect_notes(announcer, skills, words),
                *self._equipment.notes(offers.get(Skills)),
            ),
            changes=lambda: collect_changes(announcer, nearby, skills, words),
            nearby=nearby,
            subscribe=self._record.subscribe,
            new_call_id=self._new_call_id,
            flush=self._record.flush,
            reminders=lambda: collect_reminders(offers, nearby, skills),
        )
        if self._jobs is not None:
            self.workplace.notices = self._jobs.take_notices

    async def ready(self) -> None:
        """Reach what the agent waits for before it begins."""
        if self.memory_files is not None:
            await self.nearby.follow(self.memory_files)
        await self._equipment.open(self.workplace.pipeline_context.catalog)

    async def close(self, *, keeps: bool = False) -> None:
        """End what is the agent's own; its log stays, and commands that it `keeps` go on."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._jobs is not None:
            await self._jobs.leave(keeps=keeps)
        await self._equipment.close()
        for companion in self._companions:
            await companion.close()
        await self._record.close()

    def _stream(self, on_result: OnResult) -> CallStream:
        self._session.follow()
        self._context.opening = self._session.pipeline_context.opening
        return CallStream(self._pipeline, on_result=on_result, noted=self._record.add_log_note)

    def _opening(self) -> SessionStarted:
        return SessionStarted(
            session_id=self._agent_id,
            root=self.workdir.root,
            mode=self._session.permissions.mode,
            version=__version__,
        )


class _PrefixedCheckpoints(Checkpoints):
    """The session's undo record, with the agent's calls under names of their own."""

    def __init__(self, record: Checkpoints, agent_id: str) -> None:
        self._record = record
        self._agent_id = agent_id

    async def before(self, call_id: str, tool: str, effects: Effects) -> None:
        """The call is about to change something."""
        await self._record.before(f"{self._agent_id}.{call_id}", tool, effects)

    async def after(self, call_id: str) -> tuple[str, ...]:
        """The call is over; what there is to say about it."""
        return await self._record.after(f"{self._agent_id}.{call_id}")

    async def find_loss(self, effects: Effects, paths: Sequence[str]) -> str:
        """Why what lies at these paths could not be put back after a call."""
        return await self._record.find_loss(effects, paths)


def _find_start_directory(state: AgentState, above: Workdir) -> str:
    """Where an agent begins: where its parent stands, or the same place of its own checkout."""
    checkout, top = state.worktree_path, _find_main_checkout(state, above)
    if not checkout or top is None:
        return above.current
    inside = checkout + above.current[len(top) :] if is_inside(above.current, top) else checkout
    return inside if Path(inside).is_dir() else checkout


def _find_main_checkout(state: AgentState, above: Workdir) -> str | None:
    """What an agent's own checkout was made from; hooks make theirs anywhere."""
    if not state.worktree_path:
        return None
    if not state.worktree_branch:
        return above.root
    return state.worktree_path.rpartition(f"/{WORKTREES}/")[0]


def _create_agent_services(
    session: Session, session_context: SessionContext, history: SessionHistory
) -> list[SessionService]:
    made = [
        companion.create_for_agent(session_context, history) for companion in session.companions
    ]
    return [companion for companion in made if companion is not None]
