"""EditLines: replace, insert or delete whole lines by number and tag."""

from functools import partial
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display
from handaxe.contract.effects import Effects
from handaxe.contract.faults import BadInput
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import Files, LoadedFile, NameFinder
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.text.diff import Hunk, PatchHunk, count_changes, diff_plan, to_patch
from handaxe.text.escape import format_count
from handaxe.text.line_tags import LineRef, compute_tag, parse_ref
from handaxe.text.paths import quote_path
from handaxe.text.replace.numbered_edits import NumberedChange
from handaxe.tools.files.edit_faults import LinesUnchanged
from handaxe.tools.files.edit_plan import (
    MAX_BYTES,
    check_target,
    load_as_read,
    write_plan,
)
from handaxe.tools.files.freshness import (
    decode_small_text,
    record_later_changes,
    resolve_file,
    to_diff_display,
)
from handaxe.tools.files.tagged_lines import CopiedTag, TaggedPlan, WantedChange, plan_tagged

MAX_NEW_TAGS = 40


class OneChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One of the changes."""

    first: Annotated[str | None, "The first line to replace, as `12:k3`."] = None
    last: Annotated[str | None, "The last line to replace."] = None
    after: Annotated[str | None, "Instead: the line to insert after; `0` is the top."] = None
    text: Annotated[str, "The new lines."]


class EditLinesArgs(ToolArgs, kw_only=True):
    file_path: Annotated[str, "The path of the file to change; prefer an absolute path."]
    changes: Annotated[list[OneChange], "The changes, in any order."]


class OneChangeData(TypedDict):
    """One of the requested changes."""

    first: str | None
    last: str | None
    after: str | None
    text: str


class EditLinesData(TypedDict):
    """The result of EditLines."""

    filePath: str
    changes: list[OneChangeData]
    originalFile: Annotated[
        str | None, "The previous content; null if the file was new or is too large."
    ]
    structuredPatch: Annotated[list[PatchHunk], "What changed."]
    userModified: bool
    matched_with: Annotated[str, "How the lines were found; `exact`: character by character."]
    encoding: str
    replacements: Annotated[int, "Number of changed places."]
    changedByHook: NotRequired[bool]


class EditLines(Tool[EditLinesArgs]):
    """Changes to whole lines of one file."""

    search_hint = "change, insert, delete lines by number and tag, modify code"
    output_type = EditLinesData
    effects = Effects.on("/")
    uses = (Files, Workdir, ReadLedger, Settings)
    may_use = (NameFinder,)

    def effects_of(self, args: EditLinesArgs) -> Effects:
        return Effects.on(args.file_path)

    def subjects(self, args: EditLinesArgs) -> tuple[Subject, ...]:
        return (PathSubject(args.file_path, "write", "file_path"),)

    async def validate(self, args: EditLinesArgs, ctx: ToolContext) -> None:
        parse_wanted_changes(args)
        await check_target(await resolve_file(args.file_path, ctx), ctx, creates=False)

    async def preview(self, args: EditLinesArgs, ctx: ToolContext) -> Display | None:
        path = ctx[Workdir].resolve(args.file_path)
        loaded = await ctx[Files].load(path, max_bytes=MAX_BYTES)
        return to_diff_display(path, diff_plan(loaded.data, _plan(loaded, path, args, ctx).plan))

    async def call(self, args: EditLinesArgs, ctx: ToolContext) -> ToolResult:
        path = ctx[Workdir].resolve(args.file_path)
        loaded = await load_as_read(path, ctx)
        tagged = await ctx[Files].compute(lambda: _plan(loaded, path, args, ctx), len(loaded.data))
        told, shown = _format_new_refs(tagged.changes)
        _, hunks = await write_plan(
            path, loaded, tagged.plan, ctx, changes=tagged.line_changes, shown=shown
        )
        return _build_result(path, args, loaded, tagged, told, hunks)

    async def recheck(
        self, args: EditLinesArgs, ctx: ToolContext, result: ToolResult
    ) -> ToolResult:
        return await record_later_changes(ctx[Workdir].resolve(args.file_path), ctx, result)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"EditLines({partial_input.get('file_path', '')})"


def parse_wanted_changes(args: EditLinesArgs) -> list[WantedChange]:
    """Parse the changes; one fault lists every invalid one."""
    if not args.changes:
        raise LinesUnchanged
    wanted: list[WantedChange] = []
    problems: list[str] = []
    for number, change in enumerate(args.changes):
        try:
            wanted.append(_parse_change(change))
        except ValueError as wrong:
            problems.append(f"The parameter `changes[{number}]`: {wrong}")
    if problems:
        raise BadInput("EditLines", problems)
    return wanted


def _parse_change(change: OneChange) -> WantedChange:
    if (change.first is None) == (change.after is None):
        raise ValueError("give either `first`, to replace lines, or `after`, to insert lines")
    if change.after is not None:
        if change.last is not None:
            raise ValueError("use `last` with `first`, not with `after`")
        if not change.text:
            raise ValueError("`text` is empty, so there is nothing to insert")
        return WantedChange(_parse_line_ref(change.after, "after"), None, change.text)
    first = _parse_line_ref(change.first or "", "first")
    last = first if change.last is None else _parse_line_ref(change.last, "last")
    if not first.number or not last.number:
        raise ValueError("line numbers start at 1; `0` is only valid in `after`")
    if last.number < first.number:
        raise ValueError(f"`last` ({last}) comes before `first` ({first})")
    return WantedChange(first, last, change.text)


def _parse_line_ref(text: str, name: str) -> LineRef:
    ref = parse_ref(text)
    if ref is None:
        raise ValueError(f"`{name}` must be a number and a tag as Read shows them, like `12:k3`")
    return ref


def _plan(loaded: LoadedFile, path: str, args: EditLinesArgs, ctx: ToolContext) -> TaggedPlan:
    meant_by = partial(ctx[ReadLedger].find_candidates, loaded.version.path)
    try:
        return plan_tagged(loaded.data, path, parse_wanted_changes(args), meant_by)
    except CopiedTag as copied:
        problem = (
            f"The parameter `changes[{copied.change}].text` holds `{copied.ref}` at the start of "
            "a line; give the lines without the numbers and tags that Read adds"
        )
        raise BadInput("EditLines", [problem]) from None


def _build_result(
    path: str,
    args: EditLinesArgs,
    loaded: LoadedFile,
    tagged: TaggedPlan,
    told: str,
    hunks: list[Hunk],
) -> ToolResult:
    lines = count_changes(hunks)
    many = format_count(len(args.changes), "change")
    data: EditLinesData = {
        "filePath": path,
        "changes": [msgspec.to_builtins(change) for change in args.changes],
        "originalFile": decode_small_text(loaded.data),
        "structuredPatch": to_patch(hunks),
        "userModified": False,
        "matched_with": tagged.plan.matched_with,
        "encoding": tagged.plan.encoding,
        "replacements": tagged.plan.places,
    }
    return ToolResult(
        f"The file {quote_path(path)} has been updated successfully with {many}. "
        f"(+{lines.additions} -{lines.deletions} lines)\n{told}",
        data=data,
        display=to_diff_display(path, hunks),
    )


def _format_new_refs(changes: list[NumberedChange]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Describe the new lines and shifts; also the lines whose tags the text shows."""
    told: list[str] = []
    shown: list[tuple[int, int]] = []
    moved, left = 0, MAX_NEW_TAGS
    for change in changes:
        first = change.first + moved
        refs = [f"{n}:{compute_tag(line)}" for n, line in enumerate(change.new, first)]
        moved += len(change.new) - (change.last - change.first + 1)
        left -= max(1, len(refs))
        if left < 0:
            told.append("Read the file again for further tags.")
            break
        if refs:
            shown.append((first, first + len(refs) - 1))
        told.append(
            f"{_describe_old_lines(change)}: " + (f"now {' '.join(refs)}." if refs else "gone.")
        )
        if moved:
            told[-1] += f" Lines after it: {moved:+d}."
    return "\n".join(told), tuple(shown)


def _describe_old_lines(change: NumberedChange) -> str:
    if change.last < change.first:
        return f"After line {change.last}" if change.last else "At the top"
    if change.last == change.first:
        return f"Line {change.first}"
    return f"Lines {change.first}-{change.last}"
