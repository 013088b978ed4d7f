"""The agent for library users: a model at work in a session, as a stream of events."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
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

_SLACK_S = 0.01  # The run's own clock starts a little later; it has to agree.
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
        wait_for_commands_s: float = 0.0,
        defer_calls: bool = True,
        record: PathLike | None = None,
        **session_options: Any,  # noqa: ANN401 - those of `Session`
    ) -> None:
        if session is not None and session_options:
            named = ", ".join(sorted(session_options))
            raise SetupError(f"Give the session its own options: {named}.")
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
        self._chosen = parts.chosen
        """Whom the log names for this session."""
        self.kind = parts.kind
        """The type of agent that leads the session, if one was chosen."""
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
        """What the first run waits for: servers that always have to be there, or all of them."""
        self.wakes = AgentWakes(self.loop, self.session)
        self._at_end = CleanupService(self._end_agents)
        self._session_parts.services.members.append(self._at_end)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop what runs; the session is closed too if the agent opened it."""
        await self.loop.stop()
        await self._end_agents()
        if self._at_end in self._session_parts.services.members:
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
        """Tell hooks of the session's start; the first message that one of them has, if any."""
        context = self._session_parts.pipeline_context
        if context.opening is not None:
            await context.opening()
        hooks = self._session_parts.hooks
        said, hooks.first_message = hooks.first_message, None
        return said

    async def run(
        self,
        prompt: Prompt | None,
        *,
        message_id: str | None = None,
        answers: Answers | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Work on a prompt; every event as it happens, `RunFinished` last.

        None goes on with the conversation as it is. `message_id` is the prompt's id from then on,
        `answers` are those to questions of `pending`, by the ids of the calls.
        """
        await self._close_left()
        questions = self._session_parts.pipeline_context.questions
        said = {} if answers is None else questions.check_answers(answers)
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
                    questions.answers |= said
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
                # What a skill allowed and chose was for this prompt.
                self.session.permissions.end_turn()
                self.loop.model, self.loop.options = self.model, self._parts.options

    async def _wait_for_services(self) -> None:
        """Wait for what the first answer should know of."""
        if not self._has_waited:
            self._has_waited = True
            self._session_parts.follow()
            for service in self._session_parts.services.members:
                await service.wait_ready(self.server_wait)

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

    async def ask(self, prompt: Prompt | None, *, answers: Answers | None = None) -> RunFinished:
        """Work on a prompt to its end; `answers` as for `run`."""
        last: AgentEvent | None = None
        async for event in self.run(prompt, answers=answers):
            last = event
        assert isinstance(last, RunFinished)
        return last

    async def wait_for_work(self, timeout_s: float | None = None) -> bool:
        """Wait until background work has something to tell, which `run(None)` lets it hear."""
        await self._close_left()
        return await self.wakes.wait(timeout_s)

    async def compact(self, instructions: str = "") -> Compacted | None:
        """Make the conversation shorter now, with wishes for the summary."""
        with hold_conversation(self._session_parts, self.loop, self):
            await self.prompts.load(self.workplace)
            return await self.loop.compact(instructions)

    def send(self, prompt: Prompt) -> None:
        """Say something to the agent while it works."""
        refuse_if_empty(prompt)
        get_parts(self.session).give_way_to_user()
        self.loop.send(prompt)

    def interrupt(self) -> bool:
        """Stop the run now; whether there was one."""
        return self.loop.interrupt()

    def suspend(self) -> bool:
        """Stop because the process ends: nothing is said of it, so that the work can go on."""
        return self.loop.suspend()

    def set_model(self, model: Model | str) -> None:
        """Talk to another model from the next answer on."""
        chosen = self._parts.models.resolve(model)
        self.meter.check_prices(chosen.name)
        self._parts.models.switch(chosen, model if isinstance(model, str) else "")
        self.loop.model = chosen
        self.prompts.model = chosen.name
        add_edit_tool(self.session, chosen)

    def _note_choice(self) -> None:
        """Write down who was named for the work, so that a resumed session goes on with them."""
        now, last = (self._parts.models.name, self._parts.agent_name), self._chosen
        if now != (last.model, last.agent):
            self._chosen = AgentChosen(model=now[0], agent=now[1])
            self._session_parts.pipeline_context.emit(self._chosen)

    async def _end_agents(self) -> None:
        """Stop every agent, and what is theirs alone such as servers."""
        await self.agents.close()
        if self._parts.main is not None:
            await self._parts.main.close()

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
            self.loop.options = msgspec.structs.replace(self._parts.options, effort=effort)
        chosen = None if model is None else self._parts.models.open_for_turn(model, source)
        if chosen is not None:
            self.loop.model = chosen

    def system_prompt(self) -> tuple[str, ...]:
        """What the model is told before the conversation, in parts."""
        return self.prompts.system(self.workplace.specs())
