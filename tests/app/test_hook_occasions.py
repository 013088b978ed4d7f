"""Each occasion of the ecosystem that exists here: fired, with its fields, its answers honoured."""

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.expected_types import require

from handaxe import Agent, Allow, Deny, Session
from handaxe.app.session import get_parts
from handaxe.app.slash_commands import expand_prompt
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.questions import ElicitationForm
from handaxe.models.scripted import ScriptedModel, parse_script
from handaxe.pipeline.elicitation import elicit_input

pytestmark = pytest.mark.proves("HK-1")


def scripted(*turns: dict, **more) -> ScriptedModel:
    return ScriptedModel(parse_script({"turn": list(turns), **more}))


def called(tool: str, **given) -> dict:
    return {"call": [{"tool": tool, "input": given}]}


@asynccontextmanager
async def at_work(project: Path, model: ScriptedModel, hooks, **more):
    async with Session(project, hooks=hooks, **more) as session, Agent(model, session) as agent:
        yield agent


class Ear:
    """A hook that keeps what it is told and always gives the same answer."""

    def __init__(self, answer=None):
        self.heard: list[dict] = []
        self.answer = answer
        self.rang = asyncio.Event()

    async def __call__(self, event):
        self.heard.append(event)
        self.rang.set()
        return self.answer

    async def wait(self):
        await asyncio.wait_for(self.rang.wait(), 30)
        return self.heard[0]


BLOCK = {"decision": "block", "reason": "Not like this."}
COMMON = {"session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name"}
TASK = {"subject": "Fix it", "description": "The login."}


async def test_a_task_is_told_of_when_it_is_made_and_when_it_is_done(project: Path):
    made, done = Ear(), Ear()
    hooks = {"TaskCreated": [made], "TaskCompleted": [done]}
    async with Session(project, hooks=hooks) as session:
        assert (await session.call("TaskCreate", TASK)).ok
        assert (await session.call("TaskUpdate", taskId="1", status="in_progress")).ok
        assert done.heard == []
        assert (await session.call("TaskUpdate", taskId="1", status="completed")).ok
        assert (await session.call("TaskUpdate", taskId="1", status="completed")).ok
    about = {"task_id": "1", "task_subject": "Fix it", "task_description": "The login."}
    for ear, name in ((made, "TaskCreated"), (done, "TaskCompleted")):
        assert len(ear.heard) == 1
        assert ear.heard[0].keys() == COMMON | about.keys()
        assert about.items() <= ear.heard[0].items()
        assert ear.heard[0]["hook_event_name"] == name


async def test_a_task_that_a_hook_refuses_is_gone_again(project: Path):
    async with Session(project, hooks={"TaskCreated": [Ear(BLOCK)]}) as session:
        result = await session.call("TaskCreate", TASK)
        listed = await session.call("TaskList")
    assert (result.code, "Not like this." in result.text) == ("hook.blocked", True)
    assert "Fix it" not in listed.text


async def test_a_task_that_a_hook_holds_to_be_undone_stays_open(project: Path):
    async with Session(project, hooks={"TaskCompleted": [Ear(BLOCK)]}) as session:
        await session.call("TaskCreate", TASK)
        result = await session.call("TaskUpdate", taskId="1", status="completed")
        task = await session.call("TaskGet", taskId="1")
    assert (result.code, "Not like this." in result.text) == ("hook.blocked", True)
    assert "completed" not in task.text


async def test_tasks_of_agents_are_told_with_the_agents_name(project: Path):
    made = Ear()
    model = scripted(
        called("Agent", description="x", prompt="HELP"),
        {"text": "Done."},
        {**called("TaskCreate", **TASK), "agent": "HELP"},
        {"text": "Made.", "agent": "HELP"},
    )
    async with at_work(project, model, {"TaskCreated": [made]}) as agent:
        await agent.ask("Go.")
    assert made.heard[0]["agent_type"] == "general-purpose"


