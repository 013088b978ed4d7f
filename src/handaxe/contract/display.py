"""Blocks that any front end can paint: a terminal, a web page, an editor.

Tools say *what* there is to see; colours, widths and folding belong to the painters.
"""

import msgspec


class Text(msgspec.Struct, frozen=True, tag_field="block", tag="text"):
    """Plain words; `tone` says what they mean, not how they look."""

    text: str
    tone: str = "plain"
    """`plain`, `muted`, `good`, `warning` or `bad`."""


class Code(msgspec.Struct, frozen=True, tag_field="block", tag="code"):
    """Lines of a file, numbered from `first_line`."""

    text: str
    path: str = ""
    first_line: int = 1


class DiffHunk(msgspec.Struct, frozen=True, rename="camel"):
    """A run of changed lines with its surroundings; each line starts with ` `, `-` or `+`."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: tuple[str, ...]


class Diff(msgspec.Struct, frozen=True, tag_field="block", tag="diff"):
    """What changed in one file."""

    path: str
    hunks: tuple[DiffHunk, ...]


class Table(msgspec.Struct, frozen=True, tag_field="block", tag="table"):
    """Rows under column names."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Items(msgspec.Struct, frozen=True, tag_field="block", tag="items"):
    """A plain list."""

    items: tuple[str, ...]


Block = Text | Code | Diff | Table | Items
Display = tuple[Block, ...]
