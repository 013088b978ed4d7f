"""What sessions remember of a project, in the user's own directory."""

import json
import re
from pathlib import Path

import pytest
from players import Player, calls, says
from tests.expected_types import expect_type, require

from handaxe import Agent, Session
from handaxe.agent.memory.persistent_memory import get_project_memory
from handaxe.config.settings import Settings
from handaxe.contract.messages import ToolResultBlock


@pytest.fixture
def memory(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the ecosystem keeps what it knows of the project."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "user"))
    name = re.sub("[^A-Za-z0-9]", "-", str(project))
    return tmp_path / "user" / "projects" / name / "memory"


async def run(project: Path, *turns, **options):
    model = Player(*turns, says("done"))
    async with Session(project, **options) as session:
        await Agent(model, session).ask("Go.")
    return model


def system(model: Player) -> str:
    return "\n".join(model.requests[0].system)


def write(memory: Path):
    return calls(("w1", "Write", {"file_path": f"{memory}/MEMORY.md", "content": "Tabs!\n"}))


async def test_where_it_is_switched_on_one_session_knows_what_another_learned(project, memory):
    on = {"settings": {"autoMemoryEnabled": True}}
    model = await run(project, write(memory), **on)
    assert (memory / "MEMORY.md").read_text() == "Tabs!\n"
    assert str(memory) in system(model)
    assert "Tabs!" in system(await run(project, **on))
    off = await run(project, settings={"autoMemoryEnabled": False})
    assert str(memory) not in system(off)


async def test_what_another_agent_noted_is_read_and_not_changed_unless_switched_on(project, memory):
    assert str(memory) not in system(await run(project))
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("Spaces!\n" + "more\n" * 500)
    (memory / "more.md").write_text("The details.\n")
    read = calls(("r1", "Read", {"file_path": f"{memory}/more.md"}))
    model = await run(project, read, write(memory))
    assert "Spaces!" in system(model)
    assert system(model).count("more\n") < 200
    (told,) = model.requests[1].messages[-1].content
    assert "The details." in str(told)
    (told,) = model.requests[2].messages[-1].content
    assert expect_type(ToolResultBlock, told).is_error
    assert (memory / "MEMORY.md").read_text().startswith("Spaces!")


async def test_a_project_can_only_switch_it_off(project, memory, tmp_path):
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("Spaces!\n")
    file = project / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"autoMemoryEnabled": True, "autoMemoryDirectory": str(tmp_path)}))
    model = await run(project, write(memory), trusted=True)
    assert (memory / "MEMORY.md").read_text() == "Spaces!\n"
    file.write_text(json.dumps({"autoMemoryEnabled": False}))
    model = await run(project, trusted=False)
    assert "Spaces!" not in system(model)


async def test_its_place_can_be_chosen_and_only_it_is_free(project, memory, tmp_path):
    place = tmp_path / "elsewhere"
    on = {"settings": {"autoMemoryEnabled": True, "autoMemoryDirectory": str(place)}}
    model = await run(project, write(place), write(memory), write(tmp_path), **on)
    assert [p.name for p in place.iterdir()] == ["MEMORY.md"]
    assert not memory.exists()
    assert not (tmp_path / "MEMORY.md").exists()
    assert len(model.requests) == 4


@pytest.mark.parametrize("sources", ["", "project"])
async def test_without_the_users_files_nothing_is_remembered(project, memory, sources):
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("Spaces!\n")
    assert "Spaces!" not in system(await run(project, setting_sources=sources))


def test_a_long_name_is_cut_and_stays_unique(memory):
    found = {
        Path(
            require(
                get_project_memory(Settings(auto_memory_enabled=True), f"/{'a' * 300}/{last}")
            ).path
        ).parent
        for last in "xy"
    }
    assert len(found) == 2
    assert all(len(path.name) < 256 for path in found)


@pytest.mark.parametrize("value", ["1", "0"])
async def test_instructions_of_added_directories_count_if_a_variable_says_so(
    project, tmp_path, monkeypatch, value
):
    monkeypatch.setenv("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", value)
    added = tmp_path / "added"
    added.mkdir()
    (added / "CLAUDE.md").write_text("Knock first.\n")
    model = await run(project, add_dirs=[added])
    assert ("Knock first." in system(model)) is (value == "1")
