"""Blocks that any front end can paint: a terminal, a web page, an editor.

Tools say *what* there is to see; colours, widths and folding belong to the painters.
"""

from typing import Any, Literal, cast

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
    """The changes of one file."""

    path: str
    hunks: tuple[DiffHunk, ...]


class Table(msgspec.Struct, frozen=True, tag_field="block", tag="table"):
    """Rows under column names."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        """Fail where the table is made, not where it is painted."""
        for row in cast("tuple[object, ...]", (self.columns, *self.rows)):
            if not isinstance(row, tuple | list):
                raise TypeError(f"Table: {row!r:.100} is not a tuple of cells.")
            cells = cast("tuple[object, ...]", row)
            if len(cells) != len(self.columns):
                raise TypeError(f"Table: {cells!r:.100} has not one cell for each column.")
            if not all(isinstance(cell, str) for cell in cells):
                raise TypeError(f"Table: {cells!r:.100} has a cell that is not a text.")


class Items(msgspec.Struct, frozen=True, tag_field="block", tag="items"):
    """A plain list."""

    items: tuple[str, ...]


Block = Text | Code | Diff | Table | Items
Display = tuple[Block, ...]

Moment = Literal[
    "input", "queued", "started", "progress", "finished", "rejected", "failed", "group"
]


class CallDisplay(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of a call, or of the calls of one answer, as it is shown."""

    moment: Moment
    call_id: str = ""
    """Empty for a group."""
    tool: str = ""
    title: str = ""
    """The call in one line, as its tool words it."""
    headline: str
    """The moment in one line: all that a condensed view shows."""
    summary: str = ""
    """The result of a successful call in one line, in the words of its tool."""
    tone: str = "plain"
    """The meaning of the headline, as in `Text.tone`."""
    blocks: Display = ()
    """The details that a full view shows below the headline."""
    agent_id: str = ""
    """Which subagent makes the call; empty for the main agent."""
    agent_type: str = ""
    parent_call_id: str | None = None
    """The call that started the subagent."""

    def to_json(self) -> dict[str, Any]:
        """Convert the block to JSON values."""
        return msgspec.to_builtins(self)
