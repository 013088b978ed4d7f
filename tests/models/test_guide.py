"""What the guide shows works."""

import asyncio
import re
import tomllib
from pathlib import Path

import pytest
from tests.models.talk import events_of

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import AssistantMessage, ToolResultBlock, UserMessage
from handaxe.contract.ports.model import ModelRequest, TextDelta
from handaxe.models.scripted import ScriptedModel, parse_script
from handaxe.models.scripted.script import ScriptedFailure, ScriptedTurn

DOCS = Path(__file__).parent.parent.parent / "docs"
GUIDE = (DOCS / "guides" / "models.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("line", ["     1→Milk", "1\tMilk"])
async def test_the_example_script_plays(line):
    model = ScriptedModel(DOCS / "examples" / "two_turns.toml")
    question = UserMessage((TextBlock("Look at notes.txt"),))
    await events_of(model, ModelRequest(messages=(question,)))
    read = UserMessage((ToolResultBlock("t", (TextBlock(line),)),))
    events = await events_of(model, ModelRequest(messages=(question, AssistantMessage(()), read)))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == "It begins with: Milk"


def test_the_scripts_of_the_guide_are_scripts():
    for block in blocks("toml"):
        assert parse_script(tomllib.loads(block)).turn


def test_every_field_of_a_turn_is_documented():
    for field in (*ScriptedTurn.__struct_fields__, *ScriptedFailure.__struct_fields__):
        assert f"`{field}`" in GUIDE


def test_the_python_of_the_guide_asks_a_model(tmp_path: Path):
    script = tmp_path / "script.toml"
    script.write_text("[[turn]]\ntext = 'Hello there, you.'\n")
    names: dict = {}
    exec(blocks("python")[0], names)
    assert asyncio.run(names["ask"]("Hi", f"scripted:{script}")) == "Hello there, you."
