"""`Session(env=...)`: variables of one session, for its commands, hooks and servers."""

import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from handaxe import Session, SetupError, sessions
from handaxe.contract.faults.session import BadEnvironment

TOKEN = "tok-4815162342-abcdef"


@pytest.mark.proves("SS-5")
async def test_two_sessions_have_their_own_variables_and_the_process_none_of_them(project):
    before = dict(os.environ)
    opened = [
        Session(project, env={"WHO": who}, permission_mode="bypassPermissions") for who in "ab"
    ]
    async with opened[0] as one, opened[1] as two:
        for session, who in ((one, "a"), (two, "b"), (one, "a")):
            for background in (False, True):
                ran = await session.call(
                    "Bash", command='echo "I am $WHO."', run_in_background=background
                )
                if background:
                    ran = await session.call("TaskOutput", task_id=ran.data["backgroundTaskId"])
                assert f"I am {who}." in ran.text
    assert dict(os.environ) == before


async def test_variables_beat_those_of_settings_and_of_the_process(project, monkeypatch):
    monkeypatch.setenv("ONE", "process")
    given = {"env": {"ONE": "settings", "TWO": "settings"}}
    async with Session(
        project, settings=given, env={"ONE": "session"}, permission_mode="bypassPermissions"
    ) as session:
        ran = await session.call("Bash", command='echo "$ONE $TWO"')
        assert ran.data["stdout"].strip() == "session settings"


async def test_a_hook_and_a_server_get_the_variables(project):
    hook = {"type": "command", "command": 'echo "$WHO" > hook.txt'}
    hooks = {"hooks": {"PreToolUse": [{"hooks": [hook]}]}}
    server = project / "server.py"
    server.write_text("import os\nopen('server.txt', 'w').write(os.environ['WHO'])\n")
    async with Session(
        project,
        settings=hooks,
        env={"WHO": "me"},
        mcp_servers={"s": {"command": sys.executable, "args": [str(server)]}},
    ) as session:
        await session.call("Glob", pattern="*")
        await session.call("mcp__s__nothing")
    assert (project / "hook.txt").read_text() == "me\n"
    assert (project / "server.txt").read_text() == "me"


@pytest.mark.proves("SS-5")
async def test_secrets_of_a_session_are_in_no_result_and_no_log(project):
    async with Session(
        project, env={"MY_TOKEN": TOKEN}, permission_mode="bypassPermissions"
    ) as session:
        ran = await session.call("Bash", command="echo $MY_TOKEN; echo $MY_TOKEN > t.txt")
        assert ran.text.startswith("[redacted: MY_TOKEN]")
        assert (project / "t.txt").read_text().strip() == TOKEN
        await session.call("Bash", command=f"echo {TOKEN} >&2; sleep 0", run_in_background=True)
    place = Path(os.environ["HANDAXE_HOME"]) / "sessions" / session.id
    for path in place.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path
    assert TOKEN not in str(list(sessions.read_events(session.id)))


BAD = [
    [("A", "b")], "A=b", 3, {"A": 1}, {"A": None}, {"A": b"b"}, {1: "a"}, {"": "a"}, {"A=B": "a"},
    {"A\0": "a"}, {"A": "\0"}, {"A": "\ud800"}, {"\ud800": "a"}, {"A": ["b"]},
]  # fmt: skip


@pytest.mark.parametrize("env", BAD, ids=repr)
def test_what_cannot_be_variables_is_refused(project, env):
    with pytest.raises(BadEnvironment) as refused:
        Session(project, env=env)
    assert refused.value.code == "session.bad_env"


def test_a_wrong_value_is_not_told(project):
    with pytest.raises(SetupError) as refused:
        Session(project, env={"MY_TOKEN": cast("Any", TOKEN.encode())})
    assert TOKEN not in str(refused.value)


async def test_home_means_the_same_to_tools_and_commands(project, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/a.txt").write_text("at home\n")
    async with Session(
        project, env={"HOME": str(tmp_path / "home")}, permission_mode="bypassPermissions"
    ) as session:
        assert "at home" in (await session.call("Read", file_path="~/a.txt")).text
        assert "at home" in (await session.call("Bash", command="cat ~/a.txt")).text
