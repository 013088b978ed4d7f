"""A call on its way: what it is known by, its place in the order, how it is stopped and awaited."""

import asyncio
from typing import Any

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.result import ToolResult
from handaxe.runtime.pipeline.parse import Parsed
from handaxe.runtime.pipeline.traffic import Ticket
from handaxe.text.wellformed import in_words

FINGERPRINT_BYTES = 8

_encoder = msgspec.json.Encoder(order="deterministic")


def fingerprint_of(tool: str, call_input: object) -> bytes:
    """What makes two calls the same: the tool's name and its input, to the letter.

    Sixty-four bits under a key of this process, as call ids are known by (`CallFacts`): nobody can
    foresee them, and what comes of two inputs that are alike in them is an answer, never an act.
    """
    try:
        encoded = _encoder.encode(call_input)
    except Exception:  # noqa: BLE001 - whatever a host's program gave as input
        encoded = in_words(call_input).encode(errors="backslashreplace")
    name = tool.encode(errors="backslashreplace")
    return hash(name + b"\0" + encoded).to_bytes(FINGERPRINT_BYTES, "little", signed=True)


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