async def test_a_new_directory_is_told_of(project: Path):
    (project / "src").mkdir()
    ear = Ear()
    async with Session(project, hooks={"CwdChanged": [ear]}) as session:
        assert (await session.call("Bash", command="cd src")).ok
        told = await ear.wait()
    assert (told["old_cwd"], told["new_cwd"]) == (str(project), f"{project}/src")
    assert told["cwd"] == f"{project}/src"


async def test_a_directory_that_is_added_is_told_of(project: Path, tmp_path: Path):
    ear, more = Ear(), tmp_path / "more"
    more.mkdir()
    hooks = {"DirectoryAdded": [{"matcher": "register_repo_root", "hooks": [ear]}]}
    async with Session(project, hooks=hooks) as session:
        get_parts(session).set_directories([more])
        told = await ear.wait()
        get_parts(session).set_directories([more])
    assert (told["directory"], told["source"]) == (str(more), "register_repo_root")
    assert len(ear.heard) == 1


def command(project: Path, name: str = "greet") -> None:
    place = project / ".claude" / "commands"
    place.mkdir(parents=True)
    (place / f"{name}.md").write_text("Say hello to $ARGUMENTS.\n")


async def test_a_typed_command_is_told_of_before_it_becomes_a_prompt(project: Path):
    command(project)
    ear = Ear({"hookSpecificOutput": {"additionalContext": "In French."}})
    hooks = {"UserPromptExpansion": [{"matcher": "greet", "hooks": [ear]}]}
    async with Session(project, hooks=hooks) as session:
        assert "hello to Ann" in await expand_prompt(session, "/greet Ann")
        assert get_parts(session).pipeline_context.hooks.take_late() == ("In French.",)
    told = {key: ear.heard[0][key] for key in ear.heard[0].keys() - COMMON}
    assert told == {
        "expansion_type": "slash_command",
        "command_name": "greet",
        "command_args": "Ann",
        "command_source": "project",
        "prompt": "/greet Ann",
    }


async def test_a_typed_command_can_be_refused(project: Path):
    command(project)
    async with Session(project, hooks={"UserPromptExpansion": [Ear(BLOCK)]}) as session:
        with pytest.raises(SetupError, match="refuses /greet: Not like this"):
            await expand_prompt(session, "/greet")


async def test_instructions_are_told_of_with_whoever_asked_for_them(project: Path):
    (project / "CLAUDE.md").write_text("See @more.md\n")
    (project / "more.md").write_text("Use tabs.\n")
    ear = Ear()
    async with at_work(project, scripted({"text": "Hi."}), {"InstructionsLoaded": [ear]}) as agent:
        await agent.ask("Hi.")
    told = {Path(event["file_path"]).name: event for event in ear.heard}
    assert told["CLAUDE.md"]["load_reason"] == "session_start"
    assert told["CLAUDE.md"]["memory_type"] == "Project"
    assert told["more.md"]["load_reason"] == "include"
    assert told["more.md"]["parent_file_path"] == f"{project}/CLAUDE.md"


@pytest.mark.parametrize("retry", [True, False])
async def test_what_a_classifier_refuses_is_told_of(project: Path, retry):
    async def classifier(request):
        return Deny("Too bold.")

    ear = Ear({"hookSpecificOutput": {"hookEventName": "PermissionDenied", "retry": retry}})
    hooks = {"PermissionDenied": [{"matcher": "Write", "hooks": [ear]}]}
    async with Session(
        project, hooks=hooks, permission_mode="auto", classifier=classifier
    ) as session:
        result = await session.call("Write", file_path="a.txt", content="x")
    assert result.code == "permission.denied"
    assert (ear.heard[0]["tool_name"], ear.heard[0]["reason"]) == ("Write", "Too bold.")
    assert ear.heard[0]["tool_use_id"]
    assert any("once more" in said for said in result.messages) == retry


