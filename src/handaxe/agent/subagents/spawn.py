"""Subagents: the same loop with fewer tools and never more permission.

An agent belongs to its session. Its data is stored below the session's directory, so it can be
continued after a restart.
"""

import asyncio
import time
from collections.abc import Callable
from uuid import uuid4

import msgspec

from handaxe.agent.agent_access import LoopAccess
from handaxe.agent.limits import LoopOptions, Meter, RunLimits
from handaxe.agent.loop import AgentLoop
from handaxe.agent.reminders import format_agent_message
from handaxe.agent.subagents.execution import AgentRun
from handaxe.agent.subagents.registry import AgentPaths, SubagentRegistry, SubagentSession
from handaxe.contract.events import AgentStarted
from handaxe.contract.faults.agent import (
    AgentNameTaken,
    AgentNotFound,
    AgentsTooDeep,
    AgentStoppedByUser,
    NoBackground,
    NoToolsForAgent,
)
from handaxe.contract.ports.agents import (
    AgentDefinition,
    AgentOutcome,
    AgentRequest,
    Agents,
    AgentState,
)
from handaxe.hooks.notify import fire_hooks
from handaxe.pipeline.context import PipelineContext
from handaxe.rules.modes import choose_strictest_mode
from handaxe.session.jobs import Jobs
from handaxe.text.framing import frame_reminder, neutralize


