"""MultiEdit: several replacements in one file, all of them or none."""

from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Code, Display
from handaxe.contract.effects import Effects
from handaxe.contract.faults import ToolFault
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import Files, LoadedFile, NameFinder
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.read_ledger import AppliedEdits, ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.text import replace
from handaxe.text.diff import Hunk, PatchHunk, count_changes, diff_plan, to_patch
from handaxe.text.paths import quote_path
from handaxe.text.replace.chain import join_plans
from handaxe.tools.files.edit_faults import EmptyOldString, NoChange, NoEdits, NoMatch
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


class OneEdit(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One of the replacements."""

    old_string: Annotated[str, "The text to replace."]
    new_string: Annotated[str, "The text to replace it with."]
    replace_all: Annotated[bool, "Replace every occurrence instead of exactly one."] = False


class MultiEditArgs(ToolArgs, kw_only=True):
    file_path: Annotated[str, "The path of the file to change; prefer an absolute path."]
    edits: Annotated[list[OneEdit], "The replacements, applied in order."]

    @property
    def creates(self) -> bool:
        """Whether the first edit creates a file or fills an empty one."""
        return bool(self.edits) and not self.edits[0].old_string


class OneEditData(TypedDict):
    """One of the replacements."""

    oldString: str
    newString: str
    replaceAll: bool
    matched_with: NotRequired[
        Annotated[str, "How `old_string` was found; `exact`: character by character."]
    ]
    replacements: NotRequired[Annotated[int, "Number of replacements."]]


class MultiEditData(TypedDict):
    """The result of MultiEdit."""

    filePath: str
    edits: list[OneEditData]
    originalFile: Annotated[
        str | None, "The previous content; null if the file was new or is too large."
    ]
    structuredPatch: Annotated[list[PatchHunk], "The changes. Empty for a new file."]
    userModified: bool
    matched_with: NotRequired[Annotated[str, "The least exact way in which a text was found."]]
    encoding: NotRequired[str]
    replacements: NotRequired[Annotated[int, "Number of replacements."]]
    alreadyApplied: NotRequired[Annotated[bool, "True: nothing was changed."]]
    changedByHook: NotRequired[bool]


class MultiEdit(Tool[MultiEditArgs]):
    """Several replacements in one file."""

    search_hint = "several replacements in one file at once, modify code"
    output_type = MultiEditData
    effects = Effects.on("/")
    uses = (Files, Workdir, ReadLedger, AppliedEdits, Settings)
    may_use = (NameFinder,)

    def effects_of(self, args: MultiEditArgs) -> Effects:
        return Effects.on(args.file_path)

    def subjects(self, args: MultiEditArgs) -> tuple[Subject, ...]:
        return (PathSubject(args.file_path, "write", "file_path"),)

    async def validate(self, args: MultiEditArgs, ctx: ToolContext) -> None:
        _refuse_senseless(args)
        path = await resolve_file(args.file_path, ctx)
        await check_target(path, ctx, creates=args.creates)

    async def preview(self, args: MultiEditArgs, ctx: ToolContext) -> Display | None:
        path = ctx[Workdir].resolve(args.file_path)
        if args.creates:
            return (Code(_create_content(path, b"", args, ctx).decode(), path),)
        content = (await ctx[Files].load(path, max_bytes=MAX_BYTES)).data
        hunks = await ctx[Files].compute(
            lambda: diff_plan(content, join_plans(content, _plan_edits(content, path, args, ctx))),
            len(content),
        )
        return to_diff_display(path, hunks)

    async def call(self, args: MultiEditArgs, ctx: ToolContext) -> ToolResult:
        _refuse_senseless(args)
        path = ctx[Workdir].resolve(args.file_path)
        if args.creates:
            return await _create(path, args, ctx)
        return await _replace(path, await load_as_read(path, ctx), args, ctx)

    async def recheck(
        self, args: MultiEditArgs, ctx: ToolContext, result: ToolResult
    ) -> ToolResult:
        return await record_later_changes(ctx[Workdir].resolve(args.file_path), ctx, result)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"MultiEdit({partial_input.get('file_path', '')})"


def _refuse_senseless(args: MultiEditArgs) -> None:
    if not args.edits:
        raise NoEdits
    for number, edit in enumerate(args.edits, 1):
        if edit.old_string == edit.new_string:
            raise _locate_fault(NoChange(), number, args)
        if number > 1 and not edit.old_string:
            raise _locate_fault(EmptyOldString(), number, args)


def _locate_fault(fault: ToolFault, number: int, args: MultiEditArgs) -> ToolFault:
    """The fault, naming the failed edit and saying that nothing was changed."""
    place = f"Edit {number} of {len(args.edits)} failed, and nothing was changed"
    return fault.at(place, edit=number - 1)


def _plan_edits(
    content: bytes, path: str, args: MultiEditArgs, ctx: ToolContext, *, first: int = 1
) -> list[replace.Plan]:
    """A plan for each edit, made for the content that the previous edit leaves."""
    plans: list[replace.Plan] = []
    for number, edit in enumerate(args.edits[first - 1 :], first):
        try:
            plans.append(
                plan_replacement(
                    content,
                    path,
                    edit.old_string,
                    edit.new_string,
                    replace_all=edit.replace_all,
                    resend=lambda old, new: (
                        f"the same edits, this one with old_string={old!r}, "
                        f"new_string={shorten_text(new)}"
                    ),
                    ctx=ctx,
                )
            )
        except ToolFault as fault:
            if corrected := fault.data.pop("corrected", None):
                fixed = msgspec.structs.replace(edit, **corrected)
                fault.data |= _correct_rest(content, path, args, ctx, number, fixed)
            raise _locate_fault(fault, number, args) from None
        content = plans[-1].apply(content)
    return plans


def _correct_rest(
    content: bytes, path: str, args: MultiEditArgs, ctx: ToolContext, number: int, edit: OneEdit
) -> dict[str, Any]:
    """The whole input with this edit corrected, if the edits after it then match too."""
    edits = [*args.edits[: number - 1], edit, *args.edits[number:]]
    try:
        _plan_edits(content, path, MultiEditArgs(file_path=path, edits=edits), ctx, first=number)
    except ToolFault as fault:
        # Those behind it may have been corrected as well.
        return {name: one for name, one in fault.data.items() if name == "corrected"}
    return {"corrected": {"file_path": path, "edits": msgspec.to_builtins(edits)}}


async def _replace(
    path: str, loaded: LoadedFile, args: MultiEditArgs, ctx: ToolContext
) -> ToolResult:
    content, made = loaded.data, ctx[AppliedEdits]
    fingerprint = _make_fingerprint(args)

    def plan_unless_applied() -> tuple[list[replace.Plan], replace.Plan] | None:
        try:
            plans = _plan_edits(content, path, args, ctx)
            return plans, join_plans(content, plans)
        except NoMatch:
            if made.has(loaded.version.path, *fingerprint) and all(
                replace.is_already_applied(content, edit.old_string, edit.new_string)
                for edit in args.edits
            ):
                return None
            raise
        except replace.SameText:
            raise NoChange from None

    planned = await ctx[Files].compute(plan_unless_applied, len(content))
    if planned is None:
        return _report_already_applied(path, args)
    plans, plan = planned
    version, hunks = await write_plan(path, loaded, plan, ctx)
    made.add(version.path, *fingerprint)
    return _build_result(path, args, loaded, plans, plan, hunks)


def _make_fingerprint(args: MultiEditArgs) -> tuple[str, str]:
    return "\0".join(e.old_string for e in args.edits), "\0".join(e.new_string for e in args.edits)


def _build_result(
    path: str,
    args: MultiEditArgs,
    loaded: LoadedFile,
    plans: list[replace.Plan],
    plan: replace.Plan,
    hunks: list[Hunk],
) -> ToolResult:
    lines = count_changes(hunks)
    many = "1 edit" if len(plans) == 1 else f"{len(plans)} edits"
    text = f"The file {quote_path(path)} has been updated successfully with {many}."
    for number, one in enumerate(plans, 1):
        if told := describe_fuzzy_match(one.matched_with):
            text += f"\nEdit {number}:{told}"
    text += f" (+{lines.additions} -{lines.deletions} lines)"
    data: MultiEditData = {
        "filePath": path,
        "edits": [_to_edit_data(edit, one) for edit, one in zip(args.edits, plans, strict=True)],
        "originalFile": decode_small_text(loaded.data),
        "structuredPatch": to_patch(hunks),
        "userModified": False,
        "matched_with": plan.matched_with,
        "encoding": plan.encoding,
        "replacements": plan.places,
    }
    return ToolResult(text, data=data, display=to_diff_display(path, hunks))


def _to_edit_data(edit: OneEdit, plan: replace.Plan | None = None) -> OneEditData:
    data: OneEditData = {
        "oldString": edit.old_string,
        "newString": edit.new_string,
        "replaceAll": edit.replace_all,
    }
    if plan is not None:
        data["matched_with"], data["replacements"] = plan.matched_with, plan.places
    return data


def _report_already_applied(path: str, args: MultiEditArgs) -> ToolResult:
    data: MultiEditData = {
        "filePath": path,
        "edits": [_to_edit_data(edit) for edit in args.edits],
        "originalFile": None,
        "structuredPatch": [],
        "userModified": False,
        "alreadyApplied": True,
    }
    return ToolResult(
        f"These edits are already applied: {quote_path(path)} contains every new_string "
        "and no longer contains any old_string. Nothing was changed.",
        data=data,
    )


def _create_content(path: str, mark: bytes, args: MultiEditArgs, ctx: ToolContext) -> bytes:
    """The content of a new file: the first edit's text, changed by the others."""
    content = encode_after_mark(path, args.edits[0].new_string, mark)
    for plan in _plan_edits(content, path, args, ctx, first=2):
        content = plan.apply(content)
    return content


async def _create(path: str, args: MultiEditArgs, ctx: ToolContext) -> ToolResult:
    existed = await fill_empty_file(path, lambda mark: _create_content(path, mark, args, ctx), ctx)
    data: MultiEditData = {
        "filePath": path,
        "edits": [_to_edit_data(edit) for edit in args.edits],
        "originalFile": "" if existed else None,
        "structuredPatch": [],
        "userModified": False,
        "matched_with": "exact",
    }
    return ToolResult(
        f"The file {quote_path(path)} has been {'updated' if existed else 'created'} successfully.",
        data=data,
    )
