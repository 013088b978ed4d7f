"""Plan mode is read-only by the runtime: whatever a model tries and whoever says yes."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from players import Player, calls, says

from handaxe import Agent, Allow, Deny, Effects, Session, ToolContext, tool
from handaxe.contract.messages import ToolResultBlock

WRITES = [
    "touch new",
    "echo x > new",
    "echo x >> a.txt",
    "cat a.txt | tee new",
    "rm a.txt",
    "mv a.txt b.txt",
    "cp a.txt b.txt",
    "ln -s a.txt link",
    "mkdir made",
    "chmod 600 a.txt",
    "truncate -s 0 a.txt",
    "dd if=/dev/zero of=new bs=1 count=1",
    "sed -i s/one/two/ a.txt",
    'python3 -c \'open("new", "w")\'',
    "bash -c 'touch new'",
    "env touch new",
    "xargs touch < a.txt",
    "find . -name a.txt -delete",
    "git init made",
    "cd made; touch new",
    "( touch new )",
    "if true; then touch new; fi",
    "echo $(touch new)",
    "sort -o new a.txt",
    "awk 'BEGIN { print > \"new\" }'",
    "install a.txt new",
    "tar cf new.tar a.txt",
    "touch new & wait",
]


@tool
async def scribble(ctx: ToolContext) -> str:
    """Write a file of its own."""
    Path(ctx.cwd, "new").write_text("x")
    return "Written."


@tool(effects=Effects.none())
async def glance() -> str:
    """Look at nothing at all."""
    return "Seen."


def tries() -> list[tuple[str, str, dict[str, object]]]:
    edit: dict[str, object] = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
    wanted: list[tuple[str, dict[str, object]]] = [
        ("Write", {"file_path": "new", "content": "x"}),
        ("Write", {"file_path": "a.txt", "content": "x"}),
        ("Edit", edit),
        ("MultiEdit", {"file_path": "a.txt", "edits": [edit]}),
        ("EditLines", {"file_path": "a.txt", "changes": [{"after": "0", "text": "x"}]}),
        ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "1", "edit_mode": "insert"}),
        ("Undo", {}),
        ("Config", {"key": "permissions.allow", "value": ["Bash"], "scope": "project"}),
        ("scribble", {}),
        ("Monitor", {"command": "touch new", "description": "Watch"}),
        ("Bash", {"command": "touch new", "run_in_background": True}),
        ("Bash", {"command": "touch new", "dangerouslyDisableSandbox": True}),
        *(("Bash", {"command": command}) for command in WRITES),
    ]
    return [(f"c{at}", name, given) for at, (name, given) in enumerate(wanted)]


def state_of(directory: Path) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for place, _, names in os.walk(directory):
        found[place] = (os.lstat(place).st_mode, "")
        for name in names:
            path = Path(place, name)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path)] = (path.lstat().st_mode, digest)
    return found


async def yes(request: object) -> Allow:
    return Allow("whatever you want")


async def hook(event: dict[str, object]) -> dict[str, object]:
    said = {"hookEventName": event["hook_event_name"], "permissionDecision": "allow"}
    return {"hookSpecificOutput": said | {"decision": {"behavior": "allow"}}}


@pytest.fixture
def planned(project: Path):
    (project / "a.txt").write_text("one\n")
    (project / "made").mkdir()
    return Session(
        project,
        tools=["full", scribble, glance],
        allow=["Bash", "Bash(touch:*)", "Edit", "Write", "Undo", "Config", "scribble", "Monitor"],
        ask=["Bash(mkdir:*)", "Write(new)"],
        hooks={"PreToolUse": [hook], "PermissionRequest": [hook]},
        on_ask=yes,
        permission_mode="acceptEdits",
    )


@pytest.mark.proves("BT-20", "PM-1")
async def test_no_route_changes_a_file_whoever_says_yes(planned: Session, project: Path):
    async with planned as session:
        await session.call("Write", file_path="a.txt", content="one\ntwo\n")
        before = state_of(project)
        session.set_mode("plan")
        model = Player(calls(*tries()), says("Could not."))
        await Agent(model, session).ask("Change something.")
        given = model.requests[1].messages[-1].content
        answers = [block for block in given if isinstance(block, ToolResultBlock)]
        assert state_of(project) == before
        assert [a.is_error for a in answers] == [True] * len(tries())
        listed = {spec.name for spec in model.requests[0].tools}
        assert listed.isdisjoint({"Write", "Edit", "NotebookEdit", "Undo"})


async def test_an_agent_in_plan_mode_changes_nothing_either(planned: Session, project: Path):
    async with planned as session:
        before = state_of(project)
        session.set_mode("plan")
        task = {"description": "A task", "prompt": "Do it."}
        model = Player(
            calls(("t1", "Agent", task)), calls(*tries()), says("Could not."), says("Neither.")
        )
        await Agent(model, session).ask("Change something.")
        assert state_of(project) == before


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Bash", {"command": "cat a.txt | head -1"}),
        ("Bash", {"command": "cat /etc/hostname"}),
        ("Bash", {"command": "cd made && ls"}),
        ("Read", {"file_path": "/etc/hostname"}),
        ("Read", {"file_path": "a.txt"}),
        ("glance", {}),
    ],
)
async def test_looking_goes_on_and_a_question_about_it_can_be_answered(
    name: str, given: dict[str, object], planned: Session
):
    async with planned as session:
        session.set_mode("plan")
        assert (await session.call(name, given)).ok


async def test_the_plan_agreed_to_ends_it(planned: Session, project: Path):
    async with planned as session:
        session.set_mode("plan")
        refused = await session.call("Bash", command="touch new")
        assert refused.code == "permission.asked"
        assert "Plan mode is read-only" in refused.text
        left = await session.call("ExitPlanMode", plan="# Do it")
        assert left.ok, left.text
        assert (await session.call("Bash", command="touch new")).ok
        assert (project / "new").exists()


PLAN = "# Fix the auth race\n\n1. Look.\n"


def plan_session(project: Path, directory: str | None, **more: Any) -> Session:
    settings = {"plansDirectory": directory} if directory is not None else {}
    return Session(project, settings=settings, permission_mode="plan", on_ask=yes, **more)


async def test_a_plan_is_kept_where_the_settings_say_before_anybody_is_asked(project: Path):
    seen: list[dict[str, Any]] = []

    async def look(event: dict[str, Any]) -> None:
        given = event["tool_input"]
        seen.append({**given, "on_disk": Path(given["planFilePath"]).read_text()})

    hooks = {"PreToolUse": [look]}
    async with plan_session(project, "./docs/plans", hooks=hooks) as session:
        left = await session.call("ExitPlanMode", plan=PLAN)
        file = Path(left.data["filePath"])
        assert file.parent == project / "docs" / "plans"
        assert file.name == f"fix-the-auth-race-{session.id[:8]}.md"
    assert file.read_text() == PLAN
    assert str(file) in left.text
    assert seen == [{"plan": PLAN, "planFilePath": str(file), "on_disk": PLAN}]


async def test_a_plan_that_is_presented_again_replaces_itself(project: Path):
    answers = [Deny("not yet"), Allow("good")]

    async def answer(request: object) -> Allow | Deny:
        return answers.pop(0)

    settings = {"plansDirectory": "plans"}
    async with Session(
        project, settings=settings, permission_mode="plan", on_ask=answer
    ) as session:
        assert not (await session.call("ExitPlanMode", plan=PLAN)).ok
        assert (await session.call("ExitPlanMode", plan=PLAN + "2. Test.\n")).ok
    (file,) = (project / "plans").iterdir()
    assert file.read_text() == PLAN + "2. Test.\n"


async def test_a_plan_that_a_hook_changes_is_the_one_that_is_kept(project: Path):
    async def change(event: dict[str, Any]) -> dict[str, Any]:
        given = {**event["tool_input"], "plan": PLAN + "2. Also this.\n"}
        said = {"hookEventName": "PreToolUse", "updatedInput": given}
        return {"hookSpecificOutput": said | {"permissionDecision": "allow"}}

    async with plan_session(project, "plans", hooks={"PreToolUse": [change]}) as session:
        left = await session.call("ExitPlanMode", plan=PLAN)
    assert left.data["planWasEdited"] is True
    assert left.data["plan"] == PLAN + "2. Also this.\n"
    assert "2. Also this." in left.text
    assert Path(left.data["filePath"]).read_text() == left.data["plan"]


@pytest.mark.parametrize("directory", [None, "../elsewhere", "/tmp", "leads-out", "."])
async def test_without_a_directory_in_the_project_a_plan_stays_with_the_session(
    project: Path, tmp_path: Path, directory: str | None
):
    (project / "leads-out").symlink_to(tmp_path)
    before = state_of(project)
    async with plan_session(project, directory) as session:
        left = await session.call("ExitPlanMode", plan=PLAN)
        assert Path(left.data["filePath"]).read_text() == PLAN
        read = await session.call("Read", file_path=left.data["filePath"])
        assert "Fix the auth race" in read.text
    assert state_of(project) == before


@pytest.mark.parametrize(
    ("directory", "rules"),
    [
        (".claude/commands", {}),
        (".git/hooks", {}),
        ("docs/.Claude/agents", {}),
        ("plans", {"deny": ["Edit(plans/**)"]}),
        ("plans", {"ask": ["Write(/plans/**)"]}),
        ("plans", {"deny": ["Edit"]}),
    ],
)
async def test_a_plan_is_kept_only_where_files_may_be_changed(
    project: Path, directory: str, rules: dict[str, list[str]]
):
    (project / directory).mkdir(parents=True)
    before = state_of(project)
    async with plan_session(project, directory, **rules) as session:
        left = await session.call("ExitPlanMode", plan=PLAN)
    assert left.ok
    assert Path(left.data["filePath"]).read_text() == PLAN
    assert state_of(project) == before


async def test_a_plan_can_be_agreed_to_where_it_cannot_be_kept(project: Path):
    (project / "plans").write_text("a file where the directory should be")
    async with plan_session(project, "plans") as session:
        left = await session.call("ExitPlanMode", plan=PLAN)
        assert left.ok
        assert left.data["filePath"] is None
