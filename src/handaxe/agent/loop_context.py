"""What a loop needs of the session it works in, joined by `handaxe.app`."""

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
    """A session, or a sub-agent's share of one, as its loop sees it."""

    pipeline_context: PipelineContext
    open_stream: Callable[[OnResult], CallStream]
    specs: Callable[[], tuple[ToolSpec, ...]]
    """The tools on offer now, in the order the model sees them."""
    waiting_specs: Callable[[], tuple[ToolSpec, ...] | None] = _return_none
    """The tools that a provider may search for itself; None where it is not to."""
    subscribe: Callable[[Callable[[Event], None]], Callable[[], None]]
    new_call_id: Callable[[], str]
    flush: Callable[[], None]
    notes: Callable[[], tuple[str, ...]] = _return_empty
    """Sections of the system prompt that only this place knows; asked for once."""
    changes: Callable[[], Awaitable[Sequence[str]]] = _return_no_reminders
    """What differs from the notes by now; told with the next request, and no reason for one."""
    notices: Callable[[], Sequence[Notice]] = _return_no_notices
    """Messages of background work that have not been delivered."""
    mark_told: Callable[[Sequence[Notice]], None] = _ignore_notices
    """These are in the conversation and its log now."""
    await_work: Callable[[float, float], Awaitable[bool]] = _wait_for_nothing
    """Wait so long for background agents, and so long for commands; whether there are notices."""
    origin: RequestOrigin = RequestOrigin()
    """What the requests of this place say of themselves."""
    nearby: NestedMemory | None = None
    """Instructions that count once files near them were read."""
    reminders: Callable[[], Awaitable[Sequence[str]]] = _return_no_reminders
    """State to repeat after the conversation was shortened."""
    has_tool: Callable[[str], Awaitable[bool]] = _has_any
    """Whether a tool is on offer, after waiting for all servers that could provide it."""

    title: Callable[[], str | None] = _return_none
    """The session's name, if it has one."""
    rename: Callable[[str], None] = _ignore_name
    """Give the session another name."""

    async def fire(self, name: str, **details: object) -> Outcome:
        """What hooks say to an occasion of the agent's."""
        return await fire_hooks(self.pipeline_context, name, **details)

    async def find_missing(self, calls: Sequence[ToolCall]) -> ToolCall | None:
        """The first of these calls whose tool is not on offer."""
        for call in calls:
            if not await self.has_tool(call.tool):
                return call
        return None

    def list_pending(self, call_ids: Container[str]) -> list[PermissionRequest]:
        """What these calls wait for an answer to."""
        asked = self.pipeline_context.questions.requests
        return [request for request in asked if request.call_id in call_ids]

    def drop_pending(self, call_ids: Container[str]) -> None:
        """End the waiting ones of these calls: an answer is no longer possible."""
        for request in self.list_pending(call_ids):
            dropped = ToolResult.from_fault(Cancelled(started=False))
            dropped = msgspec.structs.replace(dropped, id=request.call_id, tool=request.tool)
            self.pipeline_context.emit(CallFinished(call_id=request.call_id, result=dropped))
            self.pipeline_context.questions.end(request.call_id)
