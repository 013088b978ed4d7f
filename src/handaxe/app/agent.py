"""The agent for library users: a model at work in a session, as a stream of events."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Self

import msgspec

from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import AgentEvent, RunFinished, Told
from handaxe.agent.input_messages import Prompt, refuse_if_empty
from handaxe.agent.limits import LoopOptions, Meter, Price, RunLimits
from handaxe.agent.loop import AgentLoop
from handaxe.agent.model_hooks import SessionHookModels
from handaxe.agent.output_styles import (
    FOLDER,
    OutputStyles,
    filter_existing,
    find_project_style_dirs,
)
from handaxe.agent.structured_output import FinalOutput
from handaxe.agent.subagents.definitions import validate_effort
from handaxe.agent.subagents.registry import SpawnLimits
from handaxe.app.agent_setup.main_agent import (
    MainAgent,
    choose_main_agent,
    choose_main_prompt,
    find_agent_definitions,
)
from handaxe.app.agent_setup.prompt_builder import PromptOptions, SystemPromptBuilder
from handaxe.app.agent_setup.session_loop_context import build_loop_context
from handaxe.app.agent_setup.subagent_service import SubagentOptions, attach_subagents
from handaxe.app.services.service import Arriving, CleanupService
from handaxe.app.session import PathLike, Session
from handaxe.catalog.edit_formats import choose_edit_tool
from handaxe.config.settings import Settings
from handaxe.config.settings_paths import is_users_own
from handaxe.contract.content import TextBlock
from handaxe.contract.events import AgentChosen, Compacted
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import Message
from handaxe.contract.ports.model import Model
from handaxe.models.api_key_helper import EnvironmentWithKey
from handaxe.session.turn_overrides import TurnOverrides
from handaxe.storage.home import MANAGED_DIRECTORIES, get_user_directories

OpenModel = Callable[[str | None], Model]

_SLACK_S = 0.01
"""The run's own clock starts a little later; it has to agree that the time is up."""
_MOMENT = 5
"""So many turns of the event loop pass at most until a loop that was left is being closed."""


