"""Output of the command line: display blocks as text, escaped for a terminal."""

import os
import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

from handaxe.contract.display import Block, Code, Diff, Display, Items, Table, Text
from handaxe.contract.result import ToolResult
from handaxe.text.line_window import number_lines, split_lines

if TYPE_CHECKING:
    from handaxe.app.session import Session

_OWN_COLOUR = "(\x1b\\[(?:0|2|3[1-6])m)"
# These ranges have no combining marks and no invisible characters.
_PLAIN = "[\n -~¡-ʯ‐-‧←-➿]*"
_TONES = {"muted": "2", "good": "32", "warning": "33", "bad": "31"}


def can_show_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can show colours."""
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"
    return stream.isatty() and not is_dumb and not os.environ.get("NO_COLOR")


class BlockRenderer:
    """Turns blocks into text."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    @classmethod
    def create_for_stdout(cls) -> "BlockRenderer":
        """A renderer with colours if standard output shows them."""
        return cls(colour=can_show_colour(sys.stdout))

    @classmethod
    def create_for_stderr(cls) -> "BlockRenderer":
        """A renderer with colours if standard error shows them."""
        return cls(colour=can_show_colour(sys.stderr))

    def result(self, session: "Session", result: ToolResult, call_input: dict[str, Any]) -> str:
        """A whole result, with its notes."""
        from handaxe.app.session import get_parts
        from handaxe.app.tool_listing import ResultPresenter

        presenter = ResultPresenter(get_parts(session).catalog)
        return self.blocks(presenter.present_result(result, call_input).blocks)

    def blocks(self, blocks: Display) -> str:
        """Several blocks as text."""
        return "".join(self.block(block) for block in blocks)

    def block(self, block: Block) -> str:
        """One block, ending with a line break."""
        match block:
            case Text():
                return (
                    self._apply_tone(_show(block.text, lines=True), _TONES.get(block.tone, ""))
                    + "\n"
                )
            case Code():
                lines = [_show_line(line) for line in split_lines(block.text)]
                return number_lines(lines, block.first_line) + "\n" if lines else ""
            case Diff():
                return self._diff(block)
            case Table():
                return _format_table(block)
            case Items():
                return "".join(f"  {_show(item)}\n" for item in block.items)

    def _diff(self, diff: Diff) -> str:
        lines: list[str] = []
        for hunk in diff.hunks:
            span = f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@"
            lines.append(self._apply_tone(span, "36"))
            for line in hunk.lines:
                tone = {"+": "32", "-": "31"}.get(line[:1], "")
                lines.append(self._apply_tone(_show_line(line), tone))
        return "".join(f"{line}\n" for line in lines)

    def _apply_tone(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code and text else text


def write_out(text: str) -> None:
    """Write to standard output; control characters are escaped."""
    sys.stdout.write(_show(text, lines=True))


def write_error(text: str) -> None:
    """Write to standard error; control characters are escaped."""
    sys.stderr.write(_show(text, lines=True))


def write_rendered(text: str, stream: TextIO | None = None) -> None:
    """Write text of a `BlockRenderer`; control characters except its colours are escaped."""
    pieces = enumerate(re.split(_OWN_COLOUR, text) if "\x1b" in text else (text,))
    safe = (piece if number % 2 else _show(piece, lines=True) for number, piece in pieces)
    (stream or sys.stdout).write("".join(safe))


def print_out(text: str = "") -> None:
    """Print lines on standard output."""
    write_out(f"{text}\n")


def print_error(text: str) -> None:
    """Print lines on standard error and flush."""
    write_error(f"{text}\n")
    sys.stderr.flush()


def print_notice(sentence: object) -> None:
    """Print a notice of handaxe on standard error; further lines are indented."""
    print_error(f"handaxe: {sentence}".replace("\n", "\n  "))


def write_answer(text: str) -> None:
    """Write an answer: unchanged for a program, escaped for a terminal."""
    whole = text if text.endswith("\n") else f"{text}\n"
    (write_out if sys.stdout.isatty() else write_raw)(whole)


def write_raw(text: str) -> None:
    """Write text unchanged: it is for a program, or known to be safe."""
    sys.stdout.write(text)


def _show_line(text: str) -> str:
    """A line of a file, escaped except for tabs."""
    return "\t".join(_show(piece) for piece in text.split("\t"))


def _show(text: str, *, lines: bool = False) -> str:
    is_printable = (text.replace("\n", "") if lines else text).isprintable()
    # Most text is ASCII and the arrow after a line number.
    if is_printable and (text.replace("→", "").isascii() or re.fullmatch(_PLAIN, text)):
        return text
    from handaxe.text.escape import to_visible_text

    return to_visible_text(text, lines=lines)


def _format_table(table: Table) -> str:
    rows = [[_show(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in rows
    )