@pytest.mark.parametrize("trigger", ["manual", "auto"])
async def test_what_was_summed_up_is_told_with_its_reason(project: Path, trigger):
    before, after = Ear(), Ear()
    hooks = {
        "PreCompact": [{"matcher": trigger, "hooks": [before]}],
        "PostCompact": [{"matcher": trigger, "hooks": [after]}],
    }
    model = scripted({"text": "Hi."}, {"text": "We said hello."}, {"text": "Again."})
    async with Session(project, hooks=hooks) as session, Agent(model, session) as agent:
        await agent.ask("Hi.")
        await agent.compact("keep names")
    if trigger == "manual":
        assert before.heard[0]["custom_instructions"] == "keep names"
        assert after.heard[0]["trigger"] == "manual"
        assert after.heard[0]["compact_summary"]
    else:
        assert before.heard == after.heard == []


async def test_context_from_a_stop_hook_lets_the_work_go_on(project: Path):
    ear = Ear()

    async def once(event):
        await ear(event)
        said = {"hookSpecificOutput": {"additionalContext": "Update the changelog."}}
        return said if len(ear.heard) == 1 else None

    model = scripted({"text": "Done."}, {"text": "Updated."})
    async with Session(project, hooks={"Stop": [once]}) as session, Agent(model, session) as agent:
        final = await agent.ask("Go.")
    assert final.result == "Updated."
    assert [event["background_tasks"] for event in ear.heard] == [[], []]


async def test_a_stop_hook_hears_what_still_runs(project: Path):
    ear = Ear()
    model = scripted(
        called("Bash", command="sleep 60", description="Nap", run_in_background=True),
        {"text": "Done."},
    )
    async with at_work(project, model, {"Stop": [ear]}, allow="Bash(sleep 60)") as agent:
        await agent.ask("Go.")
    (task,) = ear.heard[0]["background_tasks"]
    assert (task["type"], task["status"], task["command"]) == ("shell", "running", "sleep 60")


async def test_an_agents_end_names_both_logs(project: Path):
    ear = Ear()
    model = scripted(
        called("Agent", description="x", prompt="HELP"),
        {"text": "Done."},
        {"text": "Helped.", "agent": "HELP"},
    )
    hooks = {"SubagentStop": [{"matcher": "general-purpose", "hooks": [ear]}]}
    async with Session(project, hooks=hooks) as session, Agent(model, session) as agent:
        await agent.ask("Go.")
        main = get_parts(session).pipeline_context.transcript_path
    told = ear.heard[0]
    assert told["transcript_path"] == main != told["agent_transcript_path"]
    assert told["agent_id"] in told["agent_transcript_path"]
    assert Path(told["agent_transcript_path"]).exists()


async def test_a_failure_of_the_model_is_told_in_the_ecosystems_words(project: Path):
    ear, other = Ear(), Ear()
    hooks = {
        "StopFailure": [
            {"matcher": "rate_limit|unknown", "hooks": [ear]},
            {"matcher": "overloaded", "hooks": [other]},
        ]
    }
    async with at_work(project, scripted({"text": "Hi."}), hooks) as agent:
        await agent.ask("Hi.")
        await agent.ask("More?")
    assert ear.heard[0]["error"] == "unknown"
    assert ear.heard[0]["error_details"] == ear.heard[0]["last_assistant_message"] != ""
    assert other.heard == []


def settings_file(project: Path, **permissions) -> Path:
    place = project / ".claude" / "settings.local.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps({"permissions": permissions}))
    return place


async def test_changed_settings_are_told_of_before_they_hold(project: Path):
    ear = Ear()
    (project / "a.txt").write_text("one\n")
    settings_file(project)
    async with Session(project, hooks={"ConfigChange": [ear]}) as session:
        assert (await session.call("Read", file_path="a.txt")).ok
        place = settings_file(project, deny=["Read(a.txt)"])
        results = await asyncio.gather(*(session.call("Read", file_path="a.txt") for _ in "123"))
    assert {result.code for result in results} == {"permission.denied"}
    assert [(e["source"], e["file_path"]) for e in ear.heard] == [("local_settings", str(place))]


