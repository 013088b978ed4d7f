"""The output of the tour: indented, wrapped, without names of temporary directories."""

import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from handaxe.app.session import Session
from handaxe.contract.decision import PermissionRequest
from handaxe.contract.display import Code, Diff, Text
from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.render import BlockRenderer, write_rendered
from handaxe.frontends.cli.terminal_prompts import format_question
from handaxe.models.scripted import ScriptedModel, parse_script
from handaxe.text.escape import format_count

MARGIN = "   "
WIDTH = 94
MAX_LINES = 18
_DIFF_TONES = {"+": "good", "-": "bad"}


class TourPage:
    """Writes to standard output."""

    def __init__(self, place: Path, painter: BlockRenderer) -> None:
        self._painter = painter
        # Hide the long names of temporary directories.
        project, sessions = re.escape(f"{place}/project"), re.escape(f"{place}/home/sessions")
        self._hidden = (
            (re.compile(f"{project}/"), ""),
            (re.compile(project), "the project"),
            (re.compile(rf"{sessions}/\w+/"), ".../"),
        )

    def line(self, text: str, tone: str = "plain", *, margin: str = MARGIN) -> None:
        """Print lines in one tone."""
        for each in self._clean_text(text).splitlines():
            write_rendered(margin + self._painter.block(Text(each, tone)))
        sys.stdout.flush()

    def gap(self) -> None:
        """Print an empty line."""
        write_rendered("\n")

    def chapter(self, number: int, title: str, says: Iterable[str]) -> None:
        """Print the head of a chapter."""
        self.gap()
        self.line(f"{number}. {title}", "good", margin="")
        for each in says:
            self.line(each)
        self.gap()

    def says(self, who: str, words: str) -> None:
        """Print what the user or the model says."""
        self.line(f"{who} > {words}", "muted" if who == "you" else "plain")

    def call(self, tool: str, call_input: dict[str, Any], *, who: str = "") -> None:
        """Print a call in Python form, and the subagent that makes it."""
        spelled = ", ".join(f"{name}={value!r}" for name, value in call_input.items())
        if who:
            self.line(f"{who}: {tool}({spelled})", "muted", margin=2 * MARGIN)
            return
        self.gap()
        self.line(f"{tool}({spelled})", "warning")

    def result(self, session: Session, result: ToolResult, call_input: dict[str, Any]) -> None:
        """Print the result of a call: its diff, its text or the refusal."""
        tidy = msgspec.structs.replace(result, text=self._clean_text(result.text))
        blocks = session.presenter().present_result(tidy, call_input).blocks
        if result.ok and any(isinstance(block, Code | Diff) for block in blocks):
            write_rendered(_indent_text(self._painter.blocks(blocks), MARGIN))
            return
        if not result.ok:
            self.line(f"refused: {result.code}", "bad")
        for each in _limit_lines(self._clean_text(result.text)):
            self.line(each, _DIFF_TONES.get(each[:1], "plain"))

    def question(self, request: PermissionRequest, typed: str) -> None:
        """Print a permission question and the answer."""
        question = self._clean_text(format_question(request, self._painter))
        write_rendered(_indent_text(question.strip("\n") + "\n", f"{MARGIN}| "))
        self.line(f"| Allow?  {typed}    <- the tour answers", "warning")

    def _clean_text(self, text: str) -> str:
        for long, short in self._hidden:
            text = long.sub(short, text)
        lines = text.rstrip("\n").split("\n")
        return "\n".join(
            _wrap_line(line) if len(line) > WIDTH and "\x1b" not in line else line for line in lines
        )


def _wrap_line(line: str) -> str:
    return textwrap.fill(
        line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _indent_text(text: str, margin: str) -> str:
    return "".join(f"{margin}{line}".rstrip() + "\n" for line in text.splitlines())


def _limit_lines(text: str) -> list[str]:
    lines = text.rstrip().splitlines()
    if len(lines) <= MAX_LINES:
        return lines
    return [*lines[: MAX_LINES - 1], f"... {format_count(len(lines) - MAX_LINES + 1, 'more line')}"]


class TourFileChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a file by another program."""

    file: str
    old: str
    new: str


class TourChapter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One prompt, and the expected ends of its calls."""

    title: str
    says: tuple[str, ...]
    prompt: str
    turn: tuple[dict[str, Any], ...]
    ends: tuple[str, ...]
    """Per call of the main agent: `ok`, or the code of its failure."""
    answers: tuple[str, ...] = ()
    """The answers to the questions, in order."""
    somebody_changes: TourFileChange | None = None
    is_timed: bool = False
    """Whether to print the duration of the calls."""
    undoes: bool = False
    """Whether to undo the last change at the end."""


class TourStory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a tour file."""

    mode: str
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    agents: dict[str, Any]
    files: dict[str, str]
    chapter: tuple[TourChapter, ...]

    def model(self) -> ScriptedModel:
        """The scripted model of the story."""
        turns = [turn for chapter in self.chapter for turn in chapter.turn]
        script = {"turn": turns, "agents": self.agents, "name": "scripted"}
        return ScriptedModel(parse_script(script, "story.toml"))


def load_story() -> TourStory:
    """Load the story."""
    text = Path(__file__).with_name("story.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), TourStory)
