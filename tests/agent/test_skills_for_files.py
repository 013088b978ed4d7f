"""Skills that come when files are touched, that settings hide, that bring hooks, that stand in a row."""

import json
from pathlib import Path

import msgspec
import pytest

from handaxe import Agent, Session
from handaxe.app.session import get_parts
from handaxe.app.slash_commands import expand_prompt
from handaxe.contract.ports.skills import Skills
from handaxe.models.scripted import ScriptedModel
from handaxe.models.scripted.script import ModelScript


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def scripted(*turns) -> ScriptedModel:
    return ScriptedModel(msgspec.convert({"turn": turns}, ModelScript))


def names(session, *, due=True) -> list[str]:
    skills = get_parts(session).pipeline_context.ports[Skills].all()
    return [skill.name for skill in skills if skill.is_due or not due]


@pytest.fixture
def parts(tmp_path):
    """A project with a part that has skills of its own."""
    write(tmp_path / ".claude/skills/deploy/SKILL.md", "Deploy everything.")
    write(tmp_path / "apps/web/.claude/skills/deploy/SKILL.md", "Deploy the web.")
    write(tmp_path / "apps/web/.claude/skills/style/SKILL.md", "---\ndescription: CSS\n---\nx")
    write(tmp_path / "apps/web/src/a.css", "a {}\n")
    return tmp_path


@pytest.mark.proves("BT-18")
async def test_skills_of_a_part_come_when_a_file_there_is_touched(parts):
    async with Session(parts, allow=["Skill"]) as session:
        assert names(session) == ["deploy"]
        assert (await session.call("Skill", skill="style")).code == "skill.not_found"
        await session.call("Read", file_path="apps/web/src/a.css")
        assert names(session) == ["apps/web:deploy", "deploy", "style"]
        general = await session.call("Skill", skill="deploy")
        assert "Deploy everything." in general.messages[0]
        assert "- apps/web:deploy: for files below apps/web" in general.messages[0]
        special = await session.call("Skill", skill="apps/web:deploy")
        assert "Deploy the web." in special.messages[0]
        assert "Deploy the web." in await expand_prompt(session, "/apps/web:deploy now")
        assert await expand_prompt(session, "/apps/web is slow") == "/apps/web is slow"


async def test_the_model_hears_of_skills_whose_time_has_come(parts):
    model = scripted(
        {"call": [{"tool": "Read", "input": {"file_path": "apps/web/src/a.css"}}]},
        {"expect": ["More skills are now available.", "- style: CSS"], "text": "I see."},
    )
    async with Session(parts) as session:
        agent = Agent(model, session)
        final = await agent.ask("look")
        assert final.result == "I see.", final.errors
        assert "style" not in "\n".join(agent.system_prompt())


async def test_a_skill_for_certain_files_is_told_when_one_is_touched(tmp_path):
    write(tmp_path / ".claude/skills/sql/SKILL.md", "---\npaths: 'db/**/*.sql, *.ddl'\n---\nx")
    write(tmp_path / ".claude/commands/go.md", "---\npaths: nothing/**\n---\nGo.")
    write(tmp_path / "db/one/a.sql", "select 1\n")
    write(tmp_path / "b.txt", "b\n")
    async with Session(tmp_path, allow=["Skill"]) as session:
        assert (names(session), names(session, due=False)) == (["go"], ["go", "sql"])
        await session.call("Read", file_path="b.txt")
        assert names(session) == ["go"]
        await session.call("Read", file_path="db/one/a.sql")
        assert names(session) == ["go", "sql"]
        assert (await session.call("Skill", skill="sql")).ok


