"""The agent for library users: a model that works in a session, as a stream of events."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from handaxe.agent.events import AgentEvent, RunFinished, Told
from handaxe.agent.input_messages import Prompt, refuse_if_empty
from handaxe.agent.limits import Price
from handaxe.agent.model_hooks import SessionHookModels
from handaxe.agent.subagents.registry import SpawnLimits
from handaxe.app.agent_setup.agent_builder import (
    AgentArguments,
    AgentBuilder,
    AgentParts,
    add_edit_tool,
    hold_conversation,
)
from handaxe.app.agent_setup.agent_wakes import AgentWakes
from handaxe.app.services.service import Arriving, CleanupService
from handaxe.app.services.session_model import OpenModel
from handaxe.app.session import PathLike, Session, get_parts
from handaxe.contract.content import TextBlock
from handaxe.contract.events import AgentChosen, Compacted
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import Message
from handaxe.contract.ports.model import Model
from handaxe.session.pending_questions import Answers
from handaxe.session.turn_overrides import TurnOverrides

_SLACK_S = 0.01  # The clock of the run starts a little later.
_MAX_LOOP_TURNS = 5  # Until Python closes a run whose events are no longer read.


class Agent:
    """A model that works in a project.

    Use it as `async with Agent(model, session) as agent: async for event in agent.run("...")`.
    A resumed session continues its conversation.
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
        wait_for_commands_s: float = 0.0,
        defer_calls: bool = True,
        record: PathLike | None = None,
        **session_options: Any,  # noqa: ANN401 - those of `Session`
    ) -> None:
        if session is not None and session_options:
            named = ", ".join(sorted(session_options))
            raise SetupError(f"Pass these options to the session instead: {named}.")
        self._owns_session = session is None
        self.session = session or Session(root, **session_options)
        self._session_parts = get_parts(self.session)
        options = AgentArguments(
            model=model, open_model=open_model, system_prompt=system_prompt,
            append_system_prompt=append_system_prompt, style=style, output_style=output_style,
            append_subagent_system_prompt=append_subagent_system_prompt, agent=agent, effort=effort,
            max_turns=max_turns, max_tokens=max_tokens, max_cost_usd=max_cost_usd,
            max_wall_s=max_wall_s, prices=prices, output_schema=output_schema,
            max_output_tokens=max_output_tokens, thinking_tokens=thinking_tokens,
            stop_after_nudges=stop_after_nudges, agents=agents, agent_limits=agent_limits,
            context_apart=context_apart, memory=memory, defer_calls=defer_calls,
            wait_for_agents_s=wait_for_agents_s, wait_for_commands_s=wait_for_commands_s,
            record=None if record is None else Path(record).expanduser(),
        )  # fmt: skip
        self._take_parts(AgentBuilder(self.session, options).build())

    def _take_parts(self, parts: AgentParts) -> None:
        self._parts = parts
        self._chosen, self.kind = parts.chosen, parts.kind
        self.meter, self.loop, self.agents = parts.meter, parts.loop, parts.agents
        self.workplace, self.prompts = parts.loop_context, parts.prompts
        self.styles, self.output_style = parts.styles, parts.output_style
        self._hook_models = SessionHookModels(
            self.agents, self.meter, parts.models.open, parts.loop_context.origin
        )
        self._session_parts.pipeline_context.hooks.models = self._hook_models
        self._session_parts.pipeline_context.ports[TurnOverrides] = TurnOverrides(
            self._override_turn, lambda: self.loop.options.effort
        )
        self._is_left = self._has_waited = False
        self.server_wait: Arriving = "needed"
        self.wakes = AgentWakes(self.loop, self.session)
        self._at_end = CleanupService(self._end_agents)
        self._session_parts.services.members.append(self._at_end)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop the run; also close the session if the agent opened it."""
        await self.loop.stop()
        await self._end_agents()
        with suppress(ValueError):
            self._session_parts.services.members.remove(self._at_end)
        self.wakes.close()
        context = self._session_parts.pipeline_context
        if context.hooks.models is self._hook_models:
            context.hooks.models = None
        if context.agent is self._parts.access:
            context.agent = None
        await self._hook_models.close()
        await self._parts.models.close()
        if self._owns_session:
            await self.session.close()

    @property
    def model(self) -> Model:
        """The model in use."""
        return self._parts.models.current

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return self.loop.conversation.messages

    async def begin(self) -> str | None:
        """Run the SessionStart hooks and return the first message of one of them, if any."""
        context = self._session_parts.pipeline_context
        if context.opening is not None:
            await context.opening()
        hooks = self._session_parts.hooks
        first, hooks.first_message = hooks.first_message, None
        return first

    async def run(
        self,
        prompt: Prompt | None,
        *,
        message_id: str | None = None,
        answers: Answers | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Work on a prompt and yield every event as it happens, `RunFinished` last.

        None continues the conversation without a prompt. `message_id` becomes the prompt's id;
        `answers` answers questions of `pending`, by call id.
        """
        await self._close_left()
        questions = self._session_parts.pipeline_context.questions
        checked = questions.check_answers({} if answers is None else answers)
        with hold_conversation(self._session_parts, self.loop, self):
            if self._parts.main is not None:
                await self._parts.main.open()
            await self._wait_for_services()
            for note in await self.prompts.load(self.workplace):
                yield Told(note)
            if not self.messages and (context := self.prompts.context):
                self._session_parts.pipeline_context.hooks.late.insert(0, context)
            self._note_choice()
            prompt = self._add_initial_prompt(prompt)
            if prompt is not None:
                refuse_if_empty(prompt)
            late = self._interrupt_when_late()
            try:
                async with aclosing(self.loop.run(prompt, message_id)) as events:
                    questions.answers |= checked
                    try:
                        async for event in events:
                            yield event
                    except GeneratorExit:
                        self._is_left = True
                        raise
            finally:
                late.cancel()
                self._is_left = False
                questions.answers.clear()
                # Permissions and the model of a skill end with the prompt.
                self.session.permissions.end_turn()
                self.loop.model, self.loop.options = self.model, self._parts.options

    async def _wait_for_services(self) -> None:
        """Wait for servers and other services before the first answer."""
        if not self._has_waited:
            self._has_waited = True
            self._session_parts.follow()
            for service in self._session_parts.services.members:
                await service.wait_ready(self.server_wait)

    def _interrupt_when_late(self) -> asyncio.Handle:
        """Stop the run at its time limit."""
        loop, limit_s = asyncio.get_running_loop(), self.meter.limits.max_wall_s
        if limit_s is None:
            return loop.call_soon(lambda: None)
        return loop.call_later(limit_s + _SLACK_S, self.loop.interrupt)

    async def _close_left(self) -> None:
        """Wait for a run whose events are no longer read: Python closes it a moment later."""
        for _ in range(_MAX_LOOP_TURNS):
            if not self.loop.is_running:
                return
            await asyncio.sleep(0)
        if self._is_left:
            await self.loop.stop()

    async def ask(self, prompt: Prompt | None, *, answers: Answers | None = None) -> RunFinished:
        """Run a prompt to its end; `answers` as in `run`."""
        last: AgentEvent | None = None
        async for event in self.run(prompt, answers=answers):
            last = event
        assert isinstance(last, RunFinished)
        return last

    async def wait_for_work(self, timeout_s: float | None = None) -> bool:
        """Wait until background work has news for the model; `run(None)` delivers it."""
        await self._close_left()
        return await self.wakes.wait(timeout_s)

    async def compact(self, instructions: str = "") -> Compacted | None:
        """Compact the conversation now, with instructions for the summary."""
        with hold_conversation(self._session_parts, self.loop, self):
            await self.prompts.load(self.workplace)
            return await self.loop.compact(instructions)

    def send(self, prompt: Prompt) -> None:
        """Send a message to the agent while it works."""
        refuse_if_empty(prompt)
        get_parts(self.session).interrupt_for_user()
        self.loop.send(prompt)

    def interrupt(self) -> bool:
        """Stop the run now and return whether one was running."""
        return self.loop.interrupt()

    def suspend(self) -> bool:
        """Stop because the process ends, so that a later process can resume the work."""
        return self.loop.suspend()

    def set_model(self, model: Model | str) -> None:
        """Use another model from the next answer on."""
        chosen = self._parts.models.resolve(model)
        self.meter.check_prices(chosen.name)
        self._parts.models.switch(chosen, model if isinstance(model, str) else "")
        self.loop.model = chosen
        self.prompts.model = chosen.name
        add_edit_tool(self.session, chosen)

    def _note_choice(self) -> None:
        """Record model and agent type, so that a resumed session uses them again."""
        now, last = (self._parts.models.name, self._parts.agent_name), self._chosen
        if now != (last.model, last.agent):
            self._chosen = AgentChosen(model=now[0], agent=now[1])
            self._session_parts.pipeline_context.emit(self._chosen)

    async def _end_agents(self) -> None:
        """Stop all agents and the servers of their own."""
        await self.agents.close()
        if self._parts.main is not None:
            await self._parts.main.close()

    def _add_initial_prompt(self, prompt: Prompt | None) -> Prompt | None:
        """The first prompt, after the initial prompt of the agent type."""
        begin = self.kind.initial_prompt if self.kind is not None and not self.messages else ""
        if not begin or prompt is None:
            return begin or prompt
        return f"{begin}\n\n{prompt}" if isinstance(prompt, str) else (TextBlock(begin), *prompt)

    def _override_turn(self, model: str | None, effort: str | None, source: str) -> None:
        """Use another model or effort for the rest of the turn, for a skill."""
        if effort is not None:
            self.loop.options = msgspec.structs.replace(self._parts.options, effort=effort)
        if model is not None:
            self.loop.model = self._parts.models.open_for_turn(model, source) or self.loop.model

    def system_prompt(self) -> tuple[str, ...]:
        """The system prompt, in parts."""
        return self.prompts.system(self.workplace.specs())