async def test_a_change_of_settings_can_be_refused_until_the_next_one(project: Path):
    (project / "a.txt").write_text("one\n")
    settings_file(project)
    ear = Ear(BLOCK)
    hooks = {"ConfigChange": [{"matcher": "local_settings", "hooks": [ear]}]}
    async with Session(project, hooks=hooks) as session:
        assert (await session.call("Read", file_path="a.txt")).ok
        settings_file(project, deny=["Read(a.txt)"])
        assert (await session.call("Read", file_path="a.txt")).ok
        assert (await session.call("Read", file_path="a.txt")).ok
        assert len(ear.heard) == 1
        ear.answer = None
        settings_file(project, deny=["Read(a.txt)", "Read(b.txt)"])
        assert (await session.call("Read", file_path="a.txt")).code == "permission.denied"
    assert len(ear.heard) == 2


async def test_agents_wait_for_the_word_on_settings_as_well(project: Path):
    (project / "a.txt").write_text("one\n")
    settings_file(project)
    ear = Ear()

    async def change(event):
        settings_file(project, deny=["Read(a.txt)"])

    model = scripted(
        called("Agent", description="x", prompt="HELP"),
        {"text": "Done."},
        {**called("Glob", pattern="*"), "agent": "HELP"},
        {**called("Read", file_path="a.txt"), "agent": "HELP"},
        {"text": "Helped.", "agent": "HELP", "expect": "permission"},
    )
    hooks = {"ConfigChange": [ear], "PostToolUse": [{"matcher": "Glob", "hooks": [change]}]}
    async with at_work(project, model, hooks) as agent:
        final = await agent.ask("Go.")
    assert len(ear.heard) == 1
    assert final.result == "Done."


def skill_file(project: Path, text: str, name: str = "tidy", place: str = ".") -> Path:
    path = project / place / ".claude" / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\ndescription: Tidies.\n---\n{text}\n")
    return path


async def said_by(session: Session, skill: str = "tidy") -> str:
    result = await session.call("Skill", skill=skill)
    return "\n".join((result.text, *result.messages))


async def test_changed_skills_are_told_of_before_they_count(project: Path):
    ear, deaf = Ear(), Ear()
    skill_file(project, "Sweep.")
    hooks = {"ConfigChange": [{"matcher": "skills", "hooks": [ear]},
                              {"matcher": "user_settings", "hooks": [deaf]}]}  # fmt: skip
    async with Session(project, hooks=hooks, allow="Skill") as session:
        assert "Sweep." in await said_by(session)
        changed = skill_file(project, "Sweep and mop.")
        added = skill_file(project, "Shine.", "polish")
        assert "Sweep and mop." in await said_by(session)
        assert "Shine." in await said_by(session, "polish")
        told = {(e["source"], e["file_path"]) for e in ear.heard}
        assert told == {("skills", str(changed)), ("skills", str(added))}
        added.unlink()
        assert "no skill" in await said_by(session, "polish")
        assert len(ear.heard) == 3
    assert deaf.heard == []


async def test_a_change_of_a_skill_can_be_refused_until_the_next_one(project: Path):
    skill_file(project, "Sweep.")
    ear = Ear(BLOCK)
    async with Session(project, hooks={"ConfigChange": [ear]}, allow="Skill") as session:
        assert "Sweep." in await said_by(session)
        skill_file(project, "Burn it all.")
        skill_file(project, "Shine.", "polish")
        for _ in range(2):
            assert "Burn" not in await said_by(session)
            assert "no skill" in await said_by(session, "polish")
        assert len(ear.heard) == 2
        skill_file(project, "Sweep.")
        assert "Burn" not in await said_by(session)
        ear.answer = None
        skill_file(project, "Mop, then.")
        skill_file(project, "Shine brighter.", "polish")
        assert "Mop, then." in await said_by(session)
        assert "Shine brighter." in await said_by(session, "polish")


async def test_a_skill_that_only_comes_in_sight_is_no_change(project: Path):
    skill_file(project, "Sweep.")
    skill_file(project, "Deploy.", "deploy", "apps/web")
    (project / "apps" / "web" / "a.txt").write_text("x\n")
    ear = Ear(BLOCK)
    async with Session(project, hooks={"ConfigChange": [ear]}, allow="Skill") as session:
        assert "Sweep." in await said_by(session)
        assert (await session.call("Read", file_path="apps/web/a.txt")).ok
        assert "Deploy." in await said_by(session, "deploy")
    assert ear.heard == []


