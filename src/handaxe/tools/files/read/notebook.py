"""Show a notebook by cells: complete sources, limited outputs and pictures."""

import asyncio
import base64
import binascii

import msgspec

from handaxe.contract.content import ImageBlock
from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.files import LoadedFile
from handaxe.contract.ports.media import Media
from handaxe.contract.result import ToolResult
from handaxe.session.read_ledger import ReadLedger
from handaxe.text.escape import format_count
from handaxe.text.json_spans import MalformedJson, Span, parse_value
from handaxe.text.notebook.cell_outputs import Output, read_outputs
from handaxe.text.notebook.document import Cell, NotANotebook, Notebook, join_lines, read_notebook
from handaxe.tools.files.read.image import read_image_limits, to_image_block
from handaxe.tools.files.read.outline import Outline, OutlineEntry, format_outline, sample_evenly
from handaxe.tools.files.read.read_data import (
    CellData,
    CellOutputData,
    NotebookData,
    NotebookFileData,
)

MAX_FILE_BYTES = 100 * 1024 * 1024
SMALL_BYTES = 256 * 1024
MAX_CHARS = 200_000
OUTPUT_CHARS = 4_000
"""Limit per cell when several cells are shown; a single cell may fill the page."""
OUTLINED_CELLS = 5_000
_HEADING_CHARS = 80
MAX_PICTURES = 10
MAX_PICTURE_CHARS = 16 * 1024 * 1024


class ShownCell(msgspec.Struct, frozen=True):
    """One cell with the shown part of its outputs."""

    cell: Cell
    source: str
    outputs: list[Output]

    @property
    def is_cut(self) -> bool:
        """Whether a part of the cell is not shown."""
        left_out = any(o.left_out_chars or o.image or o.more_forms for o in self.outputs)
        is_short = len(self.source) < len(self.cell.source)
        return left_out or is_short or bool(self.cell.attachments)


async def read_cells(
    path: str, loaded: LoadedFile, ctx: ToolContext, *, offset: int, limit: int | None
) -> ToolResult:
    """The cells from `offset` on.

    Raises:
        NotANotebook: the file has no valid cells.
    """
    if len(loaded.data) <= SMALL_BYTES:
        notebook, shown = _choose(loaded.data, offset, limit)
    else:
        notebook, shown = await asyncio.to_thread(_choose, loaded.data, offset, limit)
    page = _Page(path, notebook, ctx)
    for cell in shown:
        await page.add(cell)
    _remember(loaded, notebook, shown, ctx[ReadLedger])
    return page.result(loaded.version.size_bytes, shown, offset)


