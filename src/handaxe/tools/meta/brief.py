"""Brief: turn short answers on or off."""

from typing import Annotated, TypedDict

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.turn_overrides import BriefMode


class BriefArgs(ToolArgs, kw_only=True):
    enabled: Annotated[bool, "True for short answers, false for answers of normal length."] = True


class BriefData(TypedDict):
    """Whether answers are short."""

    enabled: bool


class Brief(Tool[BriefArgs]):
    search_hint = "concise terse output style toggle"
    output_type = BriefData
    uses = (BriefMode,)
    effects = Effects.on_state("brevity")
    defer = True

    async def call(self, args: BriefArgs, ctx: ToolContext) -> ToolResult:
        changed = ctx[BriefMode].switch(enabled=args.enabled)
        state = "short" if args.enabled else "of normal length"
        lead = "From now on" if changed else "Unchanged:"
        data: BriefData = {"enabled": args.enabled}
        return ToolResult(f"{lead} answers are {state}.", data=data)
