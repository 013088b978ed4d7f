"""`handaxe tour`: what handaxe does, shown on a throw-away project; no model, no network."""

import argparse
import asyncio
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from handaxe.app.session import Session
from handaxe.contract.display import Text
from handaxe.contract.events import CallFinished, CallStarted, Event
from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.exits import DONE, FAILED
from handaxe.frontends.cli.paint import Painter
from handaxe.storage.sessions import events_of

MARGIN = "   "
WIDTH = 96
_DIFF_TONES = {"+": "good", "-": "bad"}

FILES = {
    "greet.py": (
        '"""Greetings."""\n\n\n'
        'def hello(name):\n    return f"Hello, {name}!"\n\n\n'
        'def goodbye(name):\n    return f"Goodbye, {name}!"\n'
    ),
    "Makefile": "test:\n\tpython -m pytest\n\tpython -m greet\n",
    "deploy.key": "not for a model\n",
}
_MORNING = FILES["greet.py"].replace("Hello", "Good morning")


class Step(msgspec.Struct, frozen=True):
    """One message of a model: what the reader is told, the calls, and how each one ends."""

    title: str
    says: tuple[str, ...]
    calls: tuple[tuple[str, dict[str, Any]], ...]
    codes: tuple[str | None, ...] = (None,)
    """The code of each call; None for one that succeeds."""
    somebody_writes: tuple[tuple[str, str], ...] = ()
    """Files that another program changes just before."""


STEPS = (
    Step(
        "Read a file",
        (
            "The model gets numbered lines.",
            "The session remembers which version of the file it has seen.",
        ),
        (("Read", {"file_path": "greet.py"}),),
    ),
    Step(
        "Edit it",
        (
            "Only the named text changes; every other byte stays.",
            "The new file is on disk for good before the model hears of it.",
        ),
        (("Edit", {"file_path": "greet.py", "old_string": "Hello", "new_string": "Good morning"}),),
    ),
    Step(
        "An edit that could mean two places",
        ("handaxe does not guess. Nothing is changed, and the model learns what to do next.",),
        (("Edit", {"file_path": "greet.py", "old_string": "(name)", "new_string": "(friend)"}),),
        ("edit.many_matches",),
    ),
    Step(
        "Somebody else changes the file",
        ("You save it in your editor. The model does not know, so its next edit is refused.",),
        (("Edit", {"file_path": "greet.py", "old_string": "Goodbye", "new_string": "Bye"}),),
        ("file.changed",),
        (("greet.py", _MORNING.replace("Goodbye", "See you")),),
    ),
    Step(
        "Two calls in one message, and an edit that is nearly right",
        (
            "The Edit waits for the Read, because both touch the same file.",
            "The model sends spaces where the Makefile has a tab. Only one place fits, so it is",
            "taken, and the new lines get the file's own tab.",
        ),
        (
            ("Read", {"file_path": "Makefile"}),
            (
                "Edit",
                {
                    "file_path": "Makefile",
                    "old_string": "    python -m pytest",
                    "new_string": "    python -m ruff check\n    python -m pytest",
                },
            ),
        ),
        (None, None),
    ),
    Step(
        "Undo it",
        (
            "What a file was is kept on disk before the file is changed. So every change can be",
            "put back, by the model, or by you with `handaxe undo`.",
        ),
        (("Undo", {}),),
    ),
    Step(
        "What needs permission",
        (
            "This session may change project files, and has one deny rule: Read(*.key).",
            "A Git hook would run code, so it needs a yes whatever the mode is.",
            "Here nobody can be asked, so the answer is no and nothing happens.",
        ),
        (
            ("Read", {"file_path": "deploy.key"}),
            ("Write", {"file_path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"}),
        ),
        ("permission.denied", "permission.asked"),
    ),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: there are none."""


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - it takes no arguments
    """Walk through all steps; 0 if every call ended as the tour says."""
    with tempfile.TemporaryDirectory(prefix="handaxe-tour-") as place:
        project, home = Path(place).resolve() / "project", Path(place).resolve() / "home"
        project.mkdir()
        _write(project, FILES.items())
        went_well = asyncio.run(_Tour(project, home, Painter.for_stdout()).walk())
    sys.stdout.write("\nThe throw-away project is gone again. Your turn, in a project of yours:\n")
    sys.stdout.write(f"{MARGIN}handaxe call Read file_path=README.md\n")
    return DONE if went_well else FAILED


class _Tour:
    """The walk through one project."""

    def __init__(self, project: Path, home: Path, painter: Painter) -> None:
        self._project = project
        self._home = home
        self._painter = painter

    async def walk(self) -> bool:
        """Show every step and then the log; whether all calls ended as foretold."""
        went_well = True
        self._line(
            f"A throw-away project, {len(STEPS)} messages of a model that we play ourselves."
        )
        async with Session(
            self._project,
            permission_mode="acceptEdits",
            deny=["Read(*.key)"],
            setting_sources=(),
            home=self._home,
        ) as session:
            for number, step in enumerate(STEPS, 1):
                self._announce(number, step.title, step.says)
                _write(self._project, step.somebody_writes)
                results = await session.call_many(step.calls)
                for (tool, call_input), result in zip(step.calls, results, strict=True):
                    self._show(session, tool, call_input, result)
                went_well = went_well and tuple(result.code for result in results) == step.codes
        self._show_log(len(STEPS) + 1, session.id)
        return went_well

    def _announce(self, number: int, title: str, says: Sequence[str]) -> None:
        self._line(f"\n{number}. {title}", "good")
        for line in says:
            self._line(f"{MARGIN}{line}")

    def _show(
        self, session: Session, tool: str, call_input: dict[str, Any], result: ToolResult
    ) -> None:
        spelled = ", ".join(f"{name}={value!r}" for name, value in call_input.items())
        self._line(f"\n{_indented(_wrapped(f'{tool}({spelled})'))}", "warning")
        # The long name of a temporary directory would hide what matters.
        text = _wrapped(result.text.replace(f"{self._project}/", ""))
        if result.code is not None:
            self._line(f"{MARGIN}refused: {result.code}", "bad")
            for line in text.splitlines():
                self._line(f"{MARGIN}{line}", _DIFF_TONES.get(line[:1], "plain"))
            return
        result = msgspec.structs.replace(result, text=text)
        sys.stdout.write(_indented(self._painter.result(session, result, call_input)))

    def _show_log(self, number: int, session_id: str) -> None:
        says = ("Everything that happened, one JSON line each, safe against a crash.",)
        self._announce(number, "The event log", says)
        sys.stdout.write("\n")
        for event in events_of(self._home, session_id):
            self._line(f"{MARGIN}{_summary(event)}", "muted")

    def _line(self, text: str, tone: str = "plain") -> None:
        lead = "\n" if text.startswith("\n") else ""
        sys.stdout.write(lead + self._painter.block(Text(text.removeprefix("\n"), tone)))


def _write(project: Path, files: Iterable[tuple[str, str]]) -> None:
    for name, content in files:
        (project / name).write_text(content, encoding="utf-8")


def _wrapped(text: str) -> str:
    """The text with its long lines broken at blanks."""
    lines = text.rstrip().splitlines()
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent="  ") if len(line) > WIDTH else line
        for line in lines
    )


def _indented(text: str) -> str:
    return textwrap.indent(text, MARGIN)


def _summary(event: Event) -> str:
    kind = str(msgspec.to_builtins(event)["type"])
    if isinstance(event, CallStarted):
        return f"{kind:16} {event.tool}"
    if isinstance(event, CallFinished):
        return f"{kind:16} {event.result.tool:6} {event.result.code or 'ok'}"
    return kind
