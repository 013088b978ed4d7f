"""Edit: replace a piece of text in a file."""

from typing import Annotated, Any, NotRequired, TypedDict

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Code, Display
from handaxe.contract.effects import Effects
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import Files, LoadedFile, NameFinder
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.read_ledger import AppliedEdits, ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.text import replace
from handaxe.text.diff import Hunk, PatchHunk, count_changes, diff_plan, to_patch
from handaxe.text.escape import format_count
from handaxe.text.paths import quote_path
from handaxe.tools.files.edit_faults import NoChange, NoMatch
from handaxe.tools.files.edit_plan import (
    MAX_BYTES,
    check_target,
    load_as_read,
    plan_replacement,
    write_plan,
)
from handaxe.tools.files.freshness import (
    decode_small_text,
    describe_fuzzy_match,
    encode_after_mark,
    fill_empty_file,
    record_later_changes,
    resolve_file,
    to_diff_display,
)
from handaxe.tools.files.match_errors import shorten_text


class EditArgs(ToolArgs, kw_only=True):
    file_path: Annotated[str, "The path of the file to change; prefer an absolute path."]
    old_string: Annotated[str, "The text to replace."]
    new_string: Annotated[str, "The text to replace it with."]
    replace_all: Annotated[bool, "Replace every occurrence instead of exactly one."] = False


class EditData(TypedDict):
    """The result of Edit."""

    filePath: str
    oldString: str
    newString: str
    originalFile: Annotated[
        str | None, "The previous content; null if the file was new or is too large."
    ]
    structuredPatch: Annotated[list[PatchHunk], "The changes. Empty for a new file."]
    userModified: bool
    replaceAll: bool
    matched_with: NotRequired[
        Annotated[str, "How `old_string` was found; `exact`: character by character."]
    ]
    encoding: NotRequired[str]
    replacements: NotRequired[Annotated[int, "Number of replacements."]]
    alreadyApplied: NotRequired[Annotated[bool, "True: nothing was changed."]]
    changedByHook: NotRequired[bool]


class Edit(Tool[EditArgs]):
    """One replacement in one file."""

    search_hint = "replace text, modify code, patch, change lines"
    output_type = EditData
    effects = Effects.on("/")
    uses = (Files, Workdir, ReadLedger, AppliedEdits, Settings)
    may_use = (NameFinder,)

    def effects_of(self, args: EditArgs) -> Effects:
        return Effects.on(args.file_path)

    def subjects(self, args: EditArgs) -> tuple[Subject, ...]:
        return (PathSubject(args.file_path, "write", "file_path"),)

    async def validate(self, args: EditArgs, ctx: ToolContext) -> None:
        if args.old_string == args.new_string:
            raise NoChange
        path = await resolve_file(args.file_path, ctx)
        await check_target(path, ctx, creates=not args.old_string)

    async def preview(self, args: EditArgs, ctx: ToolContext) -> Display | None:
        path = ctx[Workdir].resolve(args.file_path)
        if not args.old_string:
            return (Code(args.new_string, path),)
        content = (await ctx[Files].load(path, max_bytes=MAX_BYTES)).data
        hunks = await ctx[Files].compute(
            lambda: diff_plan(content, _plan(content, path, args, ctx)), len(content)
        )
        return to_diff_display(path, hunks)

    async def call(self, args: EditArgs, ctx: ToolContext) -> ToolResult:
        path = ctx[Workdir].resolve(args.file_path)
        if not args.old_string:
            return await _fill(path, args, ctx)
        return await _replace(path, await load_as_read(path, ctx), args, ctx)

    async def recheck(self, args: EditArgs, ctx: ToolContext, result: ToolResult) -> ToolResult:
        return await record_later_changes(ctx[Workdir].resolve(args.file_path), ctx, result)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"Edit({partial_input.get('file_path', '')})"


async def _replace(path: str, loaded: LoadedFile, args: EditArgs, ctx: ToolContext) -> ToolResult:
    content, edits = loaded.data, ctx[AppliedEdits]

    def plan_unless_applied() -> replace.Plan | None:
        try:
            return _plan(content, path, args, ctx)
        except NoMatch:
            repeated = edits.has(loaded.version.path, args.old_string, args.new_string)
            if repeated and replace.is_already_applied(content, args.old_string, args.new_string):
                return None
            raise

    plan = await ctx[Files].compute(plan_unless_applied, len(content))
    if plan is None:
        return _report_already_applied(path, args)
    version, hunks = await write_plan(path, loaded, plan, ctx)
    edits.add(version.path, args.old_string, args.new_string)
    return _build_result(path, args, loaded, plan, hunks)


def _plan(content: bytes, path: str, args: EditArgs, ctx: ToolContext) -> replace.Plan:
    def resend(old: str, new: str) -> str:
        every = ", replace_all=True" if args.replace_all else ""
        new = shorten_text(new)
        return f"Edit(file_path={path!r}, old_string={old!r}, new_string={new}{every})"

    try:
        return plan_replacement(
            content,
            path,
            args.old_string,
            args.new_string,
            replace_all=args.replace_all,
            resend=resend,
            ctx=ctx,
        )
    except NoMatch as missed:
        if corrected := missed.data.get("corrected"):
            # The whole input, to be sent as it is.
            rest = {"replace_all": True} if args.replace_all else {}
            missed.data["corrected"] = {"file_path": path, **corrected, **rest}
        raise


def _build_result(
    path: str, args: EditArgs, loaded: LoadedFile, plan: replace.Plan, hunks: list[Hunk]
) -> ToolResult:
    lines = count_changes(hunks)
    text = f"The file {quote_path(path)} has been updated successfully."
    if args.replace_all:
        text += (
            f" All occurrences were successfully replaced. ({format_count(plan.places, 'place')})"
        )
    text += describe_fuzzy_match(plan.matched_with)
    text += f" (+{lines.additions} -{lines.deletions} lines)"
    data: EditData = {
        "filePath": path,
        "oldString": args.old_string,
        "newString": args.new_string,
        "originalFile": decode_small_text(loaded.data),
        "structuredPatch": to_patch(hunks),
        "userModified": False,
        "replaceAll": args.replace_all,
        "matched_with": plan.matched_with,
        "encoding": plan.encoding,
        "replacements": plan.places,
    }
    return ToolResult(text, data=data, display=to_diff_display(path, hunks))


def _report_already_applied(path: str, args: EditArgs) -> ToolResult:
    data: EditData = {
        "filePath": path,
        "oldString": args.old_string,
        "newString": args.new_string,
        "originalFile": None,
        "structuredPatch": [],
        "userModified": False,
        "replaceAll": args.replace_all,
        "alreadyApplied": True,
    }
    return ToolResult(
        f"This edit is already applied: {quote_path(path)} contains new_string and no "
        "longer contains old_string. Nothing was changed.",
        data=data,
    )


async def _fill(path: str, args: EditArgs, ctx: ToolContext) -> ToolResult:
    existed = await fill_empty_file(
        path, lambda mark: encode_after_mark(path, args.new_string, mark), ctx
    )
    data: EditData = {
        "filePath": path,
        "oldString": "",
        "newString": args.new_string,
        "originalFile": "" if existed else None,
        "structuredPatch": [],
        "userModified": False,
        "replaceAll": args.replace_all,
        "matched_with": "exact",
    }
    return ToolResult(
        f"The file {quote_path(path)} has been {'updated' if existed else 'created'} successfully.",
        data=data,
    )
