"""What opens the gate for a project's files, and what stays shut without the project's files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.agent.players import Player, calls, says

from handaxe import Agent, Allow, Session
from handaxe.app.agent_setup.agent_builder import find_output_styles
from handaxe.app.agent_setup.main_agent import find_agent_definitions
from handaxe.app.slash_commands import list_slash_commands
from handaxe.config import settings_paths as places

pytestmark = pytest.mark.proves("ST-1")


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def skill(project: Path, command: str, name: str = "sk") -> None:
    text = f"---\nallowed-tools: Bash(touch:*)\n---\nRun: !`{command}`"
    write(project / ".claude" / "skills" / name / "SKILL.md", text)


@pytest.fixture
def user() -> Path:
    return Path(os.environ["HANDAXE_CONFIG_HOME"]) / "settings.json"


@pytest.mark.parametrize("sources", [(), ("user",)])
async def test_without_its_source_no_file_of_a_project_counts(project, sources):
    skill(project, "true")
    write(project / ".claude/commands/cmd.md", "x")
    write(project / ".claude/agents/a.md", "---\nname: mine\ndescription: x\n---\nx")
    write(project / ".claude/output-styles/s.md", "---\nname: mine\n---\nx")
    for name in ("CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", ".claude/rules/r.md"):
        write(project / name, "From the project.")
    write(project / "below/CLAUDE.md", "From the project.")
    write(project / "below/a.txt", "x")
    model = Player(calls(("r", "Read", {"file_path": "below/a.txt"})), says("x"))
    async with Session(project, setting_sources=sources, trusted=True) as session:
        await Agent(model, session).ask("Go.")
        assert list_slash_commands(session) == ()
        assert "mine" not in {kind.name for kind in find_agent_definitions(session, None)()}
        assert "mine" not in find_output_styles(session).names()
    assert "From the project." not in str(model.requests)


async def test_local_instructions_count_without_those_of_the_project(project):
    write(project / "CLAUDE.md", "For all.")
    write(project / "CLAUDE.local.md", "For me.")
    model = Player(says("x"))
    async with Session(project, setting_sources=["local"]) as session:
        await Agent(model, session).ask("Go.")
    assert "For me." in str(model.requests)
    assert "For all." not in str(model.requests)


async def test_a_hosts_word_is_for_the_files_as_they_are_when_it_is_given(project):
    write(project / ".claude/settings.json", {"permissions": {"allow": ["Write"]}})
    skill(project, "touch one")
    async with Session(project, allow=["Skill"], trusted=True) as session:
        skill(project, "touch two")
        skill(project, "touch three", "new")
        write(project / ".claude/settings.json", {"permissions": {"allow": ["Write", "Edit"]}})
        for name in ("sk", "new"):
            result = await session.call("Skill", skill=name)
            assert "handaxe trust" in result.notes[0]
        assert "touch two" in (await session.call("Skill", skill="sk")).notes[0]
        assert session.settings.permissions.allow == ("Write",)
        assert '`permissions.allow` = "Edit" (new)' in session.warnings[0]
    assert not {"two", "three"} & {path.name for path in project.iterdir()}
    async with Session(project, allow=["Skill"], trusted=True) as session:
        assert (await session.call("Skill", skill="sk")).ok
    assert (project / "two").exists()


async def test_a_folder_that_settings_trust_is_trusted_as_it_was_first_seen(project, user):
    write(user, {"trusted_folders": [str(project)]})
    skill(project, "touch one")
    for _ in range(2):
        async with Session(project, allow=["Skill"]) as session:
            assert (await session.call("Skill", skill="sk")).notes == ()
    assert (project / "one").exists()
    skill(project, "touch two")
    async with Session(project, allow=["Skill"]) as session:
        (note,) = (await session.call("Skill", skill="sk")).notes
    assert "changed since the project was trusted" in note
    assert not (project / "two").exists()
    skill(project, "touch one")
    write(user, {})
    (project / "one").unlink()
    async with Session(project, allow=["Skill"]) as session:
        await session.call("Skill", skill="sk")
    assert not (project / "one").exists()


async def test_what_the_user_changes_in_a_trusted_project_counts(project):
    async def agree(_request):
        return Allow()

    write(project / ".claude/settings.json", {"permissions": {"allow": ["Write"]}})
    subprocess.run([sys.executable, "-m", "handaxe", "trust", str(project)], check=True)
    async with Session(project, on_ask=agree) as session:
        result = await session.call("Config", key="max_parallel_calls", value=3, scope="project")
        assert result.ok
        assert session.settings.max_parallel_calls == 3
        assert session.warnings == ()


async def test_skills_of_a_part_of_the_project_are_trusted_with_it(project):
    skill(project / "part", "touch one")
    write(project / "part" / "a.txt", "x")
    for is_trusted in (False, True):
        async with Session(project, allow=["Skill"]) as session:
            await session.call("Read", file_path="part/a.txt")
            assert (await session.call("Skill", skill="sk")).ok
        assert (project / "one").exists() is is_trusted
        told = subprocess.run(
            [sys.executable, "-m", "handaxe", "trust", str(project)],
            check=True, capture_output=True, text=True,
        ).stderr  # fmt: skip
    assert '= skill:part/.claude/skills/sk/SKILL.md = {"allowed_tools":["Bash(touch:*)"]' in told


async def test_users_cannot_take_commands_out_of_a_managed_sandbox(
    project, user, tmp_path, monkeypatch
):
    monkeypatch.setattr(places, "MANAGED_DIRECTORIES", (str(tmp_path / "managed"),))
    write(tmp_path / "managed/managed-settings.json", {"sandbox": {"enabled": True}})
    fake = tmp_path / "bwrap"
    write(fake, '#!/bin/sh\ntouch "$(dirname "$0")/faked"\nexit 1\n')
    fake.chmod(0o755)
    options = {"excludedCommands": ["touch:*"], "bwrapPath": str(fake),
               "filesystem": {"disabled": True}}  # fmt: skip
    write(user, {"sandbox": options})
    async with Session(project, allow=["Bash"]) as session:
        await session.call("Bash", command=f"touch {tmp_path}/outside")
        assert (await session.call("Bash", command="touch inside")).ok
        assert len([told for told in session.warnings if "managed settings" in told]) == 3
    assert (project / "inside").exists()
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "faked").exists()


async def test_a_link_of_a_project_brings_in_no_file_from_outside(project, tmp_path):
    write(tmp_path / "secret", "Secret words.")
    for name in ("CLAUDE.md", ".claude/rules/r.md", ".claude/skills/s/SKILL.md"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).symlink_to(tmp_path / "secret")
    write(project / "doc/skill.md", "Own words.")
    write(project / "AGENTS.md", "Own words.")
    (project / ".claude/commands").mkdir()
    (project / ".claude/commands/c.md").symlink_to(tmp_path / "secret")
    (project / ".claude/commands/d.md").symlink_to(project / "doc/skill.md")
    model = Player(says("x"))
    async with Session(project, trusted=True) as session:
        await Agent(model, session).ask("Go.")
        assert [one.name for one in list_slash_commands(session)] == ["d"]
    assert "Secret words." not in str(model.requests)
    assert "Own words." in str(model.requests)