class SpawnedAgents(Agents):
    """The agents that one agent, or the session itself, can start and reach."""

    def __init__(
        self,
        family: SubagentRegistry,
        context: PipelineContext,
        *,
        meter: Meter,
        state: AgentState | None = None,
    ) -> None:
        self._family = family
        self._meter = meter
        self._depth = state.depth if state is not None else 0
        self._state = state
        self.paths = AgentPaths(state)
        self.pipeline_context = context
        """The pipeline context of the agent; its subagents get less."""

    @property
    def may_start(self) -> bool:
        """Whether agents at this depth may start more."""
        return self._depth < self._family.limits.max_depth

    def kinds(self) -> tuple[AgentDefinition, ...]:
        """The available types, sorted by name."""
        return self._family.kinds()

    def below(self, state: AgentState, meter: Meter) -> "SpawnedAgents":
        """The same agents, for one of them as the starter."""
        return SpawnedAgents(self._family, self.pipeline_context, meter=meter, state=state)

    def make_session(
        self, state: AgentState, kind: AgentDefinition, meter: Meter
    ) -> SubagentSession:
        """A session for an agent below this one."""
        return self._family.make_session(state, kind, self.below(state, meter))

    def build_child_options(self, effort: str | None = None) -> LoopOptions:
        """The loop options of an agent below this one."""
        options = self._family.options
        return msgspec.structs.replace(
            options,
            is_sub_agent=True,
            may_put_off=False,
            wait_for_agents_s=0.0,
            wait_for_commands_s=0.0,
            effort=effort or options.effort,
        )

    async def start(self, request: AgentRequest, report: Callable[[str], None]) -> AgentOutcome:
        """Start an agent and wait for it, unless it works in the background."""
        family = self._family
        if not self.may_start:
            raise AgentsTooDeep(limit=family.limits.max_depth)
        kind = self._family.find_kind(request.kind)
        self._family.refuse_if_full()
        if request.name and self._family.find_state(request.name) is not None:
            raise AgentNameTaken(name=request.name)
        agent_id = f"a{uuid4().hex[:16]}"
        state = AgentState(
            agent_id=agent_id,
            agent_type=kind.name,
            description=request.description,
            status="running",
            name=request.name,
            prompt=request.prompt,
            model=request.model or kind.model or "",
            parent_id=self._state.agent_id if self._state is not None else None,
            tool_use_id=request.call_id,
            path=self.paths.build(request.call_id),
            depth=self._depth + 1,
            permission_mode=self._get_widest_mode(kind),
            tools=self._tools(),
            started_at=time.time(),
            output_file=str(family.files.output_of(agent_id)),
            effort=request.effort or kind.effort,
            isolation=request.isolation or kind.isolation,
        )
        in_background = kind.background if request.in_background is None else request.in_background
        in_background = in_background and family.limits.background
        run = await self._launch(state, kind, request.prompt, report, in_background=in_background)
        if in_background:
            return run.outcome(in_background=True)
        try:
            if await run.wait(family.limits.auto_background_s):
                self._family.mark_read(run)
                return run.outcome()
        except asyncio.CancelledError:
            await run.stop("call")
            raise
        self._move_to_background(run)
        return run.outcome(in_background=True, timed_out=True)

    async def send(self, to: str, text: str, *, call_id: str | None = None) -> AgentState:
        """Send an agent a message; one that has ended continues in the background."""
        state = self._family.find_state(to)
        if state is None:
            known = [f"{s.name or s.agent_id} ({s.description})" for s in self.listed()]
            raise AgentNotFound(to, known)
        run = self._family.runs.get(state.agent_id)
        if run is not None and run.is_running and not run.is_over:
            run.loop.send(neutralize(text))
            return run.agent
        if run is not None and run.is_running:
            # It can get no more messages; its resources are released first.
            await self._family.wait_until_ended(run)
            state = run.agent
        if state.stopped_by_user:
            raise AgentStoppedByUser(who=to)
        if not self._family.limits.background:
            raise NoBackground
        self._family.refuse_if_full()
        kind = self._family.find_kind(state.agent_type)
        state = msgspec.structs.replace(state, tool_use_id=call_id, ended_at=None)
        return (await self._launch(state, kind, text, lambda _: None, in_background=True)).agent

    def tell_main(self, text: str) -> bool:
        """Send the main agent a message; False if this is the main agent."""
        if self._state is None:
            return False
        self._family.book.post_message(format_agent_message(self._state, text))
        return True

    async def stop(self, who: str) -> AgentState:
        """Stop an agent for the user: no message continues it."""
        run = self.find(who)
        if run is None:
            is_running = self._family.is_running
            running = [s.agent_id for s in self.listed() if is_running(s.agent_id)]
            raise AgentNotFound(who, running)
        await run.stop("user")
        run.agent = msgspec.structs.replace(run.agent, stopped_by_user=True)
        self._family.files.keep(run.agent)
        return run.agent

    def listed(self) -> tuple[AgentState, ...]:
        """Every agent of the session, including those of earlier runs, oldest first."""
        return self._family.list_states()

    def find(self, who: str) -> AgentRun | None:
        """A running agent, by id or name."""
        return self._family.find_running(who)

    async def close(self) -> None:
        """Stop every agent; their data stays."""
        going = [run for run in self._family.runs.values() if run.is_running]
        await asyncio.gather(*(run.stop("session") for run in going), return_exceptions=True)
        await asyncio.sleep(0)
        await asyncio.gather(*self._family.closing, return_exceptions=True)

    async def _launch(
        self,
        state: AgentState,
        kind: AgentDefinition,
        prompt: str,
        report: Callable[[str], None],
        *,
        in_background: bool,
    ) -> AgentRun:
        """Start an agent, in a worktree if requested."""
        if state.isolation is None:
            prompt = await self._with_context(state, prompt)
            return self._begin(state, kind, prompt, report, in_background=in_background)
        isolation = self._family.isolation
        state = await isolation.open(state, self.pipeline_context.workdir.current)
        try:
            prompt = await self._with_context(state, prompt)
            return self._begin(state, kind, prompt, report, in_background=in_background)
        except BaseException:
            await isolation.close(state)
            raise

    async def _with_context(self, state: AgentState, prompt: str) -> str:
        """The prompt, with the context that hooks add."""
        outcome = await fire_hooks(
            self.pipeline_context,
            "SubagentStart",
            agent_id=state.agent_id,
            agent_type=state.agent_type,
        )
        return "\n\n".join(
            (neutralize(prompt), *(frame_reminder(text) for text in outcome.messages))
        )

    def _begin(
        self,
        state: AgentState,
        kind: AgentDefinition,
        prompt: str,
        report: Callable[[str], None],
        *,
        in_background: bool,
    ) -> AgentRun:
        family = self._family
        limits = RunLimits(max_turns=kind.max_turns)
        meter = Meter(limits, family.prices, parent=self._meter)
        model = family.open_model(state.model or None)
        subagent = self.make_session(msgspec.structs.replace(state, model=model.name), kind, meter)
        if not subagent.workplace.specs():
            self._family.close_session(subagent)
            raise NoToolsForAgent(kind=kind.name)
        loop = AgentLoop(
            model,
            subagent.workplace,
            subagent.conversation,
            system=subagent.system,
            meter=meter,
            options=self.build_child_options(effort=state.effort),
        )
        LoopAccess(loop, subagent.workplace.pipeline_context, subagent.workplace.origin)
        run = AgentRun(
            loop,
            msgspec.structs.replace(state, model=model.name),
            keep=family.files.keep,
            say=lambda text: family.files.say(state.agent_id, text),
            tell=family.tell,
            report=report,
            prepare=subagent.ready,
            finish=lambda: family.release_checkout(run, subagent),
        )
        run.max_chars = family.limits.max_output_chars
        family.runs[state.agent_id] = run
        family.emit(
            AgentStarted(
                agent_id=state.agent_id,
                agent_type=state.agent_type,
                description=state.description,
                name=state.name,
                call_id=state.tool_use_id,
                in_background=in_background,
            )
        )
        task = run.start(prompt)
        task.add_done_callback(lambda done: family.finish_run(run, subagent, done))
        if in_background:
            self._move_to_background(run)
        return run

    def _move_to_background(self, run: AgentRun) -> None:
        run.in_background = True
        # The starter gets a notice about its end.
        self.pipeline_context.ports.get(Jobs, self._family.book).add(run)

    def _get_widest_mode(self, kind: AgentDefinition) -> str | None:
        mine = self._state.permission_mode if self._state is not None else None
        return choose_strictest_mode(kind.permission_mode, mine)

    def _tools(self) -> tuple[str, ...] | None:
        if self._state is None:
            return None
        return tuple(tool.name for tool in self.pipeline_context.catalog.list_offered())
