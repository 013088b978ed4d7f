"""The help text: complete, in groups, narrow where the terminal is, and it answers questions."""

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from tests.frontends.help_questions import QUESTIONS, find_problems, prepare

from handaxe.frontends.cli.agent_page import AGENT_PAGE
from handaxe.frontends.cli.arguments import CommandPage, CommandParser, HelpRequested
from handaxe.frontends.cli.command_pages import PAGES
from handaxe.frontends.cli.help_text import format_page
from handaxe.frontends.cli.main import parse_command

HEAVY = ("asyncio", "handaxe.app", "handaxe.agent", "handaxe.tools", "handaxe.pipeline", "tomllib")


def list_pages() -> dict[str, CommandPage]:
    pages = {"handaxe": AGENT_PAGE._replace(actions=PAGES)}
    for name, page in PAGES.items():
        pages[f"handaxe {name}"] = page
        pages |= {f"handaxe {name} {action}": one for action, one in page.actions.items()}
    return pages


def test_the_help_of_handaxe_starts_with_a_sentence_examples_and_the_commands():
    text = format_page("handaxe", AGENT_PAGE._replace(actions=PAGES), 80)
    first, examples, commands = text.split("\n\n")[:3]
    assert first.endswith(".")
    assert "\n" not in first
    assert len(examples.splitlines()) == 5
    assert [line.split()[0] for line in commands.splitlines()[1:]] == list(PAGES)


@pytest.mark.parametrize(("program", "page"), list_pages().items())
def test_every_page_has_a_sentence_an_example_and_only_known_options(program, page):
    assert page.examples
    for line, meaning in page.examples:
        assert line.startswith(("handaxe", "echo"))
        assert meaning
    for columns in (40, 80, 120):
        text = format_page(program, page, columns)
        indented = [line for line in text.splitlines() if len(line) > columns]
        # Only a name or an example that cannot be broken may be longer.
        assert all(line.strip() in _list_unbreakable(page) for line in indented), indented
    told = format_page(program, page, 200)
    shown = [one for group in page.groups for one in group.arguments]
    assert all(one.spec in told and one.meaning in told for one in shown)


def _list_unbreakable(page: CommandPage) -> set[str]:
    specs = {one.spec for group in page.groups for one in group.arguments}
    return specs | {line for line, _ in page.examples}


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize(("program", "page"), list_pages().items())
def test_every_page_can_be_asked_for(program, page, option):
    _, *words = program.split()
    with pytest.raises(HelpRequested) as asked:
        _parse(words, page, option)
    assert asked.value.program == program


def _parse(words: list[str], page: CommandPage, option: str) -> None:
    if words:
        parse_command(words[0], [*words[1:], option])
    else:
        CommandParser("handaxe", page).read_words([option], Namespace())


@pytest.mark.parametrize("words", [["--help"], ["call", "--help"], ["mcp", "add", "-h"], ["help"]])
def test_help_loads_no_heavy_module(words, tmp_path: Path):
    code = (
        "import sys; from handaxe.__main__ import main; "
        f"sys.argv[1:] = {words}; main(); print('\\n'.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    loaded = done.stdout.splitlines()
    assert "handaxe.frontends.cli.help_text" in loaded
    assert [name for name in loaded if name.startswith(HEAVY)] == []


def test_the_help_answers_the_questions_of_a_new_user(tmp_path: Path):
    prepare(tmp_path)
    problems = [each for question in QUESTIONS for each in find_problems(question, tmp_path)]
    assert problems == []