def _choose(data: bytes, offset: int, limit: int | None) -> tuple[Notebook, list[ShownCell]]:
    """As many cells from `offset` on as fit on the page."""
    notebook = read_notebook(data)
    total = len(notebook.spans)
    first = max(0, total + offset) if offset < 0 else max(0, offset - 1)
    last = total if limit is None else min(total, first + limit)
    left, shown = MAX_CHARS, list[ShownCell]()
    try:
        for index in range(first, last):
            cell = notebook.cell(index)
            alone = last - first == 1
            outputs = read_outputs(data, cell.outputs, MAX_CHARS // 2 if alone else OUTPUT_CHARS)
            left -= len(cell.source) + sum(len(output.text) for output in outputs)
            if left < 0 and shown:
                break
            shown.append(ShownCell(cell, cell.source[:MAX_CHARS], outputs))
    except MalformedJson as bad:
        raise NotANotebook(f"it is not JSON: {bad}") from None
    return notebook, shown


class _Page:
    """The text and the pictures of the shown cells."""

    def __init__(self, path: str, notebook: Notebook, ctx: ToolContext) -> None:
        self._path = path
        self._notebook = notebook
        self._media = ctx.find(Media)
        self._limits = read_image_limits(ctx)
        self._parts: list[str] = []
        self._cells: list[CellData] = []
        self._pictures: list[ImageBlock] = []

    async def add(self, shown: ShownCell) -> None:
        cell = shown.cell
        parts = [self._format_heading(cell), shown.source]
        if len(shown.source) < len(cell.source):
            parts.append(
                f"[The source continues: {len(cell.source):,} characters. {self._raw(cell)}]"
            )
        if cell.attachments:
            parts.append(f"[attached to the cell, not shown: {', '.join(cell.attachments)}]")
        outputs: list[CellOutputData] = []
        for number, output in enumerate(shown.outputs, 1):
            note = await self._look(output) if output.image else ""
            parts.append(self._format_output(cell, number, output, note))
            outputs.append(_to_output_data(output, note))
        self._parts.append("\n".join(part for part in parts if part))
        self._cells.append(
            {
                "index": cell.index,
                "cell_id": cell.address,
                "cell_type": cell.cell_type,
                "source": shown.source,
                "execution_count": cell.execution_count,
                "outputs": outputs,
            }
        )

    def result(self, size_bytes: int, shown: list[ShownCell], offset: int) -> ToolResult:
        """Build the result."""
        notebook, total = self._notebook, len(self._notebook.spans)
        head = (
            f"{self._path}: notebook of {total:,} cell{'s' * (total != 1)} ({notebook.language}, "
            f"format 4.{notebook.minor}), {size_bytes:,} bytes."
        )
        notice = self._format_notice(shown, total, offset)
        outline = _build_outline(notebook) if offset == 1 and 0 < len(shown) < total else None
        if outline is not None:
            self._parts.append(f"[{format_outline(outline, 'cell, counted from 1')}]")
        file: NotebookFileData = {
            "filePath": self._path,
            "cells": self._cells,
            "totalCells": total,
            "language": notebook.language,
        }
        data: NotebookData = {"type": "notebook", "file": file, "sizeBytes": size_bytes}
        if outline is not None:
            data["outline"] = msgspec.to_builtins(outline)
        return ToolResult(
            "\n\n".join([head, *self._parts, *([f"[{notice}]"] if notice else [])]),
            data=data,
            content=tuple(self._pictures),
        )

    def _format_heading(self, cell: Cell) -> str:
        ran = f", run {cell.execution_count}" if cell.execution_count is not None else ""
        name = f" id {cell.cell_id}," if cell.cell_id else ""
        return f"--- cell-{cell.index}:{name} {cell.cell_type}{ran} ---"

    def _format_output(self, cell: Cell, number: int, output: Output, note: str) -> str:
        forms = f"; also as {', '.join(output.more_forms)}" if output.more_forms else ""
        lines = [f"[output {number}: {output.kind}{note}{forms}]"]
        if output.text:
            lines.append(output.text.rstrip("\n"))
        if output.left_out_chars:
            lines.append(
                f"[More of it: Read(file_path={self._path!r}, offset={cell.index + 1}, limit=1), "
                f"or {self._raw(cell)}]"
            )
        return "\n".join(lines)

    def _raw(self, cell: Cell) -> str:
        return f"jq '.cells[{cell.index}]' {self._path}"

    def _format_notice(self, shown: list[ShownCell], total: int, offset: int) -> str:
        if not total:
            return "The notebook has no cells."
        if not shown:
            cells = format_count(total, "cell")
            return f"The notebook has only {cells}; offset {offset} is past its end."
        last = shown[-1].cell.index + 1
        if last < total:
            first = shown[0].cell.index + 1
            return (
                f"Showing cells {first}-{last} of {total:,}, counted from 1. To continue: "
                f"Read(file_path={self._path!r}, offset={last + 1})"
            )
        return ""

    async def _look(self, output: Output) -> str:
        """Attach the picture of an output, or explain why not."""
        assert output.image is not None
        media_type, span = output.image
        if self._media is None:
            return f" ({media_type}, not shown: image support is not installed)"
        if len(self._pictures) >= MAX_PICTURES:
            return f" ({media_type}, not shown: read this cell alone to see it)"
        try:
            data = _decode_image(self._notebook.data, span)
            picture = await self._media.fit_image(data, self._limits)
        except (ToolFault, MalformedJson, NotANotebook, binascii.Error, ValueError) as error:
            reason = error.code if isinstance(error, ToolFault) else "it is damaged"
            return f" ({media_type}, not shown: {reason})"
        self._pictures.append(to_image_block(picture))
        size = f"{picture.original_width} x {picture.original_height}"
        return f" ({media_type}, {size} pixels: attached picture {len(self._pictures)})"


def _build_outline(notebook: Notebook) -> Outline | None:
    """The headings of all cells, by cell."""
    marks: list[OutlineEntry] = []
    for index in range(min(len(notebook.spans), OUTLINED_CELLS)):
        cell = notebook.cell(index)
        first = cell.source.lstrip()[:_HEADING_CHARS].partition("\n")[0]
        if cell.cell_type == "markdown" and first.startswith("#"):
            marks.append(OutlineEntry(index + 1, first.strip()))
    return Outline(sample_evenly(marks), len(marks)) if marks else None


def _decode_image(data: bytes, span: Span) -> bytes:
    if span[1] - span[0] > MAX_PICTURE_CHARS:
        raise NotANotebook("the picture is too large")
    value = parse_value(data, span)
    return base64.b64decode(join_lines(value))


def _to_output_data(output: Output, note: str) -> CellOutputData:
    data: CellOutputData = {"output_type": output.kind, "text": output.text}
    if output.image is not None:
        data["image"] = output.image[0]
        data["isShown"] = "attached" in note
    if output.left_out_chars:
        data["leftOutChars"] = output.left_out_chars
    return data


def _remember(
    loaded: LoadedFile, notebook: Notebook, shown: list[ShownCell], ledger: ReadLedger
) -> None:
    """Record which lines of the file were shown, because Write and Edit count lines."""
    data, version = loaded.data, loaded.version
    if len(shown) == len(notebook.spans) and not any(cell.is_cut for cell in shown):
        ledger.record_read(version, content=data)
        return
    total = data.count(b"\n") + (not data.endswith(b"\n"))
    first = last = 0
    if shown:
        # Lines that a cell shares with its neighbours were not seen whole.
        first = data.count(b"\n", 0, shown[0].cell.span[0]) + 2
        last = data.count(b"\n", 0, shown[-1].cell.span[1])
    # A notebook on one line has no line that was seen whole; line 0 stands for "a part of it".
    lines = (first, last) if first <= last else (0, 0)
    if any(cell.is_cut for cell in shown):
        lines = (0, 0)
    ledger.record_read(version, content=data, total_lines=total, lines=lines)
