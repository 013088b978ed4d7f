"""ApplyPatch: apply a patch to several files, all of them or none."""

from functools import lru_cache
from typing import Annotated, Any, NotRequired, TypedDict

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Block, Code, Display
from handaxe.contract.effects import Effects
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import Files, NameFinder
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.read_ledger import AppliedEdits, ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.text.diff import PatchHunk, count_changes, to_patch
from handaxe.text.paths import quote_path
from handaxe.text.replace.patch_format import BadPatch, FilePatch, find_patch_paths, parse_patch
from handaxe.tools.files.edit_faults import PatchInvalid
from handaxe.tools.files.freshness import decode_small_text, record_later_changes, to_diff_display
from handaxe.tools.files.patched_files import (
    Action,
    PatchedFile,
    check_patches,
    plan_patches,
    write_patches,
)


class ApplyPatchArgs(ToolArgs, kw_only=True):
    input: Annotated[str, "The whole patch, from `*** Begin Patch` to `*** End Patch`."]


class PatchedFileData(TypedDict):
    """One file that the patch changed."""

    filePath: str
    action: Action
    movedFrom: str | None
    structuredPatch: list[PatchHunk]
    originalFile: Annotated[
        str | None, "The previous content; null if the file was new or is too large."
    ]
    matched_with: Annotated[str, "How the lines were found; `exact`: character by character."]


class ApplyPatchData(TypedDict):
    """The result of ApplyPatch."""

    filePath: Annotated[str, "The first of the files."]
    structuredPatch: Annotated[list[PatchHunk], "What changed in the first of the files."]
    files: list[PatchedFileData]
    changedByHook: NotRequired[bool]


class ApplyPatch(Tool[ApplyPatchArgs]):
    """A patch for any number of files."""

    aliases = ("apply_patch",)
    search_hint = "patch several files, add, delete, move, change lines"
    output_type = ApplyPatchData
    effects = Effects.on("/")
    uses = (Files, Workdir, ReadLedger, AppliedEdits, Settings)
    may_use = (NameFinder,)

    def effects_of(self, args: ApplyPatchArgs) -> Effects:
        return Effects.on(*_list_paths(args))

    def subjects(self, args: ApplyPatchArgs) -> tuple[Subject, ...]:
        return tuple(PathSubject(path, "write") for path in _list_paths(args))

    async def validate(self, args: ApplyPatchArgs, ctx: ToolContext) -> None:
        await check_patches(_parse_args(args), ctx)

    async def preview(self, args: ApplyPatchArgs, ctx: ToolContext) -> Display | None:
        return _display(await plan_patches(_parse_args(args), ctx))

    async def call(self, args: ApplyPatchArgs, ctx: ToolContext) -> ToolResult:
        patches = _parse_args(args)
        await check_patches(patches, ctx)
        planned = await plan_patches(patches, ctx)
        await write_patches(planned, ctx)
        return _build_result(planned)

    async def recheck(
        self, args: ApplyPatchArgs, ctx: ToolContext, result: ToolResult
    ) -> ToolResult:
        for path in _list_paths(args):
            result = await record_later_changes(ctx[Workdir].resolve(path), ctx, result)
        return result

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"ApplyPatch({', '.join(find_patch_paths(str(partial_input.get('input', ''))))})"


def _parse_args(args: ApplyPatchArgs) -> tuple[FilePatch, ...]:
    return _read(args.input)


@lru_cache(maxsize=4)
def _read(text: str) -> tuple[FilePatch, ...]:
    """Parse a patch; cached, because several stages of a call need it."""
    try:
        return parse_patch(text)
    except BadPatch as bad:
        raise PatchInvalid(bad.line, bad.reason) from None


def _list_paths(args: ApplyPatchArgs) -> list[str]:
    """Every path that the patch writes, deletes or creates."""
    paths: dict[str, None] = {}
    for patch in _parse_args(args):
        paths[patch.path] = None
        if patch.move_to is not None:
            paths[patch.move_to] = None
    return list(paths)


def _build_result(planned: list[PatchedFile]) -> ToolResult:
    moved = {patched.moved_from for patched in planned}
    shown = [patched for patched in planned if patched.path not in moved]
    files = [_to_data(patched) for patched in shown]
    data: ApplyPatchData = {
        "filePath": files[0]["filePath"],
        "structuredPatch": files[0]["structuredPatch"],
        "files": files,
    }
    return ToolResult(
        "\n".join(["The patch has been applied successfully.", *map(_format_line, shown)]),
        data=data,
        display=_display(shown),
    )


def _format_line(patched: PatchedFile) -> str:
    line = f"{patched.action}: {quote_path(patched.path)}"
    if patched.moved_from is not None:
        line = f"moved: {quote_path(patched.moved_from)} to {quote_path(patched.path)}"
    if patched.hunks:
        lines = count_changes(patched.hunks)
        line += f" (+{lines.additions} -{lines.deletions} lines)"
    # A patch has no line endings of its own to differ in.
    if patched.matched_with not in ("exact", "line_endings"):
        how = patched.matched_with.replace("_", " ")
        line += (
            "; some lines of the patch did not match the file exactly: they matched "
            f"except for {how}, and the new lines were written in the file's style"
        )
    return line


def _to_data(patched: PatchedFile) -> PatchedFileData:
    return {
        "filePath": patched.path,
        "action": patched.action,
        "movedFrom": patched.moved_from,
        "structuredPatch": to_patch(patched.hunks),
        "originalFile": None if patched.before is None else decode_small_text(patched.before.data),
        "matched_with": patched.matched_with,
    }


def _display(planned: list[PatchedFile]) -> Display | None:
    blocks: list[Block] = []
    for patched in planned:
        if patched.hunks:
            blocks += to_diff_display(patched.path, patched.hunks)
        elif patched.action == "added" and patched.pieces is not None:
            blocks.append(Code(b"".join(patched.pieces).decode(), patched.path))
    return tuple(blocks) or None