class Agent:
    """A model that works in a project.

    Use it as `async with Agent(model, session) as agent: async for event in agent.run("...")`.
    A session with a past goes on where its conversation ended.
    """

    def __init__(  # noqa: PLR0913 - the whole door to an agent, keyword-only
        self,
        model: Model | str | None = None,
        session: Session | None = None,
        *,
        root: PathLike = ".",
        open_model: OpenModel | None = None,
        system_prompt: str | None = None,
        append_system_prompt: str = "",
        append_subagent_system_prompt: str = "",
        style: str = "",
        output_style: str | None = None,
        agent: str | None = None,
        effort: str | None = None,
        memory: bool = True,
        max_turns: int | None = None,
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        max_wall_s: float | None = None,
        prices: Mapping[str, Price] | None = None,
        output_schema: dict[str, Any] | None = None,
        max_output_tokens: int = 16_000,
        thinking_tokens: int | None = None,
        stop_after_nudges: int | None = None,
        agents: Mapping[str, Any] | None = None,
        agent_limits: SpawnLimits | None = None,
        context_apart: bool = False,
        wait_for_agents_s: float = 600.0,
        defer_calls: bool = True,
        **session_options: Any,  # noqa: ANN401 - those of `Session`
    ) -> None:
        if session is not None and session_options:
            named = ", ".join(sorted(session_options))
            raise SetupError(f"Give the session its own options: {named}.")
        self._owns_session = session is None
        self.session = session or Session(root, **session_options)
        settings = self.session.settings
        kinds = find_agent_definitions(self.session, agents)
        self._chosen = earlier = self.session.chosen or AgentChosen()
        """Whom the log names for this session."""
        known = {kind.name for kind in kinds()} if earlier.agent else set[str]()
        self._agent_name = agent or (earlier.agent if earlier.agent in known else "")
        self.kind = kind = choose_main_agent(self._agent_name or settings.agent, kinds)
        """The type of agent that leads the session, if one was chosen."""
        self._open_model = open_model = open_model or make_model_opener(settings)
        resumed = _resume_model(earlier.model, open_model) if model is None else None
        self._model_name = model if isinstance(model, str) else earlier.model if resumed else ""
        self.model = resumed or _resolve_model(
            model or (kind and kind.model) or settings.model, open_model
        )
        self._owns_model = not isinstance(model, Model)
        self._left: list[Model] = []
        self._wished: dict[str, Model] = {}
        limits = RunLimits(
            max_turns=kind.max_turns if max_turns is None and kind else max_turns,
            max_tokens=max_tokens,
            max_cost_usd=max_cost_usd,
            max_wall_s=max_wall_s,
        )
        self.meter = Meter(limits, prices)
        self.meter.check_prices(self.model.name)
        self._output = FinalOutput(output_schema) if output_schema is not None else None
        if self._output is not None:
            self.session.catalog.add(self._output.tool())
        self._choose_edit_tool()
        self.workplace = build_loop_context(self.session)
        self._main = kind and MainAgent(kind, self.session, self.workplace)
        self.styles = find_output_styles(self.session)
        self.output_style = self.styles.find(output_style or settings.output_style)
        self._prompts = SystemPromptBuilder(
            self.session,
            self.model.name,
            PromptOptions(
                replace=choose_main_prompt(kind, system_prompt),
                append=append_system_prompt,
                append_for_agents=append_subagent_system_prompt,
                style=style or self.output_style.text,
                style_is_whole=not style and self.output_style.is_whole,
                memory=memory,
                apart=context_apart and system_prompt is None,
            ),
        )
        self._prompts.problems = tuple(self.styles.problems)
        self._options = options = LoopOptions(
            max_output_tokens=max_output_tokens,
            thinking_tokens=thinking_tokens,
            effort=validate_effort(effort) or (kind and kind.effort) or settings.effort_level,
            auto_compact=settings.auto_compact_enabled,
            stop_after_nudges=stop_after_nudges,
            wait_for_agents_s=wait_for_agents_s,
            may_put_off=defer_calls,
        )
        self.loop = AgentLoop(
            self.model,
            self.workplace,
            AgentConversation.from_events(
                self.session.said, self.session.result_of, self.session.put_off
            ),
            system=self._prompts.system,
            meter=self.meter,
            output=self._output,
            options=options,
        )
        self.agents = attach_subagents(
            self.session,
            self.loop,
            self.workplace,
            self._prompts,
            SubagentOptions(
                kinds=kinds,
                limits=agent_limits,
                open_model=self._opened,
                options=options,
            ),
        )
        self._hook_models = SessionHookModels(self.agents, self.meter, self._opened)
        self.session.pipeline_context.hooks.models = self._hook_models

        self.session.pipeline_context.offers[TurnOverrides] = TurnOverrides(
            self._override_turn, lambda: self.loop.options.effort
        )
        self._is_left = self._has_waited = False
        self.patience: Arriving = "needed"
        """What the first run waits for: servers that always have to be there, or all of them."""
        self._at_end = CleanupService(self._end_agents)
        self.session.companions.append(self._at_end)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop what runs; the session is closed too if the agent opened it."""
        await self.loop.stop()
        await self._end_agents()
        if self._at_end in self.session.companions:
            self.session.companions.remove(self._at_end)
        hooks = self.session.pipeline_context.hooks
        if hooks.models is self._hook_models:
            hooks.models = None
        await self._hook_models.close()
        owned = (self.model,) if self._owns_model else ()
        for model in (*self._left, *owned):
            await model.close()
        if self._owns_session:
            await self.session.close()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return self.loop.conversation.messages

    async def begin(self) -> str | None:
        """Tell hooks of the session's start; the first message that one of them has, if any."""
        context = self.session.pipeline_context
        if context.opening is not None:
            await context.opening()
        said, self.session.hooks.first_message = self.session.hooks.first_message, None
        return said

    async def run(
        self, prompt: Prompt | None, *, message_id: str | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Work on a prompt; every event as it happens, `RunFinished` last.

        None goes on with the conversation as it is. `message_id` is what the prompt is known by
        from then on; without one it gets a new id.
        """
        await self._close_left()
        if self._main is not None:
            await self._main.open()
        await self._wait_for_services()
        for note in await self._prompts.load(self.workplace):
            yield Told(note)
        if not self.messages and (context := self._prompts.context):
            self.session.pipeline_context.hooks.late.insert(0, context)
        self._note_choice()
        prompt = self._add_initial_prompt(prompt)
        if prompt is not None:
            refuse_if_empty(prompt)
        late = self._interrupt_when_late()
        try:
            async with aclosing(self.loop.run(prompt, message_id)) as events:
                try:
                    async for event in events:
                        yield event
                except GeneratorExit:
                    self._is_left = True
                    raise
        finally:
            late.cancel()
            self._is_left = False
            # What a skill allowed and chose was for this prompt.
            self.session.permissions.end_turn()
            self.loop.model, self.loop.options = self.model, self._options

    async def _wait_for_services(self) -> None:
        """Wait for what the first answer should know of."""
        if not self._has_waited:
            self._has_waited = True
            self.session.follow()
            for companion in self.session.companions:
                await companion.wait_ready(self.patience)

    def _interrupt_when_late(self) -> asyncio.Handle:
        """Stop the run when its time is up, whatever it waits for."""
        loop, limit_s = asyncio.get_running_loop(), self.meter.limits.max_wall_s
        if limit_s is None:
            return loop.call_soon(lambda: None)
        return loop.call_later(limit_s + _SLACK_S, self.loop.interrupt)

    async def _close_left(self) -> None:
        """Whoever leaves the loop over a run's events closes it, but only a moment later."""
        for _ in range(_MOMENT):
            if not self.loop.is_running:
                return
            await asyncio.sleep(0)
        if self._is_left:
            await self.loop.stop()

    async def ask(self, prompt: Prompt | None) -> RunFinished:
        """Work on a prompt to its end."""
        final: RunFinished | None = None
        async for event in self.run(prompt):
            if isinstance(event, RunFinished):
                final = event
        assert final is not None
        return final

    async def compact(self, instructions: str = "") -> Compacted | None:
        """Make the conversation shorter now, with wishes for the summary."""
        await self._prompts.load(self.workplace)
        return await self.loop.compact(instructions)

    def send(self, prompt: Prompt) -> None:
        """Say something to the agent while it works."""
        refuse_if_empty(prompt)
        self.session.interrupt()
        self.loop.send(prompt)

    def interrupt(self) -> bool:
        """Stop the run now; whether there was one."""
        return self.loop.interrupt()

    def suspend(self) -> bool:
        """Stop because the process ends: nothing is said of it, so that the work can go on."""
        return self.loop.suspend()

    def set_model(self, model: Model | str) -> None:
        """Talk to another model from the next answer on."""
        chosen = _resolve_model(model, self._open_model)
        self.meter.check_prices(chosen.name)
        if chosen is not self.model:
            self._left.append(self.model)
        self.model = self.loop.model = chosen
        self._model_name = model if isinstance(model, str) else ""
        self._wished.clear()
        self._prompts.model = chosen.name
        self._choose_edit_tool()

    def _note_choice(self) -> None:
        """Write down who was named for the work, so that a resumed session goes on with them."""
        now, last = (self._model_name, self._agent_name), self._chosen
        if now != (last.model, last.agent):
            self._chosen = AgentChosen(model=now[0], agent=now[1])
            self.session.pipeline_context.emit(self._chosen)

    def _choose_edit_tool(self) -> None:
        """Offer the model the edit format that it knows best."""
        wanted = choose_edit_tool(self.session.settings.edit, self.model.name)
        self.session.catalog.edit_tool = wanted

    async def _end_agents(self) -> None:
        """Stop every agent, and what is theirs alone such as servers."""
        await self.agents.close()
        if self._main is not None:
            await self._main.close()

    def _opened(self, name: str | None) -> Model:
        return _resolve_model(name or self.model, self._open_model)

    def _add_initial_prompt(self, prompt: Prompt | None) -> Prompt | None:
        """The first prompt of all, after what the agent's type begins with."""
        begin = self.kind.initial_prompt if self.kind is not None and not self.messages else ""
        if not begin or prompt is None:
            return begin or prompt
        if isinstance(prompt, str):
            return f"{begin}\n\n{prompt}"
        return (TextBlock(begin), *prompt)

    def _override_turn(self, model: str | None, effort: str | None, source: str) -> None:
        """Another model or effort for the rest of the turn, as a skill wants it."""
        if effort is not None:
            self.loop.options = msgspec.structs.replace(self._options, effort=effort)
        is_vendors = model is not None and any(char in model for char in "/:")
        if model is None or (is_vendors and not is_users_own(Path(source))):
            # A project's file may not choose a vendor.
            return
        if model not in self._wished:
            try:
                self._wished[model] = _resolve_model(model, self._open_model)
            except SetupError:
                # A skill written for another provider still works, with the model at hand.
                self._wished[model] = self.model
            if self._wished[model] is not self.model:
                self._left.append(self._wished[model])
        self.loop.model = self._wished[model]

    def system_prompt(self) -> tuple[str, ...]:
        """What the model is told before the conversation, in parts."""
        return self._prompts.system(self.workplace.specs())


def make_model_opener(settings: Settings) -> OpenModel:
    """How a model is opened by its name, with the key that the settings' helper prints."""

    def open_one(name: str | None) -> Model:
        from handaxe.models.factory import open_model

        return open_model(name, env=env)

    env = None if settings.api_key_helper is None else EnvironmentWithKey(settings.api_key_helper)
    return open_one


def _resume_model(name: str, open_model: OpenModel) -> Model | None:
    """The model that an earlier run talked to, if it can still be opened."""
    try:
        return open_model(name) if name else None
    except SetupError:
        return None


def _resolve_model(model: Model | str | None, open_model: OpenModel) -> Model:
    return model if isinstance(model, Model) else open_model(model)


def find_output_styles(session: Session) -> OutputStyles:
    """The styles that count for a session; a project's own take no place before it is trusted."""
    configuration = session.configuration
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
