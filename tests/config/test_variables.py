"""Settings by variables of the environment, as the ecosystem's users know them."""

import json
import os
from pathlib import Path

import pytest

import handaxe
from handaxe.app.session import get_parts
from handaxe.config.env_vars import read_env_settings


@pytest.mark.parametrize(
    ("variables", "given"),
    [
        ({}, {}),
        ({"BASH_DEFAULT_TIMEOUT_MS": "1500"}, {"shell": {"default_timeout_ms": 1500}}),
        ({"BASH_MAX_TIMEOUT_MS": " 900000 "}, {"shell": {"max_timeout_ms": 900_000}}),
        ({"BASH_MAX_TIMEOUT_MS": "ten minutes"}, {}),
        ({"BASH_MAX_TIMEOUT_MS": "-1"}, {}),
        ({"BASH_MAX_TIMEOUT_MS": "0"}, {}),
        ({"BASH_MAX_TIMEOUT_MS": "²"}, {}),
        ({"CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": "2"}, {"agents": {"max_running": 2}}),
        ({"CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH": "99"}, {"agents": {"max_depth": 10}}),
        ({"CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY": "3"}, {"max_parallel_calls": 3}),
        ({"CLAUDE_AUTO_BACKGROUND_TASKS": "1"}, {"agents": {"auto_background_s": 120.0}}),
        ({"CLAUDE_CODE_GLOB_TIMEOUT_SECONDS": "60"}, {"search": {"timeout_s": 60}}),
        (
            {"CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1"},
            {"shell": {"carry_directory": False}},
        ),
        ({"CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "0"}, {}),
        ({"CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "1"}, {}),
        ({"BASH_MAX_OUTPUT_LENGTH": "150000"}, {"shell": {"max_inline_chars": 30_000}}),
        ({"BASH_MAX_OUTPUT_LENGTH": "7"}, {"shell": {"max_inline_chars": 1_000}}),
        ({"TASK_MAX_OUTPUT_LENGTH": "170000"}, {"agents": {"max_output_chars": 160_000}}),
        ({"CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS": "50000"}, {"read": {"max_tokens": 50_000}}),
        ({"CLAUDE_CODE_GLOB_NO_IGNORE": "true"}, {"search": {"glob_ignored": True}}),
        ({"CLAUDE_CODE_GLOB_NO_IGNORE": "false"}, {"search": {"glob_ignored": False}}),
        ({"CLAUDE_CODE_GLOB_HIDDEN": "false"}, {"search": {"glob_hidden": False}}),
        ({"CLAUDE_CODE_GLOB_HIDDEN": "perhaps"}, {}),
        ({"CLAUDE_CODE_SHELL_PREFIX": "/usr/bin/log"}, {"shell": {"prefix": "/usr/bin/log"}}),
        ({"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}, {"background_tasks": False}),
        ({"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "0"}, {}),
        ({"CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING": "1"}, {"fileCheckpointingEnabled": False}),
    ],
)
def test_a_variable_gives_a_setting_and_a_mistake_gives_none(variables, given):
    assert read_env_settings(variables) == given


@pytest.mark.parametrize("said", ["1", "0", None])
async def test_credentials_stay_from_commands_whether_they_are_to_be_scrubbed_or_not(
    project, monkeypatch, said
):
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "MY_API_KEY", "DB_PASSWORD"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("HARMLESS", "plain")
    if said is not None:
        monkeypatch.setenv("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", said)
    async with handaxe.Session(project, permission_mode="bypassPermissions") as session:
        seen = (await session.call("Bash", command="env")).text
    assert "s3cret" not in seen
    assert "HARMLESS=plain" in seen


async def test_a_file_says_it_with_more_weight(project, monkeypatch):
    monkeypatch.setenv("BASH_DEFAULT_TIMEOUT_MS", "1500")
    monkeypatch.setenv("BASH_MAX_TIMEOUT_MS", "2500")
    own = Path(os.environ["HANDAXE_CONFIG_HOME"], "settings.json")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(json.dumps({"shell": {"default_timeout_ms": 7000}}))
    async with handaxe.Session(project) as session:
        assert session.settings.shell.default_timeout_ms == 7000
        assert session.settings.shell.max_timeout_ms == 2500


async def test_the_directory_stays_when_it_is_to_be_maintained(project, monkeypatch):
    (project / "sub").mkdir()
    monkeypatch.setenv("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "1")
    async with handaxe.Session(project) as session:
        await session.call("Bash", command="cd sub")
        assert str(project / "sub") not in (await session.call("Bash", command="pwd")).text


@pytest.fixture
def free(project):
    """A session that may do everything, with the variables that are set when it is opened."""
    return lambda: handaxe.Session(project, permission_mode="bypassPermissions")


async def test_commands_are_handed_to_the_program_that_is_to_see_them(
    free, project, tmp_path, monkeypatch
):
    seen = tmp_path / "seen"
    wrapper = tmp_path / "my wrapper.sh"
    wrapper.write_text(f'#!/bin/bash\necho "$1:$2" >> {seen}\nexec bash -c "$2"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CLAUDE_CODE_SHELL_PREFIX", f"'{wrapper}' noted")
    (project / "sub").mkdir()
    async with free() as session:
        moved = await session.call("Bash", command="cd sub && echo 'two  words'")
        assert moved.data["stdout"] == "two  words"
        assert moved.data["nextCwd"] == str(project / "sub")
        failed = await session.call("Bash", command="exit 7")
        assert failed.data["exitCode"] == 7
        long = await session.call("Bash", command="echo short # " + "x" * 200_000)
        assert long.data["stdout"] == "short"
    lines = seen.read_text().splitlines()
    assert len(lines) == 3
    assert "noted:" in lines[0]
    assert "cd sub && echo" in lines[0]


@pytest.mark.parametrize("prefix", ["bash -c", "env -u NOTHING bash -c", "/bin/bash -c"])
async def test_the_program_that_is_to_see_commands_may_be_named_by_its_name(
    free, monkeypatch, prefix
):
    monkeypatch.setenv("CLAUDE_CODE_SHELL_PREFIX", prefix)
    async with free() as session:
        assert (await session.call("Bash", command="echo here")).data["stdout"] == "here"


@pytest.mark.parametrize("prefix", ["/no/such/program", "no-such-program x", "./wrap.sh", "'open"])
async def test_without_the_program_that_is_to_see_commands_none_runs(
    free, project, monkeypatch, prefix
):
    (project / "wrap.sh").write_text('#!/bin/sh\nexec bash -c "$1"\n')
    (project / "wrap.sh").chmod(0o755)
    monkeypatch.setenv("CLAUDE_CODE_SHELL_PREFIX", prefix)
    async with free() as session:
        refused = await session.call("Bash", command="touch made")
    assert refused.code == "shell.cannot_start"
    assert "the setting `shell.prefix` does not exist" in refused.text
    assert not (project / "made").exists()


async def test_hooks_are_handed_to_it_too(project, tmp_path, monkeypatch):
    seen = tmp_path / "seen"
    wrapper = tmp_path / "wrapper.sh"
    wrapper.write_text(f'#!/bin/bash\necho "$1" >> {seen}\nexec bash -c "$1"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CLAUDE_CODE_SHELL_PREFIX", str(wrapper))
    refusing = {"type": "command", "command": "echo 'not now' >&2; exit 2"}
    plain = {"type": "command", "command": "true", "args": []}
    hooks = {"PreToolUse": [{"matcher": "Glob", "hooks": [refusing, plain]}]}
    async with handaxe.Session(project, settings={"hooks": hooks}) as session:
        refused = await session.call("Glob", pattern="*")
    assert "not now" in refused.text
    assert [line for line in seen.read_text().splitlines() if "not now" in line]
    assert len(seen.read_text().splitlines()) == 1


async def test_the_bash_that_was_named_runs_commands(free, tmp_path, monkeypatch):
    own = tmp_path / "bash"
    own.write_text('#!/bin/sh\nexport OWN_BASH=yes\nexec /bin/bash "$@"\n')
    own.chmod(0o755)
    monkeypatch.setenv("CLAUDE_CODE_SHELL", str(own))
    async with free() as session:
        assert (await session.call("Bash", command='echo "$OWN_BASH"')).data["stdout"] == "yes"
    monkeypatch.setenv("CLAUDE_CODE_SHELL", "/usr/bin/fish")
    async with free() as session:
        assert (await session.call("Bash", command='echo "$OWN_BASH"')).data["stdout"] == ""


async def test_nothing_goes_on_in_the_background_where_that_is_switched_off(free, monkeypatch):
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")
    async with free() as session:
        asked = await session.call("Bash", command="echo here", run_in_background=True)
        assert asked.data["stdout"] == "here"
        assert "ran in the foreground" in " ".join(asked.notes)
        ended = await session.call("Bash", command="cat /dev/zero | tail -c 1", timeout=300)
        assert ended.code == "call.timed_out"
        watched = await session.call("Monitor", command="echo x", description="A watch")
        assert watched.code == "task.no_background"
        assert session.jobs.listed() == []


async def test_less_output_is_shown_and_all_of_it_is_in_a_file(free, monkeypatch):
    monkeypatch.setenv("BASH_MAX_OUTPUT_LENGTH", "2000")
    async with free() as session:
        said = await session.call("Bash", command="seq 1 1000")
        assert len(said.text) < 3_000
        kept = Path(said.data["persistedOutputPath"]).read_text()
        assert kept == "".join(f"{number}\n" for number in range(1, 1001))


async def test_glob_by_variables(free, project, monkeypatch):
    (project / ".gitignore").write_text("built\n")
    for name in ("built/a.txt", ".dotted/b.txt", ".c.txt", "d.txt"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).touch()

    async def found(pattern: str = "**/*.txt") -> set[str]:
        async with free() as session:
            names = (await session.call("Glob", pattern=pattern)).data["filenames"]
            return {os.path.relpath(name, project) for name in names}

    assert await found() == {".dotted/b.txt", ".c.txt", "d.txt"}
    monkeypatch.setenv("CLAUDE_CODE_GLOB_HIDDEN", "false")
    assert await found() == {"d.txt"}
    assert await found("**/.*.txt") == {".c.txt"}
    assert await found("*") == {"d.txt"}
    monkeypatch.setenv("CLAUDE_CODE_GLOB_NO_IGNORE", "true")
    assert await found() == {"built/a.txt", "d.txt"}


async def test_a_read_shows_as_much_as_the_variable_says(free, project, monkeypatch):
    (project / "long.txt").write_text("".join(f"{n:03} {'x' * 95}\n" for n in range(1, 1501)))
    async with free() as session:
        whole = (await session.call("Read", file_path="long.txt")).data["file"]
        assert whole["numLines"] == 1_500
        assert "truncatedByTokenCap" not in whole
    monkeypatch.setenv("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "25000")
    async with free() as session:
        page = await session.call("Read", file_path="long.txt")
        assert page.data["file"]["truncatedByTokenCap"]
        assert page.data["file"]["numLines"] < 1_500
        assert "PARTIAL view" in page.text
        assert "offset=" in page.text


async def test_the_plain_list_stands_in_for_tasks_where_these_are_switched_off(
    project, monkeypatch
):
    monkeypatch.setenv("CLAUDE_CODE_ENABLE_TASKS", "0")
    tasks = {"TaskCreate", "TaskGet", "TaskList", "TaskUpdate"}
    async with handaxe.Session(project) as session:
        names = {tool.name for tool in get_parts(session).catalog.list_offered()}
        assert "TodoWrite" in names
        assert not names & tasks
    async with handaxe.Session(project, tools=["TaskCreate"]) as session:
        assert {tool.name for tool in get_parts(session).catalog.list_offered()} == {"TaskCreate"}


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "a.txt", "content": "new"}),
        ("Edit", {"file_path": "a.txt", "old_string": "old", "new_string": "new"}),
        ("MultiEdit", {"file_path": "a.txt", "edits": [{"old_string": "old", "new_string": "n"}]}),
        ("EditLines", {"file_path": "a.txt", "changes": [{"after": "0", "text": "new"}]}),
        (
            "ApplyPatch",
            {"input": "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** End Patch"},
        ),
    ],
)
async def test_a_file_that_perforce_keeps_is_not_changed_behind_its_back(
    free, project, monkeypatch, tool, given
):
    file = project / "a.txt"
    file.write_text("old\n")
    file.chmod(0o444)
    monkeypatch.setenv("CLAUDE_CODE_PERFORCE_MODE", "1")
    async with free() as session:
        await session.call("Read", file_path="a.txt")
        refused = await session.call(tool, given)
        assert refused.code == "file.not_opened", refused.text
        assert f"p4 edit {file}" in refused.text
        assert file.read_text() == "old\n"
        file.chmod(0o644)
        assert (await session.call("Write", file_path="a.txt", content="new")).ok
    monkeypatch.setenv("CLAUDE_CODE_PERFORCE_MODE", "0")
    file.chmod(0o444)
    async with free() as session:
        await session.call("Read", file_path="a.txt")
        assert (await session.call("Write", file_path="a.txt", content="newer")).ok
