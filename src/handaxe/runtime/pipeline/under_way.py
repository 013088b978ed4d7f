"""A call on its way: what it is known by, its place in the order, how it is stopped and awaited."""

import asyncio
from typing import Any

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.result import ToolResult
from handaxe.runtime.pipeline.parse import Parsed
from handaxe.runtime.pipeline.traffic import Ticket


class Admitted(msgspec.Struct, frozen=True):
    """A call with its place in the order, or with the answer that needs no place."""

    call: ToolCall
    fingerprint: bytes
    ticket: Ticket | None = None
    parsed: Parsed | None = None
    answer: ToolResult | None = None
    same_as: str | None = None
    """The id of a running call that this one repeats."""


class Activity:
    """A call on its way."""

    __slots__ = (
        "admitted", "began", "done", "fingerprint", "has_started", "interrupt", "is_cancelled",
        "result", "task",
    )  # fmt: skip

    def __init__(self, fingerprint: bytes) -> None:
        self.fingerprint = fingerprint
        self.task: asyncio.Task[Any] | None = None
        self.done: asyncio.Future[ToolResult] | None = None
        self.admitted: Admitted | None = None
        self.began = 0.0
        self.result: ToolResult | None = None
        self.is_cancelled = False
        self.has_started = False
        self.interrupt = "block"

    def uncancel(self) -> None:
        """The cancellation that was ours has come to its end in this call."""
        if self.task is not None:
            self.task.uncancel()
