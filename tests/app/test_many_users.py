"""The profile for services with many users: no user sees anything of another one or of the host."""

from pathlib import Path

import pytest

import handaxe
from handaxe import Agent, Allow, Session, SetupError
from handaxe.contract.faults.session import ProfileNotMet, SessionElsewhere
from handaxe.shell.sandbox.backend import find_backend

CAN_CONFINE = find_backend().name != "none"
needs_sandbox = pytest.mark.skipif(not CAN_CONFINE, reason="nothing can be confined here")
SECRETS = {"ada": "ada-secret-0123456789", "bob": "bob-secret-9876543210"}


async def allow_all(_request):
    return Allow()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of whoever runs the service, full of settings that open everything."""
    home = tmp_path / "host"
    for place in (".claude/skills/hosts", ".claude/agents", ".handaxe"):
        (home / place).mkdir(parents=True)
    (home / ".claude/settings.json").write_text(
        '{"permissions": {"allow": ["Bash", "Read(//**)"]}, "env": {"FROM_HOST": "leak"}}'
    )
    (home / ".claude/CLAUDE.md").write_text("HOST-INSTRUCTIONS\n")
    (home / ".claude/skills/hosts/SKILL.md").write_text("---\ndescription: HOST-SKILL\n---\nx\n")
    (home / ".claude/agents/hosts.md").write_text(
        "---\nname: hosts\ndescription: HOST-AGENT\n---\nx\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
    monkeypatch.setenv("HANDAXE_CONFIG_HOME", str(home / ".handaxe"))
    monkeypatch.setenv("HOST_SETTING", "leak-of-the-host")
    return tmp_path


def opened(base: Path, user: str, **more) -> Session:
    root = base / "users" / user
    root.mkdir(parents=True, exist_ok=True)
    return Session(
        root,
        **{
            "profile": "many-users",
            "home": base / "data" / user,
            "env": {"API_TOKEN": SECRETS[user], "TEAM": f"team-of-{user}"},
            "on_ask": allow_all,
            **more,
        },
    )


@pytest.mark.proves("SS-5")
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions", "plan"])
async def test_no_tool_reaches_the_files_of_another_user_whoever_allows_it(host, mode):
    async with opened(host, "ada", permission_mode="acceptEdits") as ada:
        await ada.call("Write", file_path="n.txt", content="Ada was here.\n")
        theirs = Path(ada.workdir.root, "n.txt")
        log = host / "data/ada/sessions" / ada.id / "events.jsonl"
        async with opened(host, "bob", permission_mode=mode, allow=["Read(//**)", "Edit"]) as bob:
            Path(bob.workdir.root, "link.txt").symlink_to(theirs)
            Path(bob.workdir.root, "dir").symlink_to(theirs.parent)
            for path in (theirs, "../ada/n.txt", "link.txt", "dir/n.txt", log, "~/../ada/n.txt"):
                for tool, more in (
                    ("Read", {}),
                    ("Edit", {"old_string": "Ada", "new_string": "Bob"}),
                    ("Write", {"content": "Bob\n"}),
                    ("Grep", {"pattern": "Ada"}),
                ):
                    named = {"path" if tool == "Grep" else "file_path": str(path)}
                    result = await bob.call(tool, {**named, **more})
                    assert not result.ok, (tool, path)
                    assert "was here" not in result.text
            found = await bob.call("Grep", pattern="Ada", output_mode="content")
            assert "was here" not in found.text
            assert (await bob.undo()).code == "undo.nothing"
            assert bob.history() == []
    assert theirs.read_text() == "Ada was here.\n"


@needs_sandbox
@pytest.mark.proves("SS-5")
async def test_no_command_reaches_another_user_or_the_host(host):
    async with opened(host, "ada") as ada, opened(host, "bob") as bob:
        await ada.call("Write", file_path="n.txt", content="Ada was here.\n")
        job = await ada.call(
            "Bash", command="echo Ada in the background; sleep 60", run_in_background=True
        )
        mine = job.data["backgroundTaskId"]
        other, data = ada.workdir.root, host / "data"
        program = f"""
