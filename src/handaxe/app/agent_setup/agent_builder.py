"""Build an agent from its arguments: model, limits, prompts, loop and subagents."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from handaxe.agent.agent_access import LoopAccess
from handaxe.agent.conversation import AgentConversation
from handaxe.agent.limits import LoopOptions, Meter, Price, RunLimits
from handaxe.agent.loop import AgentLoop
from handaxe.agent.loop_context import LoopContext
from handaxe.agent.output_styles import (
    FOLDER,
    OutputStyle,
    OutputStyles,
    filter_existing,
    find_project_style_dirs,
)
from handaxe.agent.structured_output import FinalOutput
from handaxe.agent.subagents.definition_files import AgentDefinitions
from handaxe.agent.subagents.definitions import validate_effort
from handaxe.agent.subagents.registry import SpawnLimits
from handaxe.agent.subagents.spawn import SpawnedAgents
from handaxe.app.agent_setup.agent_models import AgentModels
from handaxe.app.agent_setup.main_agent import (
    MainAgent,
    choose_main_agent,
    choose_main_prompt,
    find_agent_definitions,
)
from handaxe.app.agent_setup.prompt_builder import PromptOptions, SystemPromptBuilder
from handaxe.app.agent_setup.session_loop_context import build_loop_context
from handaxe.app.agent_setup.subagent_service import SubagentOptions, attach_subagents
from handaxe.app.builder import SessionParts
from handaxe.app.services.session_model import OpenModel, make_model_opener
from handaxe.app.session import Session, get_parts
from handaxe.catalog.edit_formats import choose_edit_tool
from handaxe.contract.events import AgentChosen
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.contract.ports.model import Model
from handaxe.storage.conversation_lock import ConversationLock
from handaxe.storage.home import MANAGED_DIRECTORIES, get_user_directories
from handaxe.storage.sessions import SessionHistory


class AgentArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `Agent`, without those of its session."""

    model: Model | str | None
    open_model: OpenModel | None
    system_prompt: str | None
    append_system_prompt: str
    append_subagent_system_prompt: str
    style: str
    output_style: str | None
    agent: str | None
    effort: str | None
    memory: bool
    max_turns: int | None
    max_tokens: int | None
    max_cost_usd: float | None
    max_wall_s: float | None
    prices: Mapping[str, Price] | None
    output_schema: dict[str, Any] | None
    max_output_tokens: int
    thinking_tokens: int | None
    stop_after_nudges: int | None
    agents: Mapping[str, Any] | None
    agent_limits: SpawnLimits | None
    context_apart: bool
    wait_for_agents_s: float
    wait_for_commands_s: float
    defer_calls: bool
    record: Path | None


class AgentParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an agent."""

    chosen: AgentChosen
    """The model and agent type from the log."""
    agent_name: str
    """The name of the chosen agent type, now or in an earlier run."""
    kind: AgentDefinition | None
    models: AgentModels
    meter: Meter
    loop_context: LoopContext
    main: MainAgent | None
    styles: OutputStyles
    output_style: OutputStyle
    prompts: SystemPromptBuilder
    options: LoopOptions
    loop: AgentLoop
    access: LoopAccess
    """The interface of the loop for tools."""
    agents: SpawnedAgents


class AgentBuilder:
    """Builds an agent in a session, in the order of its parts' dependencies."""

    def __init__(self, session: Session, options: AgentArguments) -> None:
        self._session = session
        self._session_parts = get_parts(session)
        self._settings, self._given = session.settings, options

    def build(self) -> AgentParts:
        """Build all parts."""
        session = self._session
        kinds = find_agent_definitions(session, self._given.agents)
        self._history = read_history(self._session_parts)
        chosen = self._history.chosen or AgentChosen()
        agent_name = self.choose_agent_name(chosen, kinds)
        kind = choose_main_agent(agent_name or self._settings.agent, kinds)
        models = self.open_models(chosen, kind)
        self._session_parts.pipeline_context.open_model = models.open_beside
        meter = self.build_meter(models.current, kind)
        output = self.offer_output()
        add_edit_tool(session, models.current)
        context = build_loop_context(session)
        main = kind and MainAgent(kind, session, context)
        styles = find_output_styles(session)
        style = styles.find(self._given.output_style or self._settings.output_style)
        prompts = self.build_prompts(models.current, kind, style)
        prompts.problems = tuple(styles.problems)
        options = self.build_loop_options(kind)
        loop = self.build_loop(models.current, context, prompts, meter, output, options)
        subagents = SubagentOptions(
            kinds=kinds, limits=self._given.agent_limits, open_model=models.open, options=options
        )
        return AgentParts(
            chosen=chosen,
            agent_name=agent_name,
            kind=kind,
            models=models,
            meter=meter,
            loop_context=context,
            main=main,
            styles=styles,
            output_style=style,
            prompts=prompts,
            options=options,
            loop=loop,
            access=LoopAccess(loop, context.pipeline_context, context.origin),
            agents=attach_subagents(session, loop, context, prompts, subagents),
        )

    def choose_agent_name(self, chosen: AgentChosen, kinds: AgentDefinitions) -> str:
        """The chosen agent type, or the one of an earlier run if it still exists."""
        known = {kind.name for kind in kinds()} if chosen.agent else set[str]()
        return self._given.agent or (chosen.agent if chosen.agent in known else "")

    def open_models(self, chosen: AgentChosen, kind: AgentDefinition | None) -> AgentModels:
        """Open the model of the argument, the past, the agent type or the settings."""
        return AgentModels(
            self._given.model,
            self._given.open_model or make_model_opener(self._settings),
            earlier=chosen.model,
            default=(kind and kind.model) or self._settings.model,
            record=self._given.record,
        )

    def build_meter(self, model: Model, kind: AgentDefinition | None) -> Meter:
        """Count the usage of runs and enforce their limits."""
        given = self._given
        limits = RunLimits(
            max_turns=kind.max_turns if given.max_turns is None and kind else given.max_turns,
            max_tokens=given.max_tokens,
            max_cost_usd=given.max_cost_usd,
            max_wall_s=given.max_wall_s,
        )
        meter = Meter(limits, given.prices)
        meter.check_prices(model.name)
        return meter

    def offer_output(self) -> FinalOutput | None:
        """Offer the tool for the final answer, if it has a schema."""
        if self._given.output_schema is None:
            return None
        output = FinalOutput(self._given.output_schema)
        self._session_parts.catalog.add(output.tool())
        return output

    def build_prompts(
        self, model: Model, kind: AgentDefinition | None, style: OutputStyle
    ) -> SystemPromptBuilder:
        """The system prompt from arguments, agent type and style."""
        given = self._given
        options = PromptOptions(
            replace=choose_main_prompt(kind, given.system_prompt),
            append=given.append_system_prompt,
            append_for_agents=given.append_subagent_system_prompt,
            style=given.style or style.text,
            style_is_whole=not given.style and style.is_whole,
            memory=given.memory,
            apart=given.context_apart and given.system_prompt is None,
        )
        return SystemPromptBuilder(self._session, model.name, options)

    def build_loop_options(self, kind: AgentDefinition | None) -> LoopOptions:
        """The request options of the loop."""
        given, settings = self._given, self._settings
        return LoopOptions(
            max_output_tokens=given.max_output_tokens,
            thinking_tokens=given.thinking_tokens,
            effort=validate_effort(given.effort) or (kind and kind.effort) or settings.effort_level,
            auto_compact=settings.auto_compact_enabled,
            stop_after_nudges=given.stop_after_nudges,
            wait_for_agents_s=given.wait_for_agents_s,
            wait_for_commands_s=given.wait_for_commands_s,
            may_put_off=given.defer_calls,
        )

    def build_loop(
        self,
        model: Model,
        context: LoopContext,
        prompts: SystemPromptBuilder,
        meter: Meter,
        output: FinalOutput | None,
        options: LoopOptions,
    ) -> AgentLoop:
        """The loop, with the conversation so far."""
        return AgentLoop(
            model,
            context,
            build_conversation(self._session_parts, self._history),
            system=prompts.system,
            meter=meter,
            output=output,
            options=options,
        )


def build_conversation(parts: SessionParts, history: SessionHistory) -> AgentConversation:
    """The conversation of the log."""
    result_of, asked = parts.recorder.result_of, parts.pipeline_context.questions.asked
    return AgentConversation.from_events(history.said, result_of, history.put_off, asked)


def read_history(parts: SessionParts) -> SessionHistory:
    """The conversation of the log, with messages of agents since the session opened."""
    if not find_conversation_lock(parts).was_taken:
        return parts.history
    parts.recorder.flush()
    return parts.recorder.history()


def find_conversation_lock(parts: SessionParts) -> ConversationLock:
    """The lock on the session's conversation; made with its first agent."""
    lock = parts.ports.get(ConversationLock)
    if lock is None:
        place, shared = parts.session_context.data_home, parts.recorder.shared_calls is not None
        lock = ConversationLock(place, parts.session_context.session_id, shared=shared)
        parts.ports[ConversationLock] = lock
    return lock


@contextmanager
def hold_conversation(parts: SessionParts, loop: AgentLoop, owner: object) -> Generator[None]:
    """Hold the session's conversation and load what other agents added to it.

    Raises: SessionBusy: another agent has the conversation.
    """
    lock = find_conversation_lock(parts)
    if lock.take(owner):
        loop.conversation.become(build_conversation(parts, read_history(parts)))
    try:
        yield
    finally:
        # A second run of the same agent is refused; the first continues.
        if not loop.is_running:
            lock.release(owner)


def add_edit_tool(session: Session, model: Model) -> None:
    """Offer the edit format that suits the model."""
    get_parts(session).catalog.edit_tool = choose_edit_tool(session.settings.edit, model.name)


def find_output_styles(session: Session) -> OutputStyles:
    """The styles of a session; those of a project count only if it is trusted."""
    configuration = get_parts(session).configuration
    if not configuration.discovery.styles:
        return OutputStyles(list)
    here = session.workdir.current
    managed = filter_existing(Path(place) / FOLDER for place in MANAGED_DIRECTORIES)
    users = [Path(user) / FOLDER for user in get_user_directories()]
    own = filter_existing(users if "user" in configuration.sources else ())

    def projects() -> list[Path]:
        return find_project_style_dirs(here) if "project" in configuration.sources else []

    if configuration.is_trusted:
        return OutputStyles(lambda: [*managed, *projects(), *own])
    return OutputStyles(lambda: [*managed, *own], projects)
