"""Write: create a file, or replace one that was read."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Code, Display
from handaxe.contract.effects import Effects
from handaxe.contract.faults.file import CannotEncode, Exists
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import Files, LoadedFile
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.read_ledger import KEPT_FILE_BYTES, ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.text import encoding
from handaxe.text.chunks import encode_chunks
from handaxe.text.diff import Hunk, PatchHunk, count_changes, to_patch
from handaxe.text.paths import quote_path
from handaxe.tools.files.edit_faults import NotReadWhole
from handaxe.tools.files.freshness import (
    compute_hunks,
    decode_small_text,
    find_regular_file,
    record_later_changes,
    refuse_changed,
    refuse_unread_or_stale,
    resolve_file,
    to_diff_display,
)


class WriteArgs(ToolArgs, kw_only=True):
    file_path: Annotated[str, "The path of the file to write."]
    content: Annotated[str, "The whole content of the file."]


class WriteData(TypedDict):
    """The result of Write."""

    type: Literal["create", "update"]
    filePath: str
    content: str
    structuredPatch: Annotated[list[PatchHunk], "The changes. Empty for a new file."]
    originalFile: Annotated[
        str | None, "The previous content; null if the file was new or is too large."
    ]
    changedByHook: NotRequired[bool]


class Write(Tool[WriteArgs]):
    """A complete file."""

    search_hint = "create a new file, overwrite, save"
    output_type = WriteData
    effects = Effects.on("/")
    uses = (Files, Workdir, ReadLedger, Settings)

    def effects_of(self, args: WriteArgs) -> Effects:
        return Effects.on(args.file_path)

    def subjects(self, args: WriteArgs) -> tuple[Subject, ...]:
        return (PathSubject(args.file_path, "write", "file_path"),)

    async def validate(self, args: WriteArgs, ctx: ToolContext) -> None:
        path = await resolve_file(args.file_path, ctx)
        info = await find_regular_file(path, ctx)
        if info is None:
            return
        seen = await refuse_unread_or_stale(path, info, ctx)
        if not seen.is_whole:
            raise NotReadWhole(path, seen.lines, seen.total_lines)

    async def preview(self, args: WriteArgs, ctx: ToolContext) -> Display | None:
        path = ctx[Workdir].resolve(args.file_path)
        if await find_regular_file(path, ctx) is None:
            return (Code(args.content, path),)
        before = (await ctx[Files].load(path)).data
        hunks = await ctx[Files].compute(
            lambda: compute_hunks(before, _encode_content(path, args.content, before)),
            max(len(args.content), len(before)),
        )
        return to_diff_display(path, hunks)

    async def call(self, args: WriteArgs, ctx: ToolContext) -> ToolResult:
        path = ctx[Workdir].resolve(args.file_path)
        if ctx[ReadLedger].find(path) is None:
            try:
                return await self._create(path, args, ctx)
            except Exists:
                # It is there by now, or was from the start under another name.
                pass
        info = await find_regular_file(path, ctx)
        if info is None:
            return await self._create(path, args, ctx)
        seen = await refuse_unread_or_stale(path, info, ctx)
        before = await ctx[Files].load(path)
        refuse_changed(path, before.data, before.version, seen, ctx)

        def prepare() -> tuple[bytes, list[Hunk]]:
            data = _encode_content(path, args.content, before.data)
            return data, compute_hunks(before.data, data)

        size = max(len(args.content), len(before.data))
        data, hunks = await ctx[Files].compute(prepare, size)
        version = await ctx[Files].replace(path, [data], expect=before.version)
        ctx[ReadLedger].record_read(version, content=data)
        return _build_update_result(path, args, before, hunks)

    async def recheck(self, args: WriteArgs, ctx: ToolContext, result: ToolResult) -> ToolResult:
        return await record_later_changes(ctx[Workdir].resolve(args.file_path), ctx, result)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"Write({partial_input.get('file_path', '')})"

    def show(self, args: WriteArgs, result: ToolResult) -> Display | None:
        if not result.ok:
            return None
        return result.display or (Code(args.content, result.data["filePath"]),)

    async def _create(self, path: str, args: WriteArgs, ctx: ToolContext) -> ToolResult:
        pieces = await ctx[Files].compute(lambda: encode_chunks(args.content), len(args.content))
        version = await ctx[Files].replace(path, pieces, expect=None)
        content = b"".join(pieces) if version.size_bytes <= KEPT_FILE_BYTES else None
        ctx[ReadLedger].record_read(version, content=content)
        data: WriteData = {
            "type": "create",
            "filePath": path,
            "content": args.content,
            "structuredPatch": [],
            "originalFile": None,
        }
        return ToolResult(f"File created successfully at: {quote_path(path)}", data=data)


def _encode_content(path: str, content: str, before: bytes) -> bytes:
    """The content in the file's current encoding, with its byte order mark."""
    try:
        stored = encoding.sniff(before)
    except encoding.NotText:
        return content.encode()
    if content.startswith("\ufeff"):
        content = content[1:] if stored.bom else content
    try:
        return encoding.encode(content, stored)
    except encoding.UnencodableCharacter as cannot:
        raise CannotEncode(path, cannot.encoding, cannot.character) from None


def _build_update_result(
    path: str, args: WriteArgs, before: LoadedFile, hunks: list[Hunk]
) -> ToolResult:
    lines = count_changes(hunks)
    counts = f" (+{lines.additions} -{lines.deletions} lines)" if hunks else ""
    data: WriteData = {
        "type": "update",
        "filePath": path,
        "content": args.content,
        "structuredPatch": to_patch(hunks),
        "originalFile": decode_small_text(before.data),
    }
    return ToolResult(
        f"The file {quote_path(path)} has been updated successfully.{counts}",
        data=data,
        display=to_diff_display(path, hunks),
    )
