"""What the pages show in a console is what the commands really print."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.frontends.terminals import Terminal

HOUSE = Path(__file__).parent.parent.parent
PAGES = [
    "docs/tutorial/first-session.md",
    "docs/tutorial/first-agent.md",
    "docs/guides/permissions.md",
    "docs/guides/evaluation.md",
]
_BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_VARYING = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|call_\w+|\b[0-9a-f]{32}\b")


def told(page: str) -> list[tuple[str, str]]:
    """The commands of a page with the output it shows; none is shown for scripts."""
    found: list[tuple[str, str]] = []
    for kind, block in _BLOCK.findall((HOUSE / page).read_text()):
        if kind == "console":
            found += _COMMAND.findall(block)
        elif "source .venv" not in block:
            found.append((block, "..."))
        else:
            found.append((block.partition("cd /tmp/lesson\n")[2], "..."))
    return found


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose name is not long, because long values are cut in what is printed."""
    with tempfile.TemporaryDirectory(prefix="t") as directory:
        yield Path(directory)


@pytest.mark.parametrize("page", PAGES)
def test_every_console_of_a_page_shows_what_happens(page: str, short_path: Path):
    project = short_path / "lesson"
    project.mkdir()
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "HANDAXE_HOME": str(short_path / "home")}
    asked = told(page)
    # One shell for the whole page; what we print between commands must not hide an exit code.
    script = "\n".join(
        f"{command.replace('echo $?', 'echo $code')}\ncode=$?\necho '====='" for command, _ in asked
    )
    ran = subprocess.run(
        ["bash", "-c", script], cwd=project, env=environment, text=True, timeout=100, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    printed = ran.stdout.replace(str(project), "/tmp/lesson").split("=====\n")
    assert printed.pop() == ""
    for (command, shown), got in zip(asked, printed, strict=True):
        assert is_shown(got, shown), f"{command}\nprints\n{got}\nnot\n{shown}"


def test_a_person_at_a_terminal_sees_what_the_tutorial_shows(short_path: Path):
    page = "docs/tutorial/first-agent.md"
    project = short_path / "lesson"
    project.mkdir()
    subprocess.run(["bash"], input=told(page)[0][0], cwd=project, text=True, check=True)
    shown = re.findall(r"^```text\n(.*?)^```", (HOUSE / page).read_text(), re.DOTALL | re.MULTILINE)
    home = str(short_path / "home")
    words = ("--model", "scripted:script.toml")
    me = Terminal(*words, cwd=project, columns=200, HANDAXE_HOME=home)
    try:
        for line in shown[0].replace("/tmp/", f"{short_path}/").splitlines():
            typed = line.removeprefix("› ")
            question, _, answer = line.rpartition(": ")
            if typed != line:
                me.wait_for("›")
                me.type(f"{typed}\r")
            elif line.startswith("Allow?"):
                me.wait_for(question)
                me.type(f"{answer}\n")
            elif line:
                me.wait_for(_VARYING.split(line)[0])
        me.wait_for("›")
        me.type("\x04")
        assert me.end() == 0
    finally:
        me.close()


def is_shown(got: str, shown: str) -> bool:
    """Whether the output is what the page shows; `...` stands for anything."""
    wanted = re.escape(_VARYING.sub("~", shown)).replace(re.escape("..."), ".*")
    return re.fullmatch(wanted, _VARYING.sub("~", got), re.DOTALL) is not None
