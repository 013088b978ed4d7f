"""Small parts of the terminal: completion, menus, Markdown in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.contract.ports.questions import QuestionOption, UserQuestion
from handaxe.frontends.cli.repl.line_editor import find_completions
from handaxe.frontends.cli.repl.markdown import MarkdownRenderer
from handaxe.frontends.cli.repl.repl import parse_choice


def test_commands_and_paths_are_completed(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    (tmp_path / ".git").mkdir()
    root = str(tmp_path)

    def found(text):
        return [word for _, word in find_completions(text, ["help", "history", "undo"], root)]

    assert found("/h") == ["/help ", "/history "]
    assert found("/help me") == []
    assert found("look at @s") == ["@src/"]
    assert found("look at @src/") == ["@src/main.py "]
    assert found("look at @") == ["@src/"]
    assert found("@missing/x") == found("plain") == found("") == []


@pytest.mark.parametrize(
    ("line", "several", "answer"),
    [
        ("2", False, "Right"),
        (" 1 ", False, "Left"),
        ("1 2", False, "Left"),
        ("1, 2", True, "Left, Right"),
        ("2 2", True, "Right"),
        ("3", False, "3"),
        ("neither, please", False, "neither, please"),
    ],
)
def test_numbers_choose_and_words_answer_freely(line, several, answer):
    options = (QuestionOption(label="Left"), QuestionOption(label="Right"))
    question = UserQuestion(question="?", header="h", options=options, multi_select=several)
    assert parse_choice(question, line) == answer


@given(st.lists(st.sampled_from(["word ", "\n", "\n\n", "```py\n", "x = 1\n", "```\n", "- a\n"])))
def test_markdown_in_pieces_is_painted_whole_and_in_order(pieces):
    painted: list[str] = []

    def paint(text: str) -> None:
        painted.append(text)

    painter = MarkdownRenderer()
    painter._paint = paint
    for piece in pieces:
        painter.add(piece)
    painter.end()
    assert "".join(painted) == "".join(pieces)
    for part in painted[:-1]:
        assert sum(line.startswith("```") for line in part.splitlines()) % 2 == 0
