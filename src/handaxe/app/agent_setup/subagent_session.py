"""The session of a subagent: its own directory, read ledger and log; the rest is shared.

Shared are the files, the undo record, hooks, settings and permission prompts.
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
from handaxe.agent.subagents.registry import SubagentSession
from handaxe.agent.subagents.spawn import SpawnedAgents
from handaxe.agent.system_prompt import PromptParts, build_system_prompt
from handaxe.app.agent_setup.prompt_builder import SharedPromptContext
from handaxe.app.agent_setup.session_loop_context import (
    ServerInstructions,
    ToolSpecs,
    build_request_origin,
    collect_changes,
    collect_notes,
    collect_reminders,
)
from handaxe.app.agent_setup.subagent_builder import SubagentBuilder
from handaxe.app.session import Session, get_parts
from handaxe.catalog.deferred_tools import DeferredToolAnnouncer
from handaxe.contract.ports.agents import AgentDefinition, AgentState
from handaxe.contract.ports.model import ToolSpec
from handaxe.contract.ports.skills import Skills
from handaxe.contract.tool import Tool
from handaxe.pipeline.streaming import CallStream, OnResult
from handaxe.skills.listing import SkillAnnouncer
from handaxe.text.framing import neutralize

_ISOLATED = (
    "This is a worktree of your own: it holds what was committed when you started, and nothing "
    "that the main checkout has not committed. Work below the working directory only."
)
Surround = Callable[[], SharedPromptContext]


class SubagentSessionFactory:
    """Opens sessions for the agents of one session."""

    def __init__(self, session: Session, directory: Path, surround: Surround) -> None:
        self._session = session
        self._directory = directory
        self._surround = surround
        self._specs: dict[Tool[Any], ToolSpec] = {}

    def make(
        self, state: AgentState, kind: AgentDefinition, agents: SpawnedAgents
    ) -> SubagentSession:
        """The session of one agent; a resumed agent gets its state back."""
        place = _SubagentState(self._session, self._directory / state.agent_id, state, kind, agents)
        specs = ToolSpecs(place.workplace.pipeline_context, self._specs)
        place.workplace.specs, place.workplace.waiting_specs = specs, specs.list_waiting
        agents.pipeline_context = place.workplace.pipeline_context
        agents.paths.calls = place.conversation.call_ids
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
    """The parts of one agent."""

    def __init__(
        self,
        session: Session,
        directory: Path,
        state: AgentState,
        kind: AgentDefinition,
        agents: SpawnedAgents,
    ) -> None:
        self._session = session
        self._path = state.path
        self._is_closed = False
        self.memory_files: InstructionFiles | None = None
        self._built = built = SubagentBuilder(session, directory, state, kind, agents)
        built.build()
        built.resume()
        self.workdir = built.workdir
        self.conversation = AgentConversation.from_events(
            built.history.said, built.recorder.result_of
        )
        self.nearby = NestedMemory(
            built.ledger,
            built.recorder.emit,
            built.history.instructions,
            partial(notify_instructions_loaded, built.pipeline_context),
        )
        self.workplace = self._build_loop_context()

    def _build_loop_context(self) -> LoopContext:
        built, nearby = self._built, self.nearby
        announcer = DeferredToolAnnouncer(built.deferral)
        skills = SkillAnnouncer(built.ports, self._session.settings)
        words = ServerInstructions(built.ports, built.catalog.list_visible_names)
        workplace = LoopContext(
            pipeline_context=built.pipeline_context,
            open_stream=self._stream,
            specs=ToolSpecs(built.pipeline_context),
            notes=lambda: (
                *collect_notes(announcer, skills, words),
                *built.resources.notes(built.ports.get(Skills)),
            ),
            changes=lambda: collect_changes(announcer, nearby, skills, words),
            nearby=nearby,
            subscribe=built.recorder.subscribe,
            new_call_id=built.new_call_id,
            flush=built.recorder.flush,
            origin=build_request_origin(self._session, self._path),
            reminders=lambda: collect_reminders(built.ports, nearby, skills),
        )
        if built.jobs is not None:
            workplace.notices = built.jobs.list_notices
            workplace.mark_told = built.jobs.mark_told
        return workplace

    async def ready(self) -> None:
        """Connect the servers that the agent needs."""
        if self.memory_files is not None:
            await self.nearby.follow(self.memory_files)
        await self._built.resources.open(self.workplace.pipeline_context.catalog)

    async def close(self, *, keeps: bool = False) -> None:
        """Close the agent's resources; its log stays, and commands that it `keeps` continue."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._built.jobs is not None:
            await self._built.jobs.leave(keeps=keeps)
        await self._built.resources.close()
        for service in self._built.services.members:
            await service.close()
        await self._built.recorder.close()

    def _stream(self, on_result: OnResult) -> CallStream:
        parts = get_parts(self._session)
        parts.follow()
        self._built.pipeline_context.opening = parts.pipeline_context.opening
        return CallStream(
            self._built.pipeline, on_result=on_result, noted=self._built.recorder.add_log_note
        )