async def test_settings_say_who_sees_a_skill(tmp_path):
    for name in ("a", "b", "c", "d"):
        write(tmp_path / f".claude/skills/{name}/SKILL.md", f"---\ndescription: For {name}\n---\nx")
    given = {"skillOverrides": {"a": "off", "b": "name-only", "c": "user-invocable-only"}}
    async with Session(tmp_path, settings=given, allow=["Skill"]) as session:
        prompt = "\n".join(Agent(scripted(), session).workplace.notes())
        assert "- b\n- d: For d" in prompt
        assert names(session) == ["b", "c", "d"]
        assert (await session.call("Skill", skill="a")).code == "skill.not_found"
        assert (await session.call("Skill", skill="c")).code == "skill.user_only"
        assert "x" in await expand_prompt(session, "/c")


async def test_the_list_of_skills_keeps_to_its_budget(tmp_path, monkeypatch):
    for number in range(20):
        text = f"---\ndescription: {'purpose ' * 100}\n---\nx"
        write(tmp_path / f".claude/skills/s{number:02}/SKILL.md", text)

    async def told(**settings):
        async with Session(tmp_path, settings=settings) as session:
            notes = Agent(scripted(), session).workplace.notes()
            return "\n".join(note for note in notes if "deferred-tools" not in note)

    usual = await told()
    assert all(f"- s{number:02}: purpose" in usual for number in range(20))
    assert len(usual) < 8_200
    assert len(await told(skillListingBudgetFraction=0.002)) < 1_800
    assert len(await told(skillListingMaxDescChars=20)) < 1_000
    monkeypatch.setenv("SLASH_COMMAND_TOOL_CHAR_BUDGET", "500")
    short = await told()
    assert all(f"- s{number:02}" in short for number in range(20))
    assert len(short) < 700


async def test_added_directories_bring_their_skills_and_those_of_settings_do_not(tmp_path):
    for name in ("project", "added", "named"):
        write(tmp_path / name / ".claude/skills" / name / "SKILL.md", "x")
    given = {"permissions": {"additionalDirectories": [str(tmp_path / "named")]}}
    session = Session(tmp_path / "project", add_dirs=[tmp_path / "added"], settings=given)
    async with session:
        assert names(session) == ["added", "project"]


async def test_a_reserved_name_is_no_skill_and_a_linked_one_counts_once(tmp_path):
    write(tmp_path / ".claude/skills/Synced/SKILL.md", "x")
    write(tmp_path / "elsewhere/SKILL.md", "x")
    for name in ("one", "two"):
        (tmp_path / ".claude/skills" / name).symlink_to(tmp_path / "elsewhere")
    async with Session(tmp_path) as session:
        assert names(session) == ["one"]


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_hooks_of_a_skill_run_since_it_was_run(tmp_path, trusted):
    trace = tmp_path / "trace"
    hook = {"matcher": "Read", "hooks": [{"type": "command", "command": f"echo ran >> {trace}"}]}
    head = json.dumps({"PreToolUse": [hook]})
    write(tmp_path / ".claude/skills/watch/SKILL.md", f"---\nhooks: {head}\n---\nWatch.")
    write(tmp_path / "a.txt", "a\n")
    async with Session(tmp_path, allow=["Skill"], trusted=trusted) as session:
        await session.call("Read", file_path="a.txt")
        assert not trace.exists()
        result = await session.call("Skill", skill="watch")
        assert result.ok
        assert ("handaxe trust" in "".join(result.notes)) is not trusted
        await session.call("Read", file_path="a.txt")
        assert trace.exists() is trusted


async def test_commands_that_stand_in_a_row_all_count(tmp_path):
    for name in "abcdefg":
        write(tmp_path / f".claude/commands/{name}.md", f"{name.upper()} with $ARGUMENTS.")
    write(tmp_path / ".claude/commands/alone.md", "---\ncontext: fork\n---\nAlone.")
    async with Session(tmp_path) as session:
        said = await expand_prompt(session, "/a /b fix it")
        assert "A with fix it." in said
        assert "B with fix it." in said
        said = await expand_prompt(session, "/a /b /c /d /e /f /g x")
        assert "F with /g x." in said
        assert "G with" not in said
        assert "A with /alone now." in await expand_prompt(session, "/a /alone now")
        assert "A with /usr/bin." in await expand_prompt(session, "/a /usr/bin")
