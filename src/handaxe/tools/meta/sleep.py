"""Sleep: wait until the time is over, the user writes, or background work ends."""

import time
from typing import Annotated, Any, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.jobs import Wakeups

MAX_SECONDS = 3_600


class SleepArgs(ToolArgs, kw_only=True):
    seconds: Annotated[
        float, msgspec.Meta(ge=0, le=MAX_SECONDS), "Maximum time to wait, up to an hour."
    ]
    reason: Annotated[str, "What you wait for, shown to the user."] = ""


class SleepData(TypedDict):
    """How long the wait was, and what ended it."""

    sleptSeconds: float
    wokenBy: Annotated[str | None, "Null: the time was over."]


class Sleep(Tool[SleepArgs]):
    search_hint = "wait pause until time passes or task finishes"
    output_type = SleepData
    uses = (Wakeups,)
    effects = Effects.pure()
    interrupt = "cancel"
    defer = True

    async def call(self, args: SleepArgs, ctx: ToolContext) -> ToolResult:
        started = time.monotonic()
        woken_by = await ctx[Wakeups].sleep(args.seconds)
        slept_s = round(time.monotonic() - started, 1)
        text = f"Slept {args.seconds:g} s." if woken_by is None else f"Woken early: {woken_by}"
        data: SleepData = {"sleptSeconds": slept_s, "wokenBy": woken_by}
        return ToolResult(text, data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        what = partial_input.get("reason") or f"{partial_input.get('seconds', '?')} s"
        return f"Sleep({what})"
