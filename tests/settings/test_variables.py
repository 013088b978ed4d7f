"""Settings by variables of the environment, as the ecosystem's users know them."""

import json
import os
from pathlib import Path

import pytest

import handaxe
from handaxe.settings.variables import given_by_variables


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
        ({"CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": ""}, {}),
    ],
)
def test_a_variable_gives_a_setting_and_a_mistake_gives_none(variables, given):
    assert given_by_variables(variables) == given


async def test_credentials_stay_from_commands_when_they_are_to_be_scrubbed(project, monkeypatch):
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "MY_API_KEY", "DB_PASSWORD"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("HARMLESS", "plain")
    async with handaxe.Session(project, permission_mode="bypassPermissions") as session:
        assert "s3cret" in (await session.call("Bash", command="env")).text
    monkeypatch.setenv("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "1")
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
