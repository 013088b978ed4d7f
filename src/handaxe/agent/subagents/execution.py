"""One running subagent: its own loop, visible as a job, stored as a state."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec

from handaxe.agent.conversation import extract_text
from handaxe.agent.events import (
    AgentEvent,
    FromAgent,
    MessageAdded,
    RunFinished,
    ToolAnswered,
    ToolCalled,
)
from handaxe.agent.loop import AgentLoop
from handaxe.agent.reminders import format_denials, shorten_report
from handaxe.contract.events import CallAsked, CallDecided
from handaxe.contract.job_state import EndedBy, JobState
from handaxe.contract.messages import AssistantMessage
from handaxe.contract.ports.agents import AgentOutcome, AgentState, AgentStatus, to_job_state
from handaxe.contract.ports.jobs import Job

ACTIVE_S = 5.0
"""The maximum age of the last activity that others see."""
_SHOWN = (MessageAdded, ToolCalled, ToolAnswered, FromAgent, CallAsked, CallDecided)


class AgentRun(Job):
    """A subagent from a prompt to its end; a message can continue it."""

    def __init__(
        self,
        loop: AgentLoop,
        state: AgentState,
        *,
        keep: Callable[[AgentState], None],
        say: Callable[[str], None],
        tell: Callable[[AgentEvent], None],
        report: Callable[[str], None],
        prepare: Callable[[], Awaitable[None]],
        finish: Callable[[], Awaitable[None]],
    ) -> None:
        self.loop = loop
        self.agent = state
        self.in_background = False
        self.max_chars = 32_000
        """The limit of its final text in a background result."""
        self._keep = keep
        self._say = say
        self._tell = tell
        self._report = report
        self._prepare = prepare
        self._finish = finish
        self._final: RunFinished | None = None
        self._counts: dict[str, int] = {}
        self.is_over = False
        """Whether it can get no more messages."""
        self._task: asyncio.Task[None] | None = None
        self._is_preparing = False
        self._was_stopped = False
        self._heard_at = state.last_active_at

    def start(self, prompt: str) -> asyncio.Task[None]:
        """Start to work; the task ends with the agent."""
        self.agent = msgspec.structs.replace(self.agent, ended_by=None)
        self._move("running")
        self._task = asyncio.ensure_future(self._work(prompt))
        return self._task

    @property
    def is_running(self) -> bool:
        """Whether it is working."""
        return self._task is not None and not self._task.done()

    @property
    def state(self) -> JobState:
        """Its state as a background job."""
        heard = msgspec.structs.replace(self.agent, last_active_at=self._heard_at)
        return to_job_state(
            heard, "" if self.is_running else shorten_report(self.agent, self.max_chars)
        )

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end; False if the time was over first."""
        if self._task is None:
            return True
        done, _ = await asyncio.wait((self._task,), timeout=timeout_s)
        return bool(done)

    async def stop(self, by: EndedBy = "parent") -> None:
        """Stop it with everything it started."""
        self._was_stopped = True
        if self.is_running:
            self.agent = msgspec.structs.replace(self.agent, ended_by=by)
        if self._is_preparing and self._task is not None:
            self._task.cancel()
        self.loop.interrupt(by)
        await self.wait()

    def tail(self, limit_chars: int) -> str:
        """The end of its output."""
        return self.agent.result[-limit_chars:]

    def failed(self, error: BaseException) -> None:
        """A bug ended it; its parent gets a failure."""
        said = f"The agent failed because of an internal error ({type(error).__name__}: {error})."
        self.agent = msgspec.structs.replace(self.agent, result=said)
        self._move("failed")

    def outcome(self, *, in_background: bool = False, timed_out: bool = False) -> AgentOutcome:
        """Its result so far."""
        final = self._final
        return AgentOutcome(
            state=self.agent,
            in_background=in_background,
            text=self.agent.result,
            tool_uses=sum(self._counts.values()),
            duration_ms=final.duration_ms if final else 0.0,
            usage=self.loop.meter.usage,
            models=tuple(self.loop.meter.by_model) or (self.loop.model.name,),
            tool_counts=dict(self._counts),
            errors=final.errors if final else (),
            has_failed=final.failure is not None if final else self.agent.status == "failed",
            why_background="timeout" if timed_out else "asked",
        )

    async def _work(self, prompt: str) -> None:
        status: AgentStatus = "failed"
        try:
            try:
                if not await self._is_ready():
                    status = "killed"
                    return
                await self._listen(prompt)
            finally:
                self.is_over = True
                await self._finish()
            final = self._final
            if final is not None and final.terminal_reason.startswith("aborted"):
                status = "killed"
            elif final is not None and final.subtype.startswith("error_max"):
                self.agent = msgspec.structs.replace(self.agent, ended_by="limit")
            elif final is not None and not final.is_error:
                status = "completed"
        finally:
            self._move(status)

    async def _listen(self, prompt: str | None) -> None:
        """Process runs one after another, while messages arrive at the end of one."""
        while True:
            async for event in self.loop.run(prompt):
                self._hear(event)
            if not (self.loop.continuation.may_wake and self.loop.inputs.has_waiting):
                return
            prompt = None

    async def _is_ready(self) -> bool:
        """Whether it can start; False if it was stopped while waiting."""
        if self._was_stopped:
            return False
        self._is_preparing = True
        try:
            await self._prepare()
        except asyncio.CancelledError:
            if not self._was_stopped:
                raise
        finally:
            self._is_preparing = False
        return not self._was_stopped

    def _hear(self, event: AgentEvent) -> None:
        self._heard_at = time.time()
        if isinstance(event, RunFinished):
            self._final = event
            said = event.result
            if event.is_error and self.agent.result:
                said = f"{self.agent.result}\n\n({event.result})"
            if self.in_background:
                said += format_denials(event.denials)
            self.agent = msgspec.structs.replace(self.agent, result=said)
            self._say(f"\n{event.result}\n" if event.is_error else "")
        elif isinstance(event, MessageAdded) and isinstance(event.message, AssistantMessage):
            if text := extract_text(event.message):
                self.agent = msgspec.structs.replace(self.agent, result=text)
                self._say(f"{text}\n\n")
        elif isinstance(event, ToolCalled):
            self._counts[event.call.tool] = self._counts.get(event.call.tool, 0) + 1
            self._report(f"{self.agent.description}: {event.call.tool}")
            self._say(f"- {event.call.tool} {str(event.call.input)[:300]}\n")
            if time.time() - self.agent.last_active_at > ACTIVE_S:
                self._move("running")
        if isinstance(event, _SHOWN):
            agent = self.agent
            self._tell(FromAgent(agent.agent_id, agent.agent_type, agent.tool_use_id, event))

    def _move(self, status: AgentStatus) -> None:
        now = self._heard_at = time.time()
        ended = None if status == "running" else now
        self.agent = msgspec.structs.replace(
            self.agent, status=status, last_active_at=now, ended_at=ended, is_read=False
        )
        self._keep(self.agent)
