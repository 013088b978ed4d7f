"""Change one cell of a notebook by cutting and pasting its bytes; all others stay as they are.

New bytes are written in the notebook's own style: its indentation, separators, line breaks, and its
way with characters beyond ASCII.
"""

import json
import re
from hashlib import sha256
from typing import Any

import msgspec

from handaxe.text.json_spans import MalformedJson, Span, parse_value
from handaxe.text.notebook.document import Cell, NotANotebook, Notebook, read_notebook

_BREAK = re.compile(rb"\{(\r?\n)([ \t]*)\"")
_ESCAPE = re.compile(rb"\\u(?:00[89a-f]|0[1-9a-f]|[1-9a-f])", re.IGNORECASE)


class NotebookSplice(msgspec.Struct, frozen=True):
    """Bytes to put in place of others."""

    start: int
    end: int
    new: bytes


class NotebookChange(msgspec.Struct, frozen=True):
    """The edits of the notebook's bytes, in order and disjoint, and the cell they change."""

    splices: tuple[NotebookSplice, ...]
    address: str
    cell_type: str
    old_source: str | None = None

    def pieces(self, data: bytes) -> list[bytes | memoryview]:
        """The new content; unchanged bytes are not copied."""
        view, at = memoryview(data), 0
        pieces: list[bytes | memoryview] = []
        for splice in self.splices:
            pieces += (view[at : splice.start], splice.new)
            at = splice.end
        return [*pieces, view[at:]]


def validate_notebook(data: bytes) -> Notebook:
    """The notebook, every cell of it looked at.

    Raises:
        NotANotebook: It could not be changed without making it worse.
    """
    notebook = read_notebook(data)
    try:
        parse_value(data, (3 if data.startswith(b"\xef\xbb\xbf") else 0, len(data)))
    except MalformedJson as bad:
        raise NotANotebook(f"it is not JSON: {bad}") from None
    for cell in notebook.list_cells():
        _refuse_wrong(data, cell)
    return notebook


def replace_cell(
    notebook: Notebook, index: int, source: str, cell_type: str | None
) -> NotebookChange:
    """Give a cell another source, and another type if one is named; its outputs go."""
    cell, style = notebook.cell(index), _Style.of(notebook)
    if cell_type not in {None, cell.cell_type}:
        return _change_cell_type(notebook, cell, source, cell_type or cell.cell_type)
    depth = style.measure_depth(notebook.data, cell.span) + 1
    is_list = notebook.data[cell.parts["source"][0]] == ord("[")
    texts = {"source": style.dump(format_source(source, is_list=is_list), depth)}
    if cell.cell_type == "code":
        texts |= {"outputs": b"[]", "execution_count": b"null"}
    splices = [
        NotebookSplice(*cell.parts[name], text)
        for name, text in texts.items()
        if name in cell.parts
    ]
    return NotebookChange(
        tuple(sorted(splices, key=lambda splice: splice.start)),
        cell.address,
        cell.cell_type,
        cell.source,
    )


def insert_cell(
    notebook: Notebook, after: int | None, source: str, cell_type: str
) -> NotebookChange:
    """A new cell behind the one at `after`, or before all others."""
    style, data, spans = _Style.of(notebook), notebook.data, notebook.spans
    position = 0 if after is None else after + 1
    content = _build_cell(notebook, position, source, cell_type)
    address = content.get("id") or f"cell-{position}"
    outer = notebook.parts["cells"]
    if not spans:
        depth = style.measure_depth(data, outer) + 2
        gap = style.format_line_break(depth)
        end = style.format_line_break(depth - 1)
        text = b"[" + gap + style.dump(content, depth) + end + b"]"
        return NotebookChange((NotebookSplice(*outer, text),), address, cell_type)
    gap = _get_separator(data, outer, spans, style)
    new = style.dump(content, style.measure_depth(data, spans[0]))
    # Taking the new cell out again takes out exactly what is put in here.
    if position < len(spans):
        at = spans[position][0]
        return NotebookChange((NotebookSplice(at, at, new + b"," + gap),), address, cell_type)
    at = spans[-1][1]
    return NotebookChange((NotebookSplice(at, at, b"," + gap + new),), address, cell_type)


def delete_cell(notebook: Notebook, index: int) -> NotebookChange:
    """Take a cell out."""
    cell, spans = notebook.cell(index), notebook.spans
    if len(spans) == 1:
        outer = notebook.parts["cells"]
        place = (outer[0] + 1, outer[1] - 1)
    elif index + 1 < len(spans):
        place = (cell.span[0], spans[index + 1][0])
    else:
        place = (spans[index - 1][1], cell.span[1])
    return NotebookChange((NotebookSplice(*place, b""),), cell.address, cell.cell_type, cell.source)