def test_outside_a_loop_nothing_is_told_and_nothing_breaks(project: Path, tmp_path: Path):
    (tmp_path / "more").mkdir()
    ear = Ear()

    async def opened():
        hooks = {"DirectoryAdded": [ear], "ConfigChange": [ear]}
        return Session(project, hooks=hooks)

    session = asyncio.run(opened())
    get_parts(session).set_directories([tmp_path / "more"])
    settings_file(project, deny=["Read(a.txt)"])
    get_parts(session).follow()
    asyncio.run(session.close())
    assert ear.heard == []


async def test_the_start_names_the_model_and_the_end_its_reason(project: Path):
    start, end = Ear(), Ear()
    hooks = {"SessionStart": [start], "SessionEnd": [{"matcher": "clear", "hooks": [end]}]}
    session = Session(project, hooks=hooks)
    async with Agent(scripted({"text": "Hi."}, name="toy"), session) as agent:
        await agent.ask("Hi.")
    await session.close("clear")
    assert (start.heard[0]["source"], start.heard[0]["model"]) == ("startup", agent.model.name)
    assert end.heard[0]["reason"] == "clear"


async def test_a_form_for_a_person_is_told_of(project: Path):
    ear = Ear()

    async def person(_: ElicitationForm):
        return {"name": "Ann"}

    hooks = {"Notification": [{"matcher": "elicitation_dialog", "hooks": [ear]}]}
    async with Session(project, hooks=hooks) as session:
        form = ElicitationForm("forms", "Who are you?", {})
        assert await elicit_input(get_parts(session).pipeline_context, form, person) == {
            "name": "Ann"
        }
        told = await ear.wait()
    assert told["message"] == "forms asks: Who are you?"


def made(path: Path):
    path.write_text("more and more\n")


def changed(path: Path):
    path.write_text(path.read_text() + "more\n")


@pytest.mark.parametrize(
    ("matcher", "named", "touch", "told"),
    [
        (".env", [], [(".env", changed)], [(".env", "change")]),
        (".env", [], [(".env", Path.unlink)], [(".env", "unlink")]),
        (".env|.envrc", [], [(".envrc", made)], [(".envrc", "add")]),
        (".env|.envrc", [], [(".envrc", made), (".env", changed)], [(".env", "change"), (".envrc", "add")]),
        (".env", [], [("other", changed)], []),
        ("other", ["sub/other"], [("sub/other", changed)], [("sub/other", "change")]),
        ("", ["sub/other"], [("sub/other", changed), ("other", changed)], [("sub/other", "change")]),
        ("*", ["sub/new"], [("sub/new", made)], [("sub/new", "add")]),
        (".env", ["sub/other"], [("sub/other", changed)], []),
        (".env", ["relative", 7, None], [(".env", changed)], [(".env", "change")]),
    ],
)  # fmt: skip
async def test_files_that_change_between_calls_are_told_of(
    project: Path, matcher, named, touch, told
):
    (project / "sub").mkdir()
    for name in (".env", "other", "sub/other"):
        (project / name).write_text("one\n")
    paths = [f"{project}/{name}" if str(name).startswith("sub") else name for name in named]
    start = Ear({"hookSpecificOutput": {"watchPaths": paths}})
    ear = Ear()
    hooks = {
        "SessionStart": [start] if named else [],
        "FileChanged": [{"matcher": matcher, "hooks": [ear]}],
    }
    async with Session(project, hooks=hooks) as session:
        assert (await session.call("Glob", pattern="*")).ok
        for name, act in touch:
            act(project / name)
        assert (await session.call("Glob", pattern="*")).ok
        assert (await session.call("Glob", pattern="*")).ok
    heard = sorted((event["file_path"], event["event"]) for event in ear.heard)
    assert heard == [(f"{project}/{name}", what) for name, what in told]


async def until(holds):
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


