"""Data and settings of handaxe are no part of any root, also where they lie below one."""

import os
import subprocess
from pathlib import Path

import pytest

from handaxe import Allow, PermissionRequest, Session
from handaxe.contract.faults import SetupError
from handaxe.shell.sandbox.backend import find_backend

TRUST = ".local/state/handaxe/handaxe-trust.json"
FORGED = '{"folders": {}}'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with everything in its usual place, and a forged copy beside it."""
    home = tmp_path / "home"
    for place in (".local/state/handaxe", ".claude", ".handaxe", "forged/state/handaxe"):
        (home / place).mkdir(parents=True, mode=0o700)
    (home / TRUST).write_text("{}")
    (home / ".claude.json").write_text('{"token": "hush-hush"}')
    (home / ".claude/settings.json").write_text("{}")
    (home / "forged/state/handaxe/handaxe-trust.json").write_text(FORGED)
    (home / "evil").write_text(FORGED)
    tree = home / "tree/.local/state/handaxe"
    tree.mkdir(parents=True)
    (tree / "other.json").write_text(FORGED)
    subprocess.run(["tar", "-cf", "evil.tar", "-C", "tree", ".local"], cwd=home, check=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("HANDAXE_HOME", "HANDAXE_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


async def yes(_: PermissionRequest) -> Allow:
    return Allow("a test says yes", "user")


def is_untouched(home: Path) -> bool:
    """Whether everything is as the test put it there."""
    data = home / ".local/state/handaxe"
    return (
        [name for name in os.listdir(data) if name.endswith("json")] == ["handaxe-trust.json"]
        and (home / TRUST).read_text() == "{}"
        and os.listdir(home / ".claude") == ["settings.json"]
        and "hush" in (home / ".claude.json").read_text()
    )


TRICKS = [
    "mv .local away && mv forged .local",
    "mv .local/state .local/old",
    "cd .local && mv state old",
    "cd .local/state && mv handaxe old",
    "mv .loc* away",
    "mv -t away .local",
    "mv --exchange forged .local",
    "mkdir away; mv .[a-z]* away",
    "rm -r .local/state",
    "rmdir .local/state",
    "cp -r tree/. .",
    "cp -rT tree .",
    "cp -r tree/.local .",
    "tar -xf evil.tar",
    "ln -sfn forged .local",
    "ln -s .local/state/handaxe way && cp evil way/handaxe-trust.json",
    f"cp evil {TRUST}",
    f"echo x > {TRUST}",
    f"cp evil {TRUST.upper()}",
    "touch .claude/other.json",
    "cp evil .claude.json",
    "touch .handaxe/settings.json",
    "chmod 777 .local/state/handaxe",
    "find .local -name handaxe -delete",
    "git init .local/state/handaxe",
    "sed -i s/a/b/ .local/state/handaxe/handaxe-trust.json",
    "patch -p0 -i fix.patch",
    "git apply p",
    "git checkout other",
    "git merge other",
    "git stash -u",
    "git read-tree -u --reset other",
    "cpio -i < evil.cpio",
    "7z x evil.7z",
    "gio move .local q",
    "ln .claude/settings.json hl; echo x > hl",
    "ln .claude/settings.json hl && sed -i s/a/b/ hl",
]


@pytest.mark.proves("PM-3")
@pytest.mark.parametrize("allow", [(), ("Bash", "Edit")])
async def test_no_command_changes_our_own_data_unasked(home, allow):
    async with Session(home, permission_mode="acceptEdits", allow=allow) as session:
        for trick in TRICKS:
            result = await session.call("Bash", command=trick)
            assert result.code == "permission.asked", (trick, result.text)
    assert is_untouched(home)


async def test_a_hard_link_is_no_way_round(home):
    os.link(home / ".claude/settings.json", home / "hl")
    os.link(home / "evil", home / "evil-too")
    async with Session(home, permission_mode="acceptEdits") as session:
        for command in ("echo x > hl", "cp evil hl", "sed -i s/a/b/ hl"):
            assert (await session.call("Bash", command=command)).code == "permission.asked"
        await session.call("Read", file_path=str(home / "hl"))
        result = await session.call("Write", file_path=str(home / "hl"), content="x")
        assert result.code == "permission.asked"
        assert (await session.call("Bash", command="echo x > evil-too")).ok
    assert is_untouched(home)


@pytest.mark.parametrize(
    "place", [".local/state/handaxe/blobs/x", ".claude/agents/a.md", ".handaxe/settings.json"]
)
async def test_no_file_tool_changes_our_own_data_unasked(home, place):
    async with Session(home, permission_mode="acceptEdits", allow=["Write", "Edit"]) as session:
        result = await session.call("Write", file_path=str(home / place), content="x")
    assert result.code == "permission.asked"


async def test_a_link_leads_no_tool_into_our_own_data(home):
    (home / "way").symlink_to(home / ".local/state/handaxe")
    async with Session(home, permission_mode="acceptEdits", allow=["Write"]) as session:
        result = await session.call("Write", file_path=str(home / "way/new.json"), content="x")
        command = await session.call("Bash", command="cp evil way/new.json")
    assert (result.code, command.code) == ("permission.asked", "permission.asked")


async def test_commands_ask_before_they_read_our_own_data(home):
    commands = [
        f"cat {TRUST}",
        "cat .claude.json",
        "grep -r hush .",
        "cat .claude*",
        "tar -cf - .local | wc -c",
        "cd .local/state/handaxe && cat handaxe-trust.json",
    ]
    async with Session(home, permission_mode="acceptEdits") as session:
        for command in commands:
            result = await session.call("Bash", command=command)
            assert result.code == "permission.asked", (command, result.text)


async def test_reading_tools_ask_and_searches_pass_by_our_own_data(home):
    async with Session(home) as session:
        read = await session.call("Read", file_path=str(home / ".claude.json"))
        grep = await session.call("Grep", pattern="hush-hush", output_mode="content")
        inside = await session.call("Grep", pattern="x", path=str(home / ".local/state/handaxe"))
        glob = await session.call("Glob", pattern="**/handaxe-trust.json")
    assert (read.code, inside.code) == ("permission.asked", "permission.asked")
    assert "hush-hush" not in grep.text
    assert ".local/state" not in glob.text


async def test_what_lies_beside_our_own_data_stays_free(home):
    async with Session(home, permission_mode="acceptEdits") as session:
        for command in ("mkdir -p .local/share/x", "cp evil copy", "mv copy .local/copy", "ls -R"):
            assert (await session.call("Bash", command=command)).ok, command


async def test_naming_a_directory_above_our_own_data_changes_nothing(home):
    """An allow rule goes on to cover programs that are told where to work."""
    async with Session(home, allow=["Bash"]) as session:
        for command in (f"cd {home}", "true .local", "ls .local", f"python3 -c pass {home}"):
            assert (await session.call("Bash", command=command)).ok, command


async def test_bypass_is_the_users_own_choice(home):
    async with Session(home, permission_mode="bypassPermissions") as session:
        assert (await session.call("Bash", command="touch .claude/other.json")).ok


@pytest.mark.parametrize("below", ["", "sessions"])
def test_no_session_works_in_the_data_directory(home, below):
    place = home / ".local/state/handaxe" / below
    place.mkdir(exist_ok=True)
    with pytest.raises(SetupError, match="data directory of handaxe"):
        Session(place)
    with pytest.raises(SetupError, match="data directory of handaxe"):
        Session(home / "tree", add_dirs=[place])


async def test_a_data_directory_in_a_project_cannot_be_exchanged(home, monkeypatch):
    """Found: one `mv` aside and another in its place forged what is trusted."""
    data = home / "work/data"
    data.mkdir(parents=True)
    monkeypatch.setenv("HANDAXE_HOME", str(data))
    async with Session(home, permission_mode="acceptEdits") as session:
        for trick in ("mv work away && mv forged work", "mv work/data x", "cd work && mv d* x"):
            assert (await session.call("Bash", command=trick)).code == "permission.asked", trick
        assert (await session.call("Bash", command="mv evil work/evil")).ok


async def test_a_skill_can_be_worked_on_where_it_lies(home):
    skill = home / ".claude/skills/mine"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("x")
    async with Session(skill, permission_mode="acceptEdits") as session:
        assert (await session.call("Read", file_path=str(skill / "SKILL.md"))).ok


needs_bubblewrap = pytest.mark.skipif(
    find_backend(()).name != "bubblewrap", reason="needs bubblewrap"
)


@needs_bubblewrap
@pytest.mark.proves("SH-7")
async def test_the_sandbox_holds_our_own_data_where_it_is(home):
    tricks = [
        "mv .local away; mv forged .local",
        "mv .local/state away; mkdir -p .local/state/handaxe; cp evil " + TRUST,
        'python3 -c \'import os; os.rename(".local", "away")\'',
        "rm -rf .local/state",
        "mv .claude away",
        "touch .claude/other.json; echo x > .claude.json",
        "ln -s .local/state/handaxe way; cp evil way/new.json",
    ]
    settings = {"sandbox": {"enabled": True}}
    async with Session(home, settings=settings, on_ask=yes) as session:
        for trick in tricks:
            result = await session.call("Bash", command=trick)
            assert not (result.code or "").startswith("permission"), (trick, result.text)
            assert is_untouched(home), trick
        for secret in (TRUST, ".claude.json"):
            result = await session.call("Bash", command=f"cat {secret}")
            assert "hush" not in result.text
            assert "{}" not in result.text


@needs_bubblewrap
async def test_the_sandbox_lets_no_settings_appear_where_there_were_none(home, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "shared"))
    forging = "mkdir -p shared; echo '{}' > shared/settings.json"
    settings = {"sandbox": {"enabled": True}}
    async with Session(home, settings=settings, on_ask=yes) as session:
        await session.call("Bash", command=forging)
    assert not (home / "shared").exists()


async def test_undo_of_a_command_in_the_home_leaves_the_key_where_it_is(home):
    async with Session(home, permission_mode="bypassPermissions") as session:
        assert (await session.call("Bash", command='python3 -c \'open("made", "w")\'')).ok
        key = (home / ".handaxe/undo-key").read_bytes()
        undone = await session.undo()
        assert undone.ok
        assert "undo-key" not in undone.text
    assert (home / ".handaxe/undo-key").read_bytes() == key
    assert not (home / "made").exists()
