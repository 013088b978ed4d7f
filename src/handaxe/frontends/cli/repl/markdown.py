"""A streamed answer as Markdown, rendered part by part."""

import os
import sys
from importlib.util import find_spec
from typing import Protocol

from handaxe.frontends.cli.render import write_out
from handaxe.text.escape import to_visible_text


class AnswerRenderer(Protocol):
    """Shows an answer piece by piece."""

    def add(self, piece: str) -> None:
        """Add a piece of text."""
        ...

    def end(self) -> None:
        """Finish the answer, because it ends or other output follows."""
        ...


def create_answer_renderer(*, colour: bool) -> AnswerRenderer:
    """A Markdown renderer if the terminal and the extra allow it, else plain text."""
    if colour and find_spec("rich") is not None:
        return MarkdownRenderer()
    return PlainRenderer()


class PlainRenderer:
    """Plain text, written at once."""

    def __init__(self) -> None:
        self._has_open_line = False

    def add(self, piece: str) -> None:
        """Write it at once."""
        if piece:
            write_out(to_visible_text(piece, lines=True))
            sys.stdout.flush()
            self._has_open_line = not piece.endswith("\n")

    def end(self) -> None:
        """Finish the line."""
        if self._has_open_line:
            write_out("\n")
            sys.stdout.flush()
        self._has_open_line = False


class MarkdownRenderer:
    """Renders each paragraph, list or code block when it is complete."""

    def __init__(self) -> None:
        self._text = ""

    def add(self, piece: str) -> None:
        """Render the complete parts."""
        self._text += piece
        if "\n" not in piece:
            return
        at = _find_block_end(self._text)
        if at:
            whole, self._text = self._text[:at], self._text[at:]
            self._paint(whole)

    def end(self) -> None:
        """Render the rest."""
        rest, self._text = self._text, ""
        self._paint(rest)

    def _paint(self, text: str) -> None:
        if not text.strip():
            return
        from rich.console import Console
        from rich.markdown import Markdown

        width = max(20, min(_get_columns(), 100))
        console = Console(
            file=sys.stdout,
            width=width,
            force_terminal=True,
            no_color=bool(os.environ.get("NO_COLOR")),
        )
        console.print(Markdown(to_visible_text(text, lines=True).strip("\n"), hyperlinks=False))
        sys.stdout.flush()


def _find_block_end(text: str) -> int:
    """The end of the last complete part: a blank line outside a code block."""
    in_code = False
    end = at = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
        if not in_code and line.endswith("\n") and not line.strip():
            end = at
    return end


def _get_columns() -> int:
    """The current width of the terminal; COLUMNS may be outdated."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
