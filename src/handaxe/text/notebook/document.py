"""The Jupyter document model: cells by id or index, without loading unused parts.

Reading only; `notebook_edit` changes one cell and leaves every other byte as it is.
"""

import re
from typing import Any, cast

import msgspec

from handaxe.text.escape import format_count
from handaxe.text.json_spans import (
    MalformedJson,
    Span,
    find_document,
    find_members,
    list_items,
    parse_value,
)

CELL_TYPES = frozenset({"code", "markdown", "raw"})

_INDEX = re.compile(r"(?:cell-)?(\d{1,9})")


class NotANotebook(Exception):
    """The bytes are not a notebook of format 4; the message says what is wrong."""


class NoSuchCell(Exception):
    """There is no cell, or more than one, of that id."""


class Cell(msgspec.Struct, frozen=True):
    """One cell; its outputs are only pointed at."""

    index: int
    span: Span
    parts: dict[str, Span]
    cell_id: str | None
    cell_type: str
    source: str
    execution_count: int | None
    outputs: tuple[Span, ...]
    attachments: tuple[str, ...]

    @property
    def address(self) -> str:
        """The id by which NotebookEdit finds the cell."""
        return self.cell_id or f"cell-{self.index}"


class Notebook(msgspec.Struct, frozen=True):
    """A notebook as in its file."""

    data: bytes
    parts: dict[str, Span]
    spans: list[Span]
    """Where its cells are."""
    minor: int
    metadata: dict[str, Any]

    @property
    def language(self) -> str:
        """The programming language of its code."""
        for group, name in (("language_info", "name"), ("kernelspec", "language")):
            facts = self.metadata.get(group)
            value = cast("dict[str, Any]", facts).get(name) if isinstance(facts, dict) else None
            if isinstance(value, str) and value:
                return value
        return "python"

    @property
    def has_ids(self) -> bool:
        """Whether cells of this format have an id."""
        return self.minor >= 5

    def cell(self, index: int) -> Cell:
        """The cell at `index`, counted from 0."""
        try:
            return _parse_cell(self.data, index, self.spans[index])
        except MalformedJson as bad:
            raise NotANotebook(f"cell {index} is not JSON: {bad}") from None

    def list_cells(self) -> list[Cell]:
        """All cells."""
        return [self.cell(index) for index in range(len(self.spans))]

    def find(self, address: str) -> int:
        """The index of the cell with that id, or else at that index (`3` or `cell-3`, from 0).

        Raises:
            NoSuchCell: There is none, or the id is used twice.
        """
        ids = self.ids()
        count = ids.count(address)
        if count == 1:
            return ids.index(address)
        if count:
            places = [str(index) for index, cell_id in enumerate(ids) if cell_id == address]
            raise NoSuchCell(f"{count} cells have the id {address!r}: {', '.join(places)}.")
        match = _INDEX.fullmatch(address.strip())
        if match and int(match[1]) < len(self.spans):
            return int(match[1])
        raise NoSuchCell(
            f"There is no cell {address!r}; the notebook has {format_count(len(ids), 'cell')}."
        )

    def ids(self) -> list[str | None]:
        """The ids of all cells."""
        try:
            return [_parse_cell_id(self.data, find_members(self.data, span)) for span in self.spans]
        except MalformedJson as bad:
            raise NotANotebook(f"a cell is not JSON: {bad}") from None


def read_notebook(data: bytes) -> Notebook:
    """Parse the notebook in `data`, with the checks that reading needs.

    Raises:
        NotANotebook: It is something else, or of a format before 4.
    """
    try:
        parts = find_members(data, find_document(data))
        major = parse_value(data, parts["nbformat"]) if "nbformat" in parts else None
        if major != 4:
            raise NotANotebook(_describe_wrong_format(major, parts))
        minor = parse_value(data, parts["nbformat_minor"]) if "nbformat_minor" in parts else None
        metadata = parse_value(data, parts["metadata"]) if "metadata" in parts else None
        spans = list_items(data, parts["cells"]) if "cells" in parts else None
    except MalformedJson as bad:
        raise NotANotebook(f"it is not JSON: {bad}") from None
    if not isinstance(minor, int) or not isinstance(metadata, dict) or spans is None:
        raise NotANotebook("`nbformat_minor`, `metadata` or `cells` is missing or wrong")
    return Notebook(data, parts, spans, minor, cast("dict[str, Any]", metadata))


def join_lines(value: object) -> str:
    """A text of a notebook, which may be stored as one string or as a list of lines."""
    if isinstance(value, str):
        return value
    lines = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(line, str) for line in lines):
        raise NotANotebook("a text is neither a string nor a list of strings")
    return "".join(cast("list[str]", lines))


def _parse_cell(data: bytes, index: int, span: Span) -> Cell:
    parts = find_members(data, span)
    cell_type = parse_value(data, parts["cell_type"]) if "cell_type" in parts else None
    if cell_type not in CELL_TYPES or "source" not in parts:
        raise NotANotebook(f"cell {index} has no `source`, or {cell_type!r} is not a type of cell")
    count = parse_value(data, parts["execution_count"]) if "execution_count" in parts else None
    return Cell(
        index=index,
        span=span,
        parts=parts,
        cell_id=_parse_cell_id(data, parts),
        cell_type=cell_type,
        source=join_lines(parse_value(data, parts["source"])),
        execution_count=count if isinstance(count, int) else None,
        outputs=tuple(list_items(data, parts["outputs"])) if "outputs" in parts else (),
        attachments=tuple(find_members(data, parts["attachments"]))
        if "attachments" in parts
        else (),
    )


def _parse_cell_id(data: bytes, parts: dict[str, Span]) -> str | None:
    cell_id = parse_value(data, parts["id"]) if "id" in parts else None
    return cell_id if isinstance(cell_id, str) and cell_id else None


def _describe_wrong_format(major: object, parts: dict[str, Span]) -> str:
    if major is None and "worksheets" not in parts:
        return "it has no `nbformat`"
    return (
        f"its format is {major!r}, and only 4 is understood (convert it with `jupyter nbconvert`)"
    )
