"""What commands, hooks and servers get of the user's secrets, and what they are told of it."""

import json
import os
import sys
from pathlib import Path

import pytest
from tests.expected_types import require
from tests.waiting import until

from handaxe import Session
from handaxe.app.session import get_parts
from handaxe.contract.events import CallFinished
from handaxe.contract.ports.shell import Shell
from handaxe.tools.shell.bash.failure_hints import (
    PROGRAMS,
    explain_removed_variables,
)

TOKEN = "ghp_Zx81kQpLm2Zx81kQpLm2Zx81kQpLm2"
MARK = "[redacted: GITHUB_TOKEN]"
SHOW = "printenv GITHUB_TOKEN || echo none"


@pytest.fixture(autouse=True)
def _user(monkeypatch):
    for name in os.environ:
        if name.endswith(("_TOKEN", "_KEY", "_SECRET")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")


def opened(project, shell=None, **more):
    settings = {"shell": shell or {}, **more.pop("settings", {})}
    return Session(project, allow=["Bash"], settings=settings, **more)


async def said(session, command):
    return (await session.call("Bash", command=command)).data["stdout"].strip()


@pytest.mark.proves("S14")
async def test_commands_do_not_get_secrets_and_do_get_the_rest(project):
    async with opened(project) as session:
        assert await said(session, f"{SHOW}; echo $GIT_AUTHOR_NAME") == "none\nSomebody"


@pytest.mark.proves("S14")
@pytest.mark.parametrize("listed", [["GITHUB_TOKEN"], ["GITHUB_*"], ["*"]])
async def test_the_user_can_pass_them(project, listed):
    async with opened(project, {"pass_variables": listed}) as session:
        assert await said(session, SHOW) == MARK
        assert await said(session, "echo ${#GITHUB_TOKEN}") == str(len(TOKEN))


async def test_what_is_hidden_stays_hidden_although_it_is_passed(project):
    shell = {"pass_variables": ["*"], "hidden_variables": ["GITHUB_*", "GIT_AUTHOR_*"]}
    async with opened(project, shell) as session:
        assert await said(session, f"{SHOW}; echo [$GIT_AUTHOR_NAME]") == "none\n[]"


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
@pytest.mark.parametrize("trusted", [True, False])
async def test_a_project_cannot_pass_them_to_itself(project, name, trusted):
    own = project / ".handaxe" / name
    own.parent.mkdir()
    own.write_text(json.dumps({"shell": {"pass_variables": ["GITHUB_TOKEN"]}}))
    async with Session(project, allow=["Bash"], trusted=trusted) as session:
        assert await said(session, SHOW) == "none"
        assert any("shell.pass_variables" in warning for warning in session.warnings)


@pytest.mark.proves("S14")
async def test_what_settings_set_is_given_and_redacted(project):
    settings = {"env": {"SERVICE_PASSWORD": "Sup3r-Secret-Thing"}}
    async with opened(project, settings=settings) as session:
        result = await session.call("Bash", command="echo $SERVICE_PASSWORD; env")
    assert result.text.startswith("[redacted: SERVICE_PASSWORD]\n")
    assert "Sup3r-Secret-Thing" not in json.dumps(result.to_json())


@pytest.mark.proves("S14")
async def test_listeners_and_the_log_hear_what_the_caller_gets(project):
    heard = []
    async with opened(project, {"pass_variables": ["GITHUB_TOKEN"]}) as session:
        session.subscribe(heard.append)
        result = await session.call("Bash", command="env; echo $GITHUB_TOKEN >&2")
        finished = await until(lambda: [one for one in heard if isinstance(one, CallFinished)])
        assert finished[0].result.to_json() == result.to_json()
        assert (
            require(get_parts(session).recorder.result_of(result.id)).to_json() == result.to_json()
        )
    assert TOKEN not in repr(heard)


@pytest.mark.proves("S14")
async def test_a_preview_never_ends_in_the_middle_of_a_secret(project):
    """Cut anywhere, a long result shows no part of the value that is longer than a few letters."""
    (project / "long.txt").write_text(f"{TOKEN}\n" * 2_000)
    async with opened(project, {"pass_variables": ["GITHUB_TOKEN"]}) as session:
        result = await session.call("Bash", command="cat long.txt")
        kept = Path(result.data["persistedOutputPath"]).read_text()
    for text in (result.text, kept):
        assert TOKEN[:8] not in text
        assert TOKEN[-8:] not in text
        assert MARK in text


@pytest.mark.proves("S14")
async def test_a_monitor_tells_no_secret_that_comes_in_pieces(project):
    line = (
        "printf ${GITHUB_TOKEN:0:9}; sleep 0.2; echo ${GITHUB_TOKEN:9} done; echo $GITHUB_TOKEN >&2"
    )
    heard = []
    settings = {"shell": {"pass_variables": ["GITHUB_TOKEN"]}}
    async with Session(project, allow=["Monitor"], settings=settings) as session:
        session.subscribe(heard.append)
        result = await session.call("Monitor", command=line, description="d")
        assert result.ok, result.text
        await until(lambda: f"{MARK} done" in repr(heard))
        outputs = list(get_parts(session).session_context.session_directory.rglob("*.output"))
        await until(lambda: outputs[0].read_text().count(MARK) == 2)
    assert TOKEN not in repr(heard)


async def test_a_last_letter_that_may_begin_a_secret_is_not_lost(project):
    async with opened(project) as session:
        for size in range(1, 12):
            assert await said(session, f"printf %s x{TOKEN[:size]}") == f"x{TOKEN[:size]}"


@pytest.mark.parametrize(
    ("command", "is_told"),
    [
        ("echo 'error: GITHUB_TOKEN is not set' >&2; exit 4", True),
        ("echo 'error: GITHUB_TOKEN is not set' >&2", False),
        ("echo 'GITHUB_TOKENS and MY_GITHUB_TOKEN'; exit 4", False),
        ("gh pr list", True),
        ("cd . && gh  pr list | cat; exit 1", True),
        ("echo right gherkin; exit 1", False),
        ("git -c a.b=c push origin; exit 1", True),
        ("git status; exit 1", False),
        ('curl -H "Authorization: $GITHUB_TOKEN" -V > /dev/null', True),
        ('echo "${GITHUB_TOKEN:-no}"', True),
        ("echo '$GITHUB_TOKENS' \\$GITHUB; exit 1", False),
        ("false", False),
    ],
)
async def test_a_command_that_lacks_a_variable_is_told_how_to_pass_it(
    project, monkeypatch, command, is_told
):
    bin_ = project.parent / "bin"
    bin_.mkdir()
    (bin_ / "gh").write_text("#!/bin/sh\nexit 4\n")
    (bin_ / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    async with opened(project) as session:
        result = await session.call("Bash", command=command)
    told = "look like secrets: GITHUB_TOKEN. To pass them" in result.text
    assert told is is_told
    assert ("`shell.pass_variables`" in result.text) is is_told


async def test_a_command_that_got_the_variable_is_told_nothing(project):
    async with opened(project, {"pass_variables": ["GITHUB_TOKEN"]}) as session:
        result = await session.call("Bash", command="echo GITHUB_TOKEN is bad; exit 1")
        assert "pass_variables" not in result.text
        assert get_parts(session).pipeline_context.ports[Shell].removed_variables == ()


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_of_the_table_is_recognised_by_its_first_words(program):
    removed = [PROGRAMS[program][0].replace("*", "X_TOKEN")]
    line = f"cd x && {program} --flag value"
    assert explain_removed_variables(line, "", removed, failed=True) is not None
    assert explain_removed_variables(line, "", removed, failed=False) is None


def test_many_removed_variables_are_counted():
    removed = [f"AWS_{number}_TOKEN" for number in range(9)]
    note = explain_removed_variables("aws s3 ls", "", removed, failed=True)
    assert note is not None
    assert "AWS_5_TOKEN and 3 more." in note


def hook(line):
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": line}]}]}


@pytest.mark.proves("S14")
async def test_a_hook_gets_the_variables_that_its_own_line_names(project, tmp_path):
    seen = tmp_path / "seen"
    line = f'echo "$GITHUB_TOKEN" ${{GIT_AUTHOR_NAME}} > {seen}; env >> {seen}'
    async with opened(project, settings={"hooks": hook(line)}) as session:
        await session.call("Bash", command="true")
    assert seen.read_text().startswith(f"{TOKEN} Somebody\n")
    async with opened(project, settings={"hooks": hook(f"env > {seen}")}) as session:
        await session.call("Bash", command="true")
    assert TOKEN not in seen.read_text()
    shell = {"pass_variables": ["GITHUB_TOKEN"]}
    async with opened(project, shell, settings={"hooks": hook(f"env > {seen}")}) as session:
        await session.call("Bash", command="true")
    assert f"GITHUB_TOKEN={TOKEN}\n" in seen.read_text()


@pytest.mark.proves("S14")
async def test_a_projects_own_hook_names_secrets_in_vain(project, tmp_path):
    seen = tmp_path / "seen"
    line = f'echo "[$GITHUB_TOKEN]" $GIT_AUTHOR_NAME > {seen}'
    own = project / ".handaxe" / "settings.json"
    own.parent.mkdir()
    own.write_text(json.dumps({"hooks": hook(line)}))
    async with Session(project, allow=["Bash"], trusted=True) as session:
        await session.call("Bash", command="true")
    assert seen.read_text() == "[] Somebody\n"


@pytest.mark.proves("S14")
async def test_the_log_of_a_server_and_its_answers_hold_no_secret_that_it_was_given(project):
    thin = str(Path(__file__).parents[1] / "mcp" / "thin_server.py")
    line = f'echo "$WANTED" >&2; printf %s "$OWN_PASSWORD" >&2; exec {sys.executable} {thin}'
    env = {"WANTED": "${GITHUB_TOKEN}", "OWN_PASSWORD": "Lit3ral-Password"}
    servers = {"a": {"command": "/bin/sh", "args": ["-c", line], "env": env}}
    async with Session(project, allow=["mcp__a"], mcp_servers=servers) as session:
        result = await session.call("mcp__a__env")
        place = get_parts(session).session_context.session_directory / "mcp" / "a.log"
        assert result.ok
        assert json.loads(result.text)["env"]["WANTED"] == MARK
    log = place.read_text()
    assert MARK in log
    assert TOKEN not in log + result.text
    assert "Lit3ral-Password" not in log + result.text


async def test_the_marker_of_a_secret_is_never_written_into_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_16characterslong42")
    (tmp_path / "config.ini").write_text("token = ghp_16characterslong42\nname = a\n")
    async with Session(tmp_path, permission_mode="acceptEdits", home=tmp_path / "h") as session:
        shown = await session.call("Read", file_path="config.ini")
        assert "[redacted: GITHUB_TOKEN]" in shown.text
        text = "token = [redacted: GITHUB_TOKEN]\nname = b\n"
        refused = await session.call("Write", file_path="config.ini", content=text)
        assert refused.code == "file.redacted"
        change = {"old_string": "name = a", "new_string": "name = b"}
        assert (await session.call("Edit", file_path="config.ini", **change)).ok
    assert (tmp_path / "config.ini").read_text() == "token = ghp_16characterslong42\nname = b\n"
