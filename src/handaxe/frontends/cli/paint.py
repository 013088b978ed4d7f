"""Display blocks as terminal text: colours for a terminal, plain text for a pipe."""

import os
import sys
from typing import Any, TextIO

from handaxe.app.session import Session
from handaxe.contract.display import Block, Code, Diff, Display, Items, Table, Text
from handaxe.contract.result import ToolResult
from handaxe.text.windows import numbered, split_lines

_TONES = {"muted": "2", "good": "32", "warning": "33", "bad": "31"}


def wants_colour(stream: TextIO) -> bool:
    """Whether a terminal is there that can show more than plain text, and may."""
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"
    return stream.isatty() and not is_dumb and not os.environ.get("NO_COLOR")


class Painter:
    """Turns blocks into text."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    @classmethod
    def for_stdout(cls) -> "Painter":
        """Colours if standard output is a terminal that wants them."""
        return cls(colour=wants_colour(sys.stdout))

    @classmethod
    def for_stderr(cls) -> "Painter":
        """Colours if standard error is a terminal that wants them."""
        return cls(colour=wants_colour(sys.stderr))

    def result(self, session: Session, result: ToolResult, call_input: dict[str, Any]) -> str:
        """A whole result, with its notes."""
        blocks: Display | None = session.show(result, call_input) if result.ok else None
        if blocks is None:
            blocks = (Text(result.text, "plain" if result.ok else "bad"),)
        elif not any(isinstance(block, Text | Items | Table) for block in blocks):
            # A diff shows what changed; the words say where, and how it went.
            blocks = blocks if result.tool == "Read" else (Text(result.text), *blocks)
        notes = tuple(Text(note, "muted") for note in result.notes)
        return "".join(self.block(block) for block in (*blocks, *notes))

    def block(self, block: Block) -> str:
        """One block, ending with a line break."""
        match block:
            case Text():
                return self._tone(printable(block.text), _TONES.get(block.tone, "")) + "\n"
            case Code():
                lines = [printable(line) for line in split_lines(block.text)]
                return numbered(lines, block.first_line) + "\n" if lines else ""
            case Diff():
                return self._diff(block)
            case Table():
                return _table(block)
            case Items():
                return "".join(f"  {printable(item)}\n" for item in block.items)

    def _diff(self, diff: Diff) -> str:
        lines: list[str] = []
        for hunk in diff.hunks:
            span = f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@"
            lines.append(self._tone(span, "36"))
            for line in hunk.lines:
                tone = {"+": "32", "-": "31"}.get(line[:1], "")
                lines.append(self._tone(printable(line), tone))
        return "".join(f"{line}\n" for line in lines)

    def _tone(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code and text else text


def printable(text: str) -> str:
    """Control and invisible characters spelled out, so that no text can steer a terminal."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        sign if sign in "\n\t" or sign.isprintable() else _spelled(sign) for sign in text
    )


def _spelled(sign: str) -> str:
    return f"\\x{ord(sign):02x}" if ord(sign) <= 0xFF else f"<U+{ord(sign):04X}>"


def _table(table: Table) -> str:
    rows = [table.columns, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    return "".join(
        "  ".join(
            printable(cell).ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        + "\n"
        for row in rows
    )
