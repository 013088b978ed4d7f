"""Read: a file as text lines, images, PDF pages or notebook cells.

Belongs here: the tool and one module per kind of file.
Does not: decoding images and PDFs (port `Media`).
May import: `tools.files`, and what `tools` may import.
"""

from math import inf
from typing import Annotated, Any

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Code, Display, Text
from handaxe.contract.effects import Effects
from handaxe.contract.faults.file import Binary, FileTooLarge, NotFound
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import Files, FileWindow, NameFinder
from handaxe.contract.ports.media import Media
from handaxe.contract.ports.tools import ToolIndex
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.text.escape import format_count
from handaxe.tools.files.read.read_data import ReadData
from handaxe.tools.files.read.text import LINE_CHARS, TextPage


class ReadArgs(ToolArgs, kw_only=True):
    file_path: Annotated[str, "The path of the file to read."]
    offset: Annotated[
        int | None,
        "The first line (or notebook cell) to read, from 1; negative counts from the end.",
    ] = None
    limit: Annotated[int | None, "How many lines (or notebook cells) to read."] = None
    pages: Annotated[str | None, "The pages of a PDF, such as `3`, `1-5` or `2-4,7`."] = None
    column: Annotated[
        int | None,
        "The first character of each line to show, from 1.",
    ] = None


class Read(Tool[ReadArgs]):
    """The contents of a file."""

    search_hint = "show file contents, view image, PDF, notebook, cat"
    output_type = ReadData
    effects = Effects.none()
    uses = (Files, Workdir, ReadLedger, Settings)
    may_use = (Media, NameFinder, ToolIndex)
    max_result_chars = inf
    default_lines = 2_000
    line_chars = LINE_CHARS
    default_pages = 10
    max_pages = 20

    def effects_of(self, args: ReadArgs) -> Effects:
        return Effects.reading(args.file_path)

    def subjects(self, args: ReadArgs) -> tuple[Subject, ...]:
        return (PathSubject(args.file_path, "read", "file_path"),)

    async def validate(self, args: ReadArgs, ctx: ToolContext) -> None:
        if args.pages is not None:
            from handaxe.tools.files.read.pdf import parse_page_ranges

            parse_page_ranges(args.pages)

    async def call(self, args: ReadArgs, ctx: ToolContext) -> ToolResult:
        path = ctx[Workdir].resolve(args.file_path)
        if args.file_path.endswith(("/", ".")):
            from handaxe.tools.files.freshness import resolve_file

            await resolve_file(args.file_path, ctx)
        try:
            if path.lower().endswith(".ipynb"):
                return await self._notebook(path, args, ctx)
            return await self._read_by_content(path, args, ctx)
        except NotFound as missing:
            from handaxe.tools.files.freshness import add_near_names

            raise await add_near_names(missing, path, ctx) from None

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"Read({partial_input.get('file_path', '')})"

    def show(self, args: ReadArgs, result: ToolResult) -> Display | None:
        if not result.ok or result.data["type"] != "text":
            return None
        if "→" not in result.text.partition("\n")[0]:
            return None
        file = result.data["file"]
        code = Code(file["content"], file["filePath"], file["startLine"])
        if not file["numLines"] or file["numLines"] < file["totalLines"]:
            return code, Text(result.text.rpartition("\n\n")[2], "muted")
        return (code,)

    def summary(self, args: ReadArgs, result: ToolResult) -> str:
        if not result.ok or result.data["type"] != "text":
            return super().summary(args, result)
        file = result.data["file"]
        return f"Read {format_count(file['numLines'], 'line')} of {file['filePath']}"

    async def _read_by_content(self, path: str, args: ReadArgs, ctx: ToolContext) -> ToolResult:
        try:
            window = await self._window(path, args, ctx)
        except Binary:
            return await _open_binary(path, args, ctx)
        head = window.content
        if head is None:
            head = await ctx[Files].head(path, 5)
        if not head.startswith(b"%PDF-"):
            return await self._text(window, path, args, ctx)
        from handaxe.contract.faults.media import BadPdf
        from handaxe.tools.files.read.pdf import read_pdf

        try:
            return await read_pdf(path, args.pages, ctx)
        except BadPdf:
            if path.lower().endswith(".pdf"):
                raise
            note = "The file starts like a PDF but is not valid; it is shown as text."
            return self._page(window, path, args, ctx, note)

    async def _text(
        self, window: FileWindow, path: str, args: ReadArgs, ctx: ToolContext
    ) -> ToolResult:
        """One page of text; the first page of a long file has an outline."""
        result = self._page(window, path, args, ctx)
        is_plain = (args.offset or 1, args.limit, args.column) == (1, None, None)
        if not is_plain or result.data["file"]["numLines"] >= window.total_lines:
            return result
        from handaxe.tools.files.read.outline import describe_outline

        notice, facts = await describe_outline(window, path, ctx)
        return msgspec.structs.replace(
            result, text=result.text + notice, data={**result.data, **facts}
        )

    async def _notebook(self, path: str, args: ReadArgs, ctx: ToolContext) -> ToolResult:
        from handaxe.text.notebook.document import NotANotebook
        from handaxe.tools.files.read import notebook

        try:
            loaded = await ctx[Files].load(path, max_bytes=notebook.MAX_FILE_BYTES)
            limit = None if args.limit is None else max(1, args.limit)
            return await notebook.read_cells(
                path, loaded, ctx, offset=args.offset or 1, limit=limit
            )
        except NotANotebook as wrong:
            note = f"This is not a valid notebook: {wrong}. It is shown as text."
        except FileTooLarge:
            note = "This notebook is too large to be shown by cells; it is shown as text."
        window = await self._window(path, args, ctx)
        return self._page(window, path, args, ctx, note)

    async def _window(self, path: str, args: ReadArgs, ctx: ToolContext) -> FileWindow:
        limit = self.default_lines if args.limit is None else max(1, args.limit)
        return await ctx[Files].read_window(path, args.offset or 1, limit)

    def _page(
        self, window: FileWindow, path: str, args: ReadArgs, ctx: ToolContext, *notices: str
    ) -> ToolResult:
        if args.limit is not None and args.limit < 1:
            notices = (*notices, f"limit {args.limit} was raised to 1.")
        if args.pages is not None:
            notices = (*notices, "`pages` applies only to PDFs; this is a text file.")
        options = ctx[Settings].read
        page = TextPage(
            window,
            path,
            offset=args.offset or 1,
            column=max(1, args.column or 1),
            line_format=options.line_format,
            max_tokens=options.max_tokens,
            has_tags=_is_editing_by_tags(ctx),
        )
        return page.result(ctx[ReadLedger], *notices)


def _is_editing_by_tags(ctx: ToolContext) -> bool:
    """Whether the agent edits lines by tags; only then Read shows tags."""
    index = ctx.find(ToolIndex)
    return index is not None and index.is_shown("EditLines")


async def _open_binary(path: str, args: ReadArgs, ctx: ToolContext) -> ToolResult:
    """Show a picture or PDF, detected by its first bytes.

    Raises:
        Binary: the file is neither.
    """
    from handaxe.text.encoding import HEAD_BYTES, detect_image_type, is_pdf

    head = await ctx[Files].head(path, HEAD_BYTES)
    if detect_image_type(head):
        from handaxe.tools.files.read.image import read_image

        return await read_image(path, ctx)
    if is_pdf(head):
        from handaxe.tools.files.read.pdf import read_pdf

        return await read_pdf(path, args.pages, ctx)
    info = await ctx[Files].look(path)
    raise Binary(path, info.size_bytes if info else len(head))
