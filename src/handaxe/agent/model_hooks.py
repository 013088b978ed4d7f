"""Answer hooks that ask a model: with the session's model, or with a read-only agent."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Final
from uuid import uuid4

import msgspec

from handaxe.agent.compaction import request_text
from handaxe.agent.events import RunFinished
from handaxe.agent.limits import Meter, RunLimits
from handaxe.agent.loop import AgentLoop
from handaxe.agent.subagents.spawn import SpawnedAgents, SubagentSession
from handaxe.agent.system_prompt import load_prompt
from handaxe.contract.content import TextBlock
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import UserMessage
from handaxe.contract.ports.agents import AgentDefinition, AgentState
from handaxe.contract.ports.hooks import HookModels, HookQuestion, HookUnreachable
from handaxe.contract.ports.model import (
    Model,
    ModelFailed,
    ModelRequest,
    RequestOrigin,
)

MAX_TURNS = 50
ANSWER_TOKENS = 2_000
TOOLS: Final = ("Read", "Glob", "Grep", "Bash")
"""Bash in plan mode runs only provably read-only commands."""
_PATH = "hook"


class SessionHookModels(HookModels):
    """Answers the hooks of one agent's session."""

    def __init__(
        self,
        agents: SpawnedAgents,
        meter: Meter,
        open_model: Callable[[str | None], Model],
        origin: RequestOrigin,
    ) -> None:
        """`open_model` opens a model by name; None is the current one."""
        self._agents = agents
        self._meter = meter
        self._open = open_model
        self._origin = msgspec.structs.replace(origin, agent=_PATH)
        self._opened: dict[str, Model] = {}

    @property
    def name(self) -> str:
        """The model of the running agent."""
        return self._open(None).name

    async def answer(self, question: HookQuestion) -> str:
        """The last text of the answer."""
        model = self._model(question.model)
        try:
            if question.may_look:
                return await self._run_agent(model, question)
            return await self._said(model, question.prompt)
        except ModelFailed as failed:
            raise HookUnreachable(failed.sentence) from None

    async def close(self) -> None:
        """Close models that were opened only for hooks."""
        opened, self._opened = self._opened, {}
        for model in opened.values():
            await model.close()

    def _model(self, name: str | None) -> Model:
        if name is None:
            return self._open(None)
        if name not in self._opened:
            try:
                self._opened[name] = self._open(name)
            except SetupError:
                # A hook written for another provider still works with the current model.
                return self._open(None)
        return self._opened[name]

    async def _said(self, model: Model, prompt: str) -> str:
        request = ModelRequest(
            system=(load_prompt("hook_prompt"),),
            messages=(UserMessage((TextBlock(prompt),)),),
            max_tokens=ANSWER_TOKENS,
            origin=self._origin,
        )
        return await request_text(model, request, self._meter)

    async def _run_agent(self, model: Model, question: HookQuestion) -> str:
        meter = Meter(RunLimits(max_turns=MAX_TURNS), self._meter.prices, parent=self._meter)
        subagent = self._make_session(question, meter)
        loop = AgentLoop(
            model,
            subagent.workplace,
            subagent.conversation,
            system=subagent.system,
            meter=meter,
            options=self._agents.build_child_options(),
        )
        final: RunFinished | None = None
        try:
            async with aclosing(loop.run(question.prompt)) as events:
                async for event in events:
                    if isinstance(event, RunFinished):
                        final = event
        finally:
            await subagent.close()
        if final is None or final.is_error:
            raise HookUnreachable(final.result if final is not None else "the agent did not finish")
        return final.result

    def _make_session(self, question: HookQuestion, meter: Meter) -> SubagentSession:
        """A read-only session for an agent."""
        state = AgentState(
            agent_id=f"hook-{uuid4().hex[:16]}",
            agent_type="hook",
            description="answers a hook",
            status="running",
            permission_mode="plan",
            path=_PATH,
        )
        kind = AgentDefinition(
            name=state.agent_type,
            description=state.description,
            prompt=load_prompt("hook_agent"),
            tools=TOOLS,
            is_lean=True,
        )
        subagent = self._agents.make_session(state, kind, meter)
        context = subagent.workplace.pipeline_context
        context.hooks = context.hooks.make_nested()
        # No prompts on behalf of a hook: calls that need approval are refused.
        context.asker = context.classifier = None
        cwd, roots = question.cwd, context.workdir.roots
        if any(cwd == root or cwd.startswith(f"{root}/") for root in roots):
            context.workdir.current = cwd
        return subagent
