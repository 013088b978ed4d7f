"""Questions of a new user that the help text answers; `scripts/help-check` prints and tries them.

Each question names the help page to read, a line of that page that answers it, and the command
line that follows from the answer. The command runs without a key and without a network: where a
model is needed, a scripted one answers.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

SCRIPT = '[[turn]]\ntext = "Hello."\n\n[[turn]]\ntext = "Again."\n'
MODEL = ("--model", "scripted:turns.toml")
EDIT = """
[[turn]]
call = [{ tool = "Write", input = { file_path = "new.txt", content = "hi" } }]

[[turn]]
text = "Done."
"""


class Question(NamedTuple):
    """What somebody wants to do, where the help says how, and a trial of it."""

    text: str
    page: tuple[str, ...]
    """Arguments that show the help."""
    line: str
    """What a line of the help says."""
    trial: tuple[str, ...]
    """Arguments that do it."""
    code: int = 0
    output: str = ""
    """A part of the output."""
    after: tuple[str, ...] = ()
    """Arguments that prove what the trial did."""
    proof: str = ""
    """A part of their output."""


QUESTIONS = (
    Question(
        "Print one answer in a script",
        ("--help",),
        "-p, --print print one answer and exit",
        ("-p", "hello", *MODEL),
        output="Hello.",
    ),
    Question(
        "Continue the last conversation",
        ("--help",),
        "-c, --continue continue the last conversation in this project",
        ("-c", "-p", "and now?", *MODEL),
        output="Again.",
    ),
    Question(
        "Run one tool call without a model",
        ("--help",),
        "call run one tool call, without a model",
        ("call", "Read", "file_path=a.txt"),
        output="one line",
    ),
    Question(
        "Limit what a run may spend",
        ("--help",),
        "--max-budget-usd USD maximum cost in USD",
        ("-p", "hello", *MODEL, "--max-budget-usd", "0.5"),
        # handaxe knows no price of a scripted model, and says which option gives one.
        code=2,
        output="--prices",
    ),
    Question(
        "Use an MCP server of my own",
        ("mcp", "--help"),
        "handaxe mcp add github https://example.com/mcp use an MCP server here",
        ("mcp", "add", "mine", "some-server"),
        after=("mcp", "list"),
        proof="mine: some-server",
    ),
    Question(
        "Let it edit files without asking",
        ("--help",),
        "acceptEdits (edit without asking)",
        ("-p", "write", "--model", "scripted:edit.toml", "--permission-mode", "acceptEdits"),
        output="Done.",
        after=("call", "Read", "file_path=new.txt"),
        proof="hi",
    ),
    Question(
        "Undo the last change",
        ("undo", "--help"),
        "handaxe undo undo the last change",
        ("undo",),
        output="new.txt",
        after=("call", "Glob", "pattern=*.txt"),
        proof="a.txt",
    ),
    Question(
        "See why a command asks or is refused",
        ("explain", "--help"),
        'handaxe explain "git push" show why a command is allowed, asks or is refused',
        ("explain", "git push"),
        output="ask",
    ),
    Question(
        "Make a JSON answer for a script",
        ("--help",),
        "--output-format FORMAT text (default), json (one object at the end) or stream-json",
        ("-p", "hello", *MODEL, "--output-format", "json"),
        output='"result":"Hello."',
    ),
    Question(
        "See which sessions exist",
        ("sessions", "--help"),
        "handaxe sessions list the sessions with their ids",
        ("sessions",),
        output="1 call",
    ),
    Question(
        "Use a local OpenAI-compatible model",
        ("--help",),
        "openai/NAME (any compatible server, address in OPENAI_BASE_URL)",
        ("prompt", "--model", "openai/llama3"),
        output="characters",
    ),
    Question(
        "Find out which tools there are",
        ("--help",),
        "tools list the tools, or show one tool's schema and prompt",
        ("tools",),
        output="Read",
    ),
    Question(
        "Take back a permission",
        ("permissions", "--help"),
        'handaxe permissions revoke "Bash(git push *)" remove an allow rule',
        ("permissions", "revoke", "Bash(git push *)"),
        code=2,
        output="No settings file allows",
    ),
    Question(
        "Update handaxe",
        ("help",),
        "update print how to update this installation",
        ("update",),
        output="To update it:",
    ),
)


def run(words: tuple[str, ...], place: Path) -> "subprocess.CompletedProcess[str]":
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(place / "home"),
        "HANDAXE_HOME": str(place / "data"),
        "COLUMNS": "80",
    }
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        cwd=place / "project",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def prepare(place: Path) -> None:
    for name in ("project", "home", "data"):
        (place / name).mkdir()
    (place / "project" / "a.txt").write_text("one line\n")
    (place / "project" / "turns.toml").write_text(SCRIPT)
    (place / "project" / "edit.toml").write_text(EDIT)


def format_command(words: tuple[str, ...]) -> str:
    return f"handaxe {shlex.join(words)}"


def join_words(text: str) -> str:
    """A help text without its columns and line breaks."""
    return re.sub(r"\s+", " ", text)


def find_problems(question: Question, place: Path) -> list[str]:
    """What is wrong with an answer; nothing where the help answers and the answer works."""
    page = run(question.page, place)
    problems: list[str] = []
    if page.returncode or question.line not in join_words(page.stdout):
        problems.append(f"`{format_command(question.page)}` does not say: {question.line}")
    for words, code, output in (
        (question.trial, question.code, question.output),
        (question.after, 0, question.proof),
    ):
        if not words:
            continue
        done = run(words, place)
        if done.returncode != code or output not in done.stdout + done.stderr:
            problems.append(
                f"`{format_command(words)}` ended with {done.returncode}, not {code} "
                f"and {output!r}:\n{done.stdout}{done.stderr}"
            )
    return problems


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        prepare(place)
        for number, question in enumerate(QUESTIONS, 1):
            problems = find_problems(question, place)
            failed += bool(problems)
            ends = [f"    WRONG  {problem}" for problem in problems] or ["    works"]
            lines = (
                f"{number:2}. {question.text}",
                f"    read   {format_command(question.page)}",
                f"    says   {question.line}",
                f"    try    {format_command(question.trial)}",
                *ends,
            )
            sys.stdout.write("\n".join((*lines, "\n")))
    sys.stdout.write(f"{len(QUESTIONS) - failed} of {len(QUESTIONS)} questions answered.\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
