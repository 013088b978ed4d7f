"""ExitPlanMode: show the plan, and go to work if the user agrees."""

from typing import Annotated, Any, NotRequired, TypedDict

from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Ask, Decision
from handaxe.contract.display import Display, Text
from handaxe.contract.effects import Effects
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.plans import Plans
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.permission_state import PermissionState

_SAID = "The plan is what was said last."


class NotPlanning(ToolFault):
    """There is no plan mode to leave."""

    code = "plan.not_planning"

    def __init__(self) -> None:
        super().__init__("Plan mode is not on; go on with the work.")


class ExitPlanModeArgs(ToolArgs, kw_only=True, rename="camel"):
    plan: Annotated[
        str,
        "The plan in Markdown: what will change, where, and why. Without it, what you said last "
        "is the plan.",
    ] = ""
    allowed_prompts: Annotated[
        tuple[dict[str, Any], ...], "Accepted for compatibility; it changes nothing."
    ] = ()


class ExitPlanModeData(TypedDict):
    """The plan that the user agreed to."""

    plan: Annotated[str | None, "Null: what was said last is the plan."]
    isAgent: bool
    filePath: Annotated[str | None, "Where it is kept."]
    planWasEdited: NotRequired[Annotated[bool, "True: it was changed before they agreed."]]


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
        return Ask("The plan is ready; work starts when you agree to it.")

    async def preview(self, args: ExitPlanModeArgs, ctx: ToolContext) -> Display | None:
        return (Text(args.plan or _SAID),)

    async def call(self, args: ExitPlanModeArgs, ctx: ToolContext) -> ToolResult:
        mode = ctx[PermissionState].leave_plan()
        plans = ctx.find(Plans)
        kept = await plans.keep(ctx.call_id, args.plan) if plans and args.plan else None
        where = f" The plan is kept in {kept.path}." if kept else ""
        path = kept.path if kept else None
        data: ExitPlanModeData = {"plan": args.plan or None, "isAgent": False, "filePath": path}
        if kept and kept.was_edited:
            data["planWasEdited"] = True
            where += f" It was changed before they agreed; this is what holds:\n{args.plan}\n"
        return ToolResult(
            f"The user agreed to the plan. The permission mode is {mode} again.{where} Start now.",
            data=data,
            display=(Text(args.plan or _SAID),),
        )

    def title(self, partial_input: dict[str, Any]) -> str:
        return "ExitPlanMode"