def format_source(source: str, *, is_list: bool) -> str | list[str]:
    """A source as notebooks store it: one string, or a list of lines with their breaks."""
    if not is_list:
        return source
    lines = re.split(r"(?<=\n)", source)
    return lines if lines[-1] else lines[:-1]


class _Style(msgspec.Struct, frozen=True):
    """How a notebook is written."""

    indent: str | None
    line_break: bytes
    separators: tuple[str, str]
    is_ascii: bool

    @classmethod
    def of(cls, notebook: Notebook) -> "_Style":
        data = notebook.data
        first = min(notebook.parts.values())
        match = _BREAK.search(data, 0, first[0])
        is_spaced = data[first[1] : first[1] + 2] == b", "
        return cls(
            indent=match[2].decode() if match else None,
            line_break=match[1] if match else b"\n",
            separators=(
                ", " if is_spaced and match is None else ",",
                ":" if data[first[0] - 1] == ord(":") else ": ",
            ),
            is_ascii=data.isascii() and _ESCAPE.search(data) is not None,
        )

    def dump(self, value: Any, depth: int) -> bytes:  # noqa: ANN401 - any JSON
        """A value as it would stand `depth` levels deep."""
        text = json.dumps(
            value, indent=self.indent, separators=self.separators, ensure_ascii=self.is_ascii
        )
        return text.encode().replace(b"\n", self.format_line_break(depth))

    def format_line_break(self, depth: int) -> bytes:
        """A line break and the indentation of a level; nothing where all is on one line."""
        if self.indent is None:
            return b""
        return self.line_break + (self.indent * depth).encode()

    def measure_depth(self, data: bytes, span: Span) -> int:
        """How deep a value stands, by the indentation of the line it begins on."""
        if not self.indent:
            return 0
        line = data[data.rfind(b"\n", 0, span[0]) + 1 : span[0]]
        blanks = len(line) - len(line.lstrip(b" \t"))
        return blanks // len(self.indent)


def _get_separator(data: bytes, outer: Span, spans: list[Span], style: _Style) -> bytes:
    """The bytes between the comma and the next cell."""
    if len(spans) > 1:
        between = data[spans[0][1] : spans[1][0]]
        return between[between.find(b",") + 1 :]
    if style.indent is not None:
        return data[outer[0] + 1 : spans[0][0]]
    return style.separators[0][1:].encode()


def _build_cell(notebook: Notebook, position: int, source: str, cell_type: str) -> dict[str, Any]:
    content: dict[str, Any] = {"cell_type": cell_type}
    if cell_type == "code":
        content["execution_count"] = None
    if notebook.has_ids:
        content["id"] = _make_cell_id(notebook, position, source)
    content["metadata"] = {}
    if cell_type == "code":
        content["outputs"] = []
    is_list = True
    if notebook.spans:
        near = notebook.cell(min(position, len(notebook.spans) - 1))
        is_list = notebook.data[near.parts["source"][0]] == ord("[")
    content["source"] = format_source(source, is_list=is_list)
    return content


def _make_cell_id(notebook: Notebook, position: int, source: str) -> str:
    """An id no cell has; made from the notebook itself, so that it needs no chance."""
    taken = set(notebook.ids())
    seed = sha256(notebook.data)
    seed.update(f"{position}\0{source}".encode("utf-8", "surrogatepass"))
    digest = seed.hexdigest()
    return next(
        digest[at : at + 8] for at in range(len(digest) - 8) if digest[at : at + 8] not in taken
    )


def _change_cell_type(
    notebook: Notebook, cell: Cell, source: str, cell_type: str
) -> NotebookChange:
    """The whole cell rewritten: another type of cell has other members."""
    style, data = _Style.of(notebook), notebook.data
    is_list = data[cell.parts["source"][0]] == ord("[")
    content: dict[str, Any] = parse_value(data, cell.span)
    content |= {"cell_type": cell_type, "source": format_source(source, is_list=is_list)}
    for name in ("outputs", "execution_count", *(("attachments",) if cell_type == "code" else ())):
        content.pop(name, None)
    was_sorted = list(content) == sorted(content)
    if cell_type == "code":
        content |= {"execution_count": None, "outputs": []}
    if was_sorted:
        content = dict(sorted(content.items()))
    text = style.dump(content, style.measure_depth(data, cell.span))
    return NotebookChange((NotebookSplice(*cell.span, text),), cell.address, cell_type, cell.source)


def _refuse_wrong(data: bytes, cell: Cell) -> None:
    metadata = parse_value(data, cell.parts["metadata"]) if "metadata" in cell.parts else None
    if not isinstance(metadata, dict):
        raise NotANotebook(f"cell {cell.index} has no `metadata`")
    if cell.cell_type == "code" and "outputs" not in cell.parts:
        raise NotANotebook(f"cell {cell.index} is code and has no `outputs`")
