"""EnterPlanMode: work read-only until the user approves a plan."""

from typing import TypedDict

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.permission_state import PermissionState


class EnterPlanModeArgs(ToolArgs, kw_only=True):
    pass


class EnterPlanModeData(TypedDict):
    """The new mode."""

    message: str


class EnterPlanMode(Tool[EnterPlanModeArgs]):
    search_hint = "explore read-only and propose before changing"
    output_type = EnterPlanModeData
    uses = (PermissionState,)
    effects = Effects.on_state("mode")
    defer = True

    async def call(self, args: EnterPlanModeArgs, ctx: ToolContext) -> ToolResult:
        state = ctx[PermissionState]
        was_planning = state.mode == "plan"
        state.set_mode("plan")
        message = (
            "Plan mode was already on."
            if was_planning
            else "Plan mode is on: the tools that change files are unavailable, and other "
            "changes need approval."
        )
        message += " Explore, then present your plan with ExitPlanMode."
        data: EnterPlanModeData = {"message": message}
        return ToolResult(message, data=data)
