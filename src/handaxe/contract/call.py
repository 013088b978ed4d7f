"""A tool call as a model, a script or a host asks for it, and its place among other calls."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import msgspec

from handaxe.contract.effects import Effects


class ToolCall(msgspec.Struct, frozen=True):
    """One `tool_use` block: which tool, with which input, under which id."""

    id: str
    tool: str
    input: Any


class CallSlot:
    """The place of an unfinished call: what it may touch, and the call that it was made in."""

    __slots__ = (
        "call",
        "depth",
        "effects",
        "inner",
        "inner_limit",
        "is_alone",
        "is_over",
        "is_reader",
        "is_running",
        "order",
        "parent",
        "put_off",
        "root_order",
        "scheduler",
        "stop",
        "waits",
    )  # fmt: skip

    def __init__(
        self,
        call: ToolCall,
        effects: Effects,
        order: int,
        scheduler: object,
        parent: "CallSlot | None",
    ) -> None:
        self.call = call
        self.effects = effects
        self.order = order
        self.scheduler = scheduler
        self.parent = parent
        self.root_order = order
        """The place of the outermost call around it; its own, if it was made in no other."""
        self.depth = 0
        """How many calls of the same scheduler are around it."""
        self.is_reader = effects.is_read_only
        self.is_alone = False
        self.is_running = False
        self.is_over = False
        self.inner: list[CallSlot] | None = None
        """The unfinished calls that were made in it."""
        self.inner_limit: Any = None
        """The limit for how many of those run at once. Created with the first one."""
        self.waits: Callable[[], Iterable[CallSlot]] | None = None
        """The calls that it waits for just now, beside those that were made in it."""
        self.put_off: list[CallSlot] | None = None
        """The calls of its message that wait for an answer: none that collides overtakes them."""
        self.stop: Callable[[], None] | None = None
        """Cancels the call; known of calls that were made in another."""

    def is_inside(self, other: "CallSlot") -> bool:
        """Whether it was made in the other, at any depth."""
        above = self.parent
        while above is not None and above is not other:
            above = above.parent
        return above is not None


CURRENT_CALL: ContextVar[CallSlot | None] = ContextVar("current_call", default=None)
"""The call in whose tool, hook or callback the program is now."""

IS_STARTING: ContextVar[bool] = ContextVar("is_starting", default=False)
"""Whether the program is in a hook that all calls wait for; the calls of that hook do not."""


def find_open_call() -> CallSlot | None:
    """The innermost call around us that has not ended."""
    slot = CURRENT_CALL.get()
    while slot is not None and slot.is_over:
        slot = slot.parent
    return slot