async def test_the_watched_files_follow_the_directory_and_the_hooks_word(project: Path):
    (project / "sub").mkdir()
    (project / "named").write_text("one\n")
    moved = Ear({"hookSpecificOutput": {"watchPaths": [f"{project}/named"]}})
    ear = Ear({"hookSpecificOutput": {"watchPaths": []}})
    hooks = {"CwdChanged": [moved], "FileChanged": [{"matcher": ".env|named", "hooks": [ear]}]}
    async with Session(project, hooks=hooks) as session:
        await session.call("Bash", command="cd sub")
        watched = get_parts(session).hooks._watched
        await until(lambda: require(watched).named)
        await session.call("Glob", pattern="*")
        made(project / "sub" / ".env")
        made(project / ".env")
        await session.call("Glob", pattern="*")
        assert (await ear.wait())["file_path"] == f"{project}/sub/.env"
        await until(lambda: not require(watched).named)
        changed(project / "named")
        await session.call("Glob", pattern="*")
    assert len(ear.heard) == 1


async def test_without_such_a_hook_no_file_is_watched(project: Path):
    start = Ear({"hookSpecificOutput": {"watchPaths": [f"{project}/a"]}})
    async with Session(project, hooks={"SessionStart": [start]}) as session:
        assert (await session.call("Glob", pattern="*")).ok
        assert get_parts(session).hooks._watched is None


@pytest.mark.parametrize(
    ("form", "kinds"),
    [
        (ElicitationForm("forms", "Who?", {"type": "object"}),
         ["elicitation_dialog", "elicitation_complete", "elicitation_response"]),
        (ElicitationForm("forms", "Open it.", None, "https://example.org/in", "e-1"),
         ["elicitation_url_dialog", "elicitation_complete", "elicitation_response"]),
    ],
)  # fmt: skip
async def test_forms_and_pages_are_told_of_from_their_start_to_their_end(
    project: Path, form: ElicitationForm, kinds: list[str]
):
    ear, notices = Ear(), Ear()

    async def person(_: ElicitationForm):
        return {"name": "Ann"}

    hooks = {"Elicitation": [ear], "ElicitationResult": [ear], "Notification": [notices]}
    async with Session(project, hooks=hooks) as session:
        assert await elicit_input(get_parts(session).pipeline_context, form, person) == {
            "name": "Ann"
        }
    asked, answered = ear.heard
    assert [event["notification_type"] for event in notices.heard] == kinds
    assert asked["mode"] == ("form" if form.schema else "url")
    assert asked.get("url") == form.url
    assert asked.get("elicitation_id") == answered.get("elicitation_id") == form.elicitation_id
    assert (answered["action"], answered["content"]) == ("accept", {"name": "Ann"})


async def test_a_classifier_hears_what_hooks_say_of_earlier_results(project: Path):
    asked = []

    async def classifier(request):
        asked.append(request.remarks)
        return Allow()

    said = {"hookEventName": "PostToolUse", "classifierContext": "It is a scratch file."}
    hooks = {"PostToolUse": [Ear({"hookSpecificOutput": said})]}
    async with Session(
        project, hooks=hooks, permission_mode="auto", classifier=classifier
    ) as session:
        await session.call("Glob", pattern="*")
        for name in ("a", "b"):
            assert (await session.call("Write", file_path=name, content="x")).ok
    assert asked == [(), ("Write: It is a scratch file.",)]


async def test_hooks_of_the_session_speak_at_its_start_to_an_agent_with_its_own(project: Path):
    said = {"hookEventName": "SessionStart", "additionalContext": "It is Monday."}
    kind = {"description": "x", "prompt": "Work.", "hooks": {"Stop": [{"hooks": []}]}}
    hooks = {"SessionStart": [Ear({"hookSpecificOutput": said})]}
    model = scripted({"expect": "/./", "text": "{{first.text}}"})
    async with Session(project, hooks=hooks) as session:
        agent = Agent(model, session, agent="worker", agents={"worker": kind})
        assert "It is Monday." in (await agent.ask("Hi.")).result
        await agent.close()
