"""ExitPlanMode: present the plan and start work if the user approves it."""

from typing import Annotated, Any, NotRequired, TypedDict

from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Ask, Decision
from handaxe.contract.display import Display, Text
from handaxe.contract.effects import Effects
from handaxe.contract.faults import TemplateFault
from handaxe.contract.ports.plans import Plans
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.permission_state import PermissionState

_SAID = "Your last message is the plan."


class NotPlanning(
    TemplateFault,
    code="plan.not_planning",
    sentence="Plan mode is not on; continue with the work.",
):
    """Plan mode is not on."""


class ExitPlanModeArgs(ToolArgs, kw_only=True, rename="camel"):
    plan: Annotated[
        str,
        "The plan in Markdown: what will change, where, and why. Default: your last message.",
    ] = ""
    allowed_prompts: Annotated[
        tuple[dict[str, Any], ...], "Accepted for compatibility; not used."
    ] = ()


class ExitPlanModeData(TypedDict):
    """The approved plan."""

    plan: Annotated[str | None, "Null: your last message is the plan."]
    isAgent: bool
    filePath: Annotated[str | None, "The file with the plan."]
    planWasEdited: NotRequired[Annotated[bool, "True: the user changed it."]]


class ExitPlanMode(Tool[ExitPlanModeArgs]):
    search_hint = "present plan for approval and start work"
    output_type = ExitPlanModeData
    uses = (PermissionState,)
    may_use = (Plans,)
    asks_person = True
    effects = Effects.on_state("mode")

    async def validate(self, args: ExitPlanModeArgs, ctx: ToolContext) -> None:
        if ctx[PermissionState].mode != "plan":
            raise NotPlanning

    async def for_observers(self, args: ExitPlanModeArgs, ctx: ToolContext) -> dict[str, Any]:
        plans = ctx.find(Plans)
        kept = await plans.keep(ctx.call_id, args.plan) if plans and args.plan else None
        return {"planFilePath": kept.path} if kept else {}

    async def decide(self, args: ExitPlanModeArgs, ctx: ToolContext) -> Decision | None:
        return Ask("The plan is ready; work starts when you approve it.")

    async def preview(self, args: ExitPlanModeArgs, ctx: ToolContext) -> Display | None:
        return (Text(args.plan or _SAID),)

    async def call(self, args: ExitPlanModeArgs, ctx: ToolContext) -> ToolResult:
        mode = ctx[PermissionState].leave_plan()
        plans = ctx.find(Plans)
        kept = await plans.keep(ctx.call_id, args.plan) if plans and args.plan else None
        where = f" The plan is saved in {kept.path}." if kept else ""
        path = kept.path if kept else None
        data: ExitPlanModeData = {"plan": args.plan or None, "isAgent": False, "filePath": path}
        if kept and kept.was_edited:
            data["planWasEdited"] = True
            where += f" The user changed it; this version applies:\n{args.plan}\n"
        return ToolResult(
            f"The user approved the plan. The permission mode is {mode} again.{where} Start now.",
            data=data,
            display=(Text(args.plan or _SAID),),
        )

    def title(self, partial_input: dict[str, Any]) -> str:
        return "ExitPlanMode"
