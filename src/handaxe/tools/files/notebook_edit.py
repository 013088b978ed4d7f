"""NotebookEdit: replace, insert or delete one cell of a Jupyter notebook."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display
from handaxe.contract.effects import Effects
from handaxe.contract.faults import BadInput
from handaxe.contract.faults.file import NotFound
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import Files, LoadedFile, NameFinder
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.read_ledger import LineChange, ReadLedger, SeenFile
from handaxe.session.workdir import Workdir
from handaxe.text.diff import Hunk, PatchHunk, to_patch
from handaxe.text.escape import find_closest_name
from handaxe.text.notebook import cell_edit
from handaxe.text.notebook.document import NoSuchCell, NotANotebook, Notebook
from handaxe.text.paths import quote_path
from handaxe.tools.files.edit_faults import CellUnchanged, NoCell, NotebookInvalid
from handaxe.tools.files.freshness import (
    add_near_names,
    compute_hunks,
    decode_small_text,
    find_regular_file,
    record_later_changes,
    refuse_changed,
    refuse_unread_or_stale,
    resolve_file,
    to_diff_display,
)

MAX_BYTES = 256 * 1024 * 1024
SHOWN_CELLS = 8


class NotebookEditArgs(ToolArgs, kw_only=True):
    notebook_path: Annotated[str, "The path of the notebook to change; prefer an absolute path."]
    new_source: Annotated[str, "The new source of the cell; not used by `delete`."]
    cell_id: Annotated[
        str | None,
        "The cell to replace, delete or insert after: an id, or an index from 0 as `cell-3`.",
    ] = None
    cell_type: Annotated[
        Literal["code", "markdown"] | None, "The type of the cell; needed for `insert`."
    ] = None
    edit_mode: Annotated[Literal["replace", "insert", "delete"], "The kind of change."] = "replace"


class NotebookEditData(TypedDict):
    """The result of NotebookEdit."""

    new_source: Annotated[str, "Empty for a deleted cell."]
    old_source: str | None
    cell_id: str
    cell_type: str
    language: str
    edit_mode: Literal["replace", "insert", "delete"]
    notebook_path: str
    original_file: Annotated[str | None, "The previous file; null if it is too large."]
    updated_file: Annotated[str | None, "The new file; null if it is too large."]
    structuredPatch: list[PatchHunk]
    changedByHook: NotRequired[bool]


class NotebookEdit(Tool[NotebookEditArgs]):
    """A change to one cell of a notebook."""

    search_hint = "jupyter notebook cell, ipynb, insert, replace, delete"
    output_type = NotebookEditData
    effects = Effects.on("/")
    uses = (Files, Workdir, ReadLedger, Settings)
    may_use = (NameFinder,)
    defer = True

    def effects_of(self, args: NotebookEditArgs) -> Effects:
        return Effects.on(args.notebook_path)

    def subjects(self, args: NotebookEditArgs) -> tuple[Subject, ...]:
        return (PathSubject(args.notebook_path, "write", "notebook_path"),)

    async def validate(self, args: NotebookEditArgs, ctx: ToolContext) -> None:
        if args.edit_mode == "insert" and args.cell_type is None:
            raise BadInput(self.name, ["The parameter `cell_type` is required to insert a cell"])
        if args.edit_mode != "insert" and args.cell_id is None:
            raise NoCell(f"`cell_id` is required to {args.edit_mode} a cell.", [])
        await _require_seen(await resolve_file(args.notebook_path, ctx), ctx)

    async def preview(self, args: NotebookEditArgs, ctx: ToolContext) -> Display | None:
        path = ctx[Workdir].resolve(args.notebook_path)
        before = (await ctx[Files].load(path, max_bytes=MAX_BYTES)).data

        def compare() -> list[Hunk]:
            _, change = _plan(path, before, args)
            return compute_hunks(before, b"".join(change.pieces(before)))

        return to_diff_display(path, await ctx[Files].compute(compare, len(before)))

    async def call(self, args: NotebookEditArgs, ctx: ToolContext) -> ToolResult:
        path = ctx[Workdir].resolve(args.notebook_path)
        seen = await _require_seen(path, ctx)
        loaded = await ctx[Files].load(path, max_bytes=MAX_BYTES)
        refuse_changed(path, loaded.data, loaded.version, seen, ctx)

        def plan() -> tuple[Notebook, cell_edit.NotebookChange, bytes, list[LineChange]]:
            notebook, change = _plan(path, loaded.data, args)
            content = b"".join(change.pieces(loaded.data))
            return notebook, change, content, _to_line_changes(loaded.data, change)

        notebook, change, content, lines = await ctx[Files].compute(plan, len(loaded.data))
        version = await ctx[Files].replace(path, [content], expect=loaded.version)
        ctx[ReadLedger].record_edit(version, lines, content=content)
        hunks = await ctx[Files].compute(
            lambda: compute_hunks(loaded.data, content), len(loaded.data)
        )
        return _build_result(path, args, loaded, notebook, change, content, hunks)

    async def recheck(
        self, args: NotebookEditArgs, ctx: ToolContext, result: ToolResult
    ) -> ToolResult:
        return await record_later_changes(ctx[Workdir].resolve(args.notebook_path), ctx, result)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"NotebookEdit({partial_input.get('notebook_path', '')})"

    def show(self, args: NotebookEditArgs, result: ToolResult) -> Display | None:
        return result.display


async def _require_seen(path: str, ctx: ToolContext) -> SeenFile:
    """The version of the notebook that the session read. Raises a fault if it is outdated."""
    info = await find_regular_file(path, ctx)
    if info is None:
        raise await add_near_names(NotFound(path), path, ctx)
    return await refuse_unread_or_stale(path, info, ctx)


def _plan(
    path: str, data: bytes, args: NotebookEditArgs
) -> tuple[Notebook, cell_edit.NotebookChange]:
    try:
        notebook = cell_edit.validate_notebook(data)
        return notebook, _change(notebook, args)
    except NotANotebook as wrong:
        raise NotebookInvalid(path=path, reason=str(wrong)) from None


def _change(notebook: Notebook, args: NotebookEditArgs) -> cell_edit.NotebookChange:
    index = None if args.cell_id is None else _find(notebook, args.cell_id)
    if args.edit_mode == "insert":
        return cell_edit.insert_cell(notebook, index, args.new_source, args.cell_type or "code")
    if index is None:
        raise NoCell(f"`cell_id` is required to {args.edit_mode} a cell.", [])
    if args.edit_mode == "delete":
        return cell_edit.delete_cell(notebook, index)
    cell = notebook.cell(index)
    if cell.source == args.new_source and args.cell_type in {None, cell.cell_type}:
        raise CellUnchanged(address=cell.address)
    return cell_edit.replace_cell(notebook, index, args.new_source, args.cell_type)


def _find(notebook: Notebook, address: str) -> int:
    try:
        return notebook.find(address)
    except NoSuchCell as none:
        names = [cell_id or f"cell-{index}" for index, cell_id in enumerate(notebook.ids())]
        near = find_closest_name(address, names)
        shown = [near] if near else names[:SHOWN_CELLS]
        more = [f"... ({len(names)} in all)"] if not near and len(names) > SHOWN_CELLS else []
        raise NoCell(str(none), [*shown, *more]) from None


def _to_line_changes(data: bytes, change: cell_edit.NotebookChange) -> list[LineChange]:
    """The lines of the file that the change replaces."""
    return [
        LineChange(
            first=data.count(b"\n", 0, splice.start) + 1,
            old_count=data.count(b"\n", splice.start, splice.end) + 1,
            new_count=splice.new.count(b"\n") + 1,
        )
        for splice in change.splices
    ]


def _build_result(
    path: str,
    args: NotebookEditArgs,
    loaded: LoadedFile,
    notebook: Notebook,
    change: cell_edit.NotebookChange,
    content: bytes,
    hunks: list[Hunk],
) -> ToolResult:
    verb = {"replace": "replaced", "insert": "inserted", "delete": "deleted"}[args.edit_mode]
    text = f"Cell {change.address} was {verb} in {quote_path(path)}."
    if args.edit_mode == "replace" and change.cell_type == "code":
        text += " Its outputs were cleared."
    data: NotebookEditData = {
        "new_source": "" if args.edit_mode == "delete" else args.new_source,
        "old_source": change.old_source,
        "cell_id": change.address,
        "cell_type": change.cell_type,
        "language": notebook.language,
        "edit_mode": args.edit_mode,
        "notebook_path": path,
        "original_file": decode_small_text(loaded.data),
        "updated_file": decode_small_text(content),
        "structuredPatch": to_patch(hunks),
    }
    return ToolResult(text, data=data, display=to_diff_display(path, hunks))
