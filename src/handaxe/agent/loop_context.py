"""The parts of a session that a loop needs, assembled by `handaxe.app`."""

from collections.abc import Awaitable, Callable, Container, Sequence

import msgspec

from handaxe.agent.memory.nested_memory import NestedMemory
from handaxe.contract.call import ToolCall
from handaxe.contract.decision import PermissionRequest
from handaxe.contract.events import CallFinished, Event
from handaxe.contract.faults import Cancelled
from handaxe.contract.ports.model import RequestOrigin, ToolSpec
from handaxe.contract.result import ToolResult
from handaxe.hooks.notify import fire_hooks
from handaxe.hooks.outcome import Outcome
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.streaming import CallStream, OnResult
from handaxe.session.jobs import Notice


def _return_empty() -> tuple[str, ...]:
    return ()


async def _wait_for_nothing(agents_s: float, commands_s: float) -> bool:  # noqa: ARG001
    return False


def _return_no_notices() -> tuple[Notice, ...]:
    return ()


def _ignore_notices(notices: Sequence[Notice]) -> None:  # noqa: ARG001 - nobody keeps them
    return None


async def _return_no_reminders() -> tuple[str, ...]:
    return ()


def _return_none() -> None:
    return None


def _ignore_name(name: str) -> None:  # noqa: ARG001 - nothing here has a name
    return None


async def _has_any(tool: str) -> bool:  # noqa: ARG001 - the call itself will tell
    return True


class LoopContext(msgspec.Struct, kw_only=True):
    """A session, or a subagent's part of one, for its loop."""

    pipeline_context: PipelineContext
    open_stream: Callable[[OnResult], CallStream]
    specs: Callable[[], tuple[ToolSpec, ...]]
    """The available tools, in the model's order."""
    waiting_specs: Callable[[], tuple[ToolSpec, ...] | None] = _return_none
    """The tools that a provider may search itself; None if it must not."""
    subscribe: Callable[[Callable[[Event], None]], Callable[[], None]]
    new_call_id: Callable[[], str]
    flush: Callable[[], None]
    notes: Callable[[], tuple[str, ...]] = _return_empty
    """Additional sections of the system prompt, requested once."""
    changes: Callable[[], Awaitable[Sequence[str]]] = _return_no_reminders
    """Changes since the notes; sent with the next request, without causing one."""
    notices: Callable[[], Sequence[Notice]] = _return_no_notices
    """Undelivered notices of background work."""
    mark_told: Callable[[Sequence[Notice]], None] = _ignore_notices
    """Mark notices as delivered to the conversation and its log."""
    await_work: Callable[[float, float], Awaitable[bool]] = _wait_for_nothing
    """Wait for background agents and commands, up to a limit for each. Return whether there are
    notices."""
    origin: RequestOrigin = RequestOrigin()
    """Metadata for this loop's requests."""
    nearby: NestedMemory | None = None
    """Instructions that apply after files near them were read."""
    reminders: Callable[[], Awaitable[Sequence[str]]] = _return_no_reminders
    """State to repeat after the conversation was shortened."""
    has_tool: Callable[[str], Awaitable[bool]] = _has_any
    """Whether a tool is available, after waiting for its possible providers."""

    title: Callable[[], str | None] = _return_none
    """The session's name, if any."""
    rename: Callable[[str], None] = _ignore_name
    """Rename the session."""

    async def fire(self, name: str, **details: object) -> Outcome:
        """The hooks' outcome for an event of the agent."""
        return await fire_hooks(self.pipeline_context, name, **details)

    async def find_missing(self, calls: Sequence[ToolCall]) -> ToolCall | None:
        """The first of these calls whose tool is not available."""
        for call in calls:
            if not await self.has_tool(call.tool):
                return call
        return None

    def list_pending(self, call_ids: Container[str]) -> list[PermissionRequest]:
        """The permission requests of these calls."""
        asked = self.pipeline_context.questions.requests
        return [request for request in asked if request.call_id in call_ids]

    def drop_pending(self, call_ids: Container[str]) -> None:
        """End the waiting calls among these, because no answer is possible any more."""
        for request in self.list_pending(call_ids):
            dropped = ToolResult.from_fault(Cancelled(started=False))
            dropped = msgspec.structs.replace(dropped, id=request.call_id, tool=request.tool)
            self.pipeline_context.emit(CallFinished(call_id=request.call_id, result=dropped))
            self.pipeline_context.questions.end(request.call_id)