import os, pathlib
for place in ({other!r}, {str(data)!r}, {str(host / "host")!r}, os.path.dirname({other!r})):
    for path in pathlib.Path(place).rglob("*"):
        print("SEEN", path)
        try: print(path.read_text())
        except OSError: pass
    try: pathlib.Path(place, "x").write_text("x")
    except OSError: pass
print(dict(os.environ))
"""
        Path(bob.workdir.root, "look.py").write_text(program)
        looked = await bob.call(
            "Bash", command="/usr/bin/env python3 look.py; cat /proc/*/environ | tr '\\0' '\\n'"
        )
        assert "team-of-bob" in looked.text
        for leak in ("was here", "leak", "team-of-ada", "HOST-", *SECRETS.values()):
            assert leak not in looked.text, looked.text
        assert [
            line
            for line in looked.text.splitlines()
            if line.startswith("SEEN /") and "/bob" not in line
        ] == []
        assert not Path(other, "x").exists()
        for tool, named in (("TaskOutput", "task_id"), ("TaskStop", "task_id")):
            refused = await bob.call(tool, {named: mine})
            assert refused.code == "task.unknown"
        assert bob.jobs.listed() == []
        assert Path(bob.workdir.root) == Path(
            (await bob.call("Bash", command="cd ~ && pwd -P")).data["stdout"].strip()
        )


@pytest.mark.proves("SS-5")
async def test_users_have_their_own_sessions(host):
    async with (
        opened(host, "ada", session_id="s") as ada,
        opened(host, "bob", session_id="s") as bob,
    ):
        for session in (ada, bob):
            await session.call("Glob", pattern="*")
    listed = {
        user: handaxe.sessions(host / "users" / user, home=host / "data" / user)
        for user in ("ada", "bob")
    }
    assert {user: [one.id for one in found] for user, found in listed.items()} == {
        "ada": ["s"], "bob": ["s"],
    }  # fmt: skip
    with pytest.raises(SessionElsewhere) as refused:
        opened(host, "bob", home=host / "data" / "ada", session_id="s")
    assert refused.value.code == "session.other_root"


async def test_nothing_of_the_hosts_home_reaches_the_model(host, tmp_path):
    (tmp_path / "turns.toml").write_text('[[turn]]\ntext = "Hello."\n')
    async with opened(host, "ada") as session:
        agent = Agent(f"scripted:{tmp_path / 'turns.toml'}", session)
        await agent.ask("Hello?")
        told = f"{agent.system_prompt()} {agent.messages} {session.tools()} {session.warnings}"
        assert "HOST-" not in told
        assert session.settings.permissions.allow == ()
        assert "FROM_HOST" not in session.settings.env


BREAKS = {
    "no home": {"home": None},
    "home in the root": {"home": "users/ada/data"},
    "root in the home": {"home": "users"},
    "settings of the host": {"setting_sources": ["user"]},
    "no sandbox": {"settings": {"sandbox": {"enabled": False}}},
    "a weak sandbox": {"settings": {"sandbox": {"failIfUnavailable": False}}},
    "commands outside": {"settings": {"sandbox": {"excludedCommands": ["git:*"]}}},
    "commands that ask to leave": {"settings": {"sandbox": {"allowUnsandboxedCommands": True}}},
    "open files": {"settings": {"sandbox": {"filesystem": {"disabled": True}}}},
    "reading everything": {"settings": {"sandbox": {"autoAllowBashIfSandboxed": False}}},
}


@pytest.mark.parametrize("what", BREAKS)
def test_an_argument_that_breaks_the_profile_is_refused(host, monkeypatch, what):
    monkeypatch.chdir(host)
    with pytest.raises(ProfileNotMet) as refused:
        opened(host, "ada", **BREAKS[what])
    assert refused.value.code == "session.profile"


async def test_limits_of_the_profile_can_be_changed_and_an_unknown_one_is_refused(host):
    async with opened(host, "ada", settings={"shell": {"max_background": 3}}) as session:
        assert session.settings.shell.max_background == 3
        assert session.settings.max_parallel_calls == 4
        assert session.settings.env["HOME"] == session.workdir.root
    with pytest.raises(SetupError, match="many-users"):
        opened(host, "ada", profile="few-users")
