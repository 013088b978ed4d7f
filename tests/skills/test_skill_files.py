"""Where skills are found, and which of two wins."""

import subprocess
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.contract.faults.configuration import SkillUnreadable
from handaxe.skills.locations import SkillLocations
from handaxe.skills.skill_files import DiskSkills


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.proves("BT-18")
def test_skills_come_from_home_project_and_the_directories_above(tmp_path):
    home, project = tmp_path / "home", tmp_path / "repo" / "app"
    project.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "repo", check=True)
    (project / ".git").mkdir()
    write(home / ".claude/skills/same/SKILL.md", "Mine.")
    write(project / ".claude/skills/same/SKILL.md", "Theirs.")
    write(tmp_path / "repo/.claude/skills/above/SKILL.md", "---\ndescription: Above\n---\nx")
    write(tmp_path / ".claude/skills/outside/SKILL.md", "Not ours.")
    write(project / ".claude/commands/tools/go.md", "Go.")
    write(project / ".claude/skills/broken/SKILL.md", "---\na: [\n---\n")
    skills = DiskSkills(
        SkillLocations(users=(f"{home}/.claude",), directories=lambda: [str(project)])
    )
    assert {skill.name: skill.description for skill in skills.all()} == {
        "above": "Above",
        "go": "Go.",
        "same": "Mine.",
    }
    assert ["broken" in problem for problem in skills.problems()] == [True]


def test_a_changed_skill_is_read_again_and_a_lost_one_is_named(tmp_path):
    file = tmp_path / ".claude/skills/x/SKILL.md"
    write(file, "One.")
    skills = DiskSkills(SkillLocations(directories=lambda: [str(tmp_path)]))
    (skill,) = skills.all()
    assert skills.body(skill) == "One."
    write(file, "Two, longer.")
    assert skills.all()[0].description == "Two, longer."
    file.unlink()
    assert skills.all() == ()
    with pytest.raises(SkillUnreadable):
        skills.body(skill)


async def test_the_text_reaches_the_conversation_and_grants_end_with_the_turn(tmp_path):
    write(tmp_path / ".claude/skills/x/SKILL.md", "---\nallowed-tools: Write\n---\nWrite $0.")
    options = {
        "home": tmp_path / "home",
        "trusted": True,
        "allow": ["Skill"],
        "permission_mode": "default",
    }
    async with Session(tmp_path, **options) as session:
        assert (await session.call("Write", file_path="a", content="x")).code == "permission.asked"
        result = await session.call("Skill", skill="x", args="a")
        assert "Write a." in result.messages[0]
        assert (await session.call("Write", file_path="a", content="x")).ok
        session.permissions.end_turn()
        assert (await session.call("Write", file_path="b", content="x")).code == "permission.asked"


async def test_the_commands_in_a_skill_may_do_what_the_skill_may(tmp_path):
    head = "---\nallowed-tools: Bash(python3 -c:*), Write\n---\n"
    write(tmp_path / ".claude/skills/x/SKILL.md", head + "Now: !`python3 -c 'print(6*7)'`")
    write(tmp_path / ".claude/skills/y/SKILL.md", head + "Now: !`python3 -c 'exit(1)'`")
    write(tmp_path / ".claude/skills/z/SKILL.md", "Now: !`python3 -c 'print(6*7)'`")
    async with Session(tmp_path, home=tmp_path / "home", allow=["Skill"], trusted=True) as session:
        result = await session.call("Skill", skill="y")
        assert 'Shell command failed for pattern "python3' in result.text
        assert (await session.call("Write", file_path="a", content="")).code == "permission.asked"
        result = await session.call("Skill", skill="z")
        assert 'Shell command permission check failed for pattern "python3' in result.text
        assert "Now: 42" in (await session.call("Skill", skill="x")).messages[0]
        assert (await session.call("Write", file_path="a", content="")).ok
    write(tmp_path / ".claude/skills/x/SKILL.md", "---\ndisallowed-tools: Bash\n---\n!`date`")
    async with Session(tmp_path, home=tmp_path / "home", allow=["Skill"], trusted=True) as session:
        assert (await session.call("Skill", skill="x")).code == "skill.command_failed"


async def test_of_a_command_in_a_skill_only_its_output_is_in_the_text(tmp_path):
    text = "---\ndescription: x\n---\nNow: !`echo 4; echo 2 >&2`, !`true`.\n```!\necho end\n```\n"
    write(tmp_path / ".claude/skills/x/SKILL.md", text)
    async with Session(tmp_path, home=tmp_path / "home", allow=["Skill"], trusted=True) as session:
        (said,) = (await session.call("Skill", skill="x")).messages
    assert said.startswith("Now: 4\n2, .\nend\n\nBase directory")


def test_what_a_skill_wants_is_known_by_what_it_says_in_any_checkout(tmp_path):
    text = "---\nhooks: {true: [1], 2020-01-01: x}\n---\n!`x`"
    notes = []
    for name in ("one", "two"):
        write(tmp_path / name / ".claude/skills/x/SKILL.md", text)
        root = str(tmp_path / name)
        places = SkillLocations(directories=lambda root=root: (root,), root=root, trusted_as="/p")
        (found,) = DiskSkills(places).all()
        notes.append((found.powers.key, found.powers.note, found.powers.root))
    assert notes[0] == notes[1]
    assert found.powers.grant(None).commands == ()


async def test_a_command_in_a_skill_that_cannot_run_stops_the_skill(tmp_path):
    write(tmp_path / ".claude/skills/x/SKILL.md", "Now: !`date`")
    options = {"home": tmp_path / "home", "trusted": True, "allow": ["Skill"], "deny": ["Bash"]}
    async with Session(tmp_path, **options) as session:
        result = await session.call("Skill", skill="x")
    assert result.code == "skill.command_failed"
    settings = {"disableSkillShellExecution": True}
    async with Session(tmp_path, **options, settings=settings) as session:
        result = await session.call("Skill", skill="x")
    assert "disabled by policy" in result.messages[0]
