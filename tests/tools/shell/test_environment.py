"""The environment of commands: what hooks set by directory, and programs installed meanwhile.

Real direnv and mise take part where they are installed; small stand-ins do anywhere.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.shell.guide_hooks import read_guide_hooks

from handaxe import Session
from handaxe.shell.exec import local_shell

STAND_INS = Path(__file__).with_name("stand_ins.py")
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


class User:
    """Somebody with a home, programs and a project, whose terminal handaxe is started from."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.bin, self.project = top / "home", top / "bin", top / "project"
        for place in (self.home, self.bin, self.project):
            place.mkdir()
        self._monkeypatch = monkeypatch
        for name in os.environ:
            if name.startswith(("DIRENV_", "MISE_", "__MISE_", "XDG_")) or name in {
                "VIRTUAL_ENV", "CONDA_PREFIX", "CI", "GITHUB_ACTIONS",
            }:  # fmt: skip
                monkeypatch.delenv(name)
        self.has(HOME=str(self.home), PATH=f"{self.bin}:{SYSTEM}", SHELL="/bin/bash")

    def has(self, **variables: str) -> None:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def installs(self, name: str, text: str, place: Path | None = None) -> Path:
        program = (place or self.bin) / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        return program

    def writes(self, path: str, text: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def runs(self, *argv: str, where: str = ".") -> str:
        done = subprocess.run(
            argv, cwd=self.project / where, capture_output=True, text=True, check=True
        )
        return done.stdout

    def writes_settings(self, settings: dict) -> None:
        place = self.home / ".claude"
        place.mkdir(exist_ok=True)
        (place / "settings.json").write_text(json.dumps(settings))
        self.has(CLAUDE_CONFIG_DIR=str(place))

    def session(self, **settings) -> Session:
        return Session(self.project, allow=["Bash"], settings=settings)


class Activator:
    """direnv or mise, with what differs between the two."""

    def __init__(self, user: User, name: str, program: str | None) -> None:
        self.name, self._user = name, user
        if program is None:
            user.installs(name, f'exec {sys.executable} {STAND_INS} {name} "$@"')
        else:
            (user.bin / name).symlink_to(program)
        if name == "mise":
            user.has(MISE_SHELL="bash")
        else:
            (user.home / ".config" / "direnv").mkdir(parents=True)

    def says(self, where: str, value: str, *, allowed: bool = True) -> None:
        """Give a directory a value and a place for programs."""
        if self.name == "direnv":
            self._user.writes(f"{where}/.envrc", f"export WORD={value}\nPATH_add bin\n")
        else:
            self._user.writes(
                f"{where}/mise.toml", f'[env]\nWORD = "{value}"\n_.path = ["./bin"]\n'
            )
        if allowed:
            self.allow(where)

    def allow(self, where: str) -> None:
        # In continuous integration mise takes everything for trusted and writes nothing down.
        word = "allow" if self.name == "direnv" else "trust"
        self._user.runs("env", "-u", "CI", "MISE_YES=0", self.name, word, where=where)


@pytest.fixture
def user(tmp_path, monkeypatch):
    return User(tmp_path, monkeypatch)


KINDS = {
    f"{name}-{'real' if program else 'stand-in'}": (name, program)
    for name in ("direnv", "mise")
    for program in (None, shutil.which(name))
}


@pytest.fixture(params=KINDS.values(), ids=list(KINDS))
def activator(user, request):
    return Activator(user, *request.param)


@pytest.fixture
def direnv(user):
    return Activator(user, "direnv", None)


async def said(session: Session, command: str) -> str:
    result = await session.call("Bash", command=command)
    assert result.ok, result.text
    return result.data["stdout"]


async def told(session: Session, command: str) -> str:
    return (await session.call("Bash", command=command)).data["stderr"]


@pytest.mark.proves("SH-1")
async def test_the_hook_of_the_guide_gives_a_directory_its_variables(user, activator):
    activator.says(".", "top")
    activator.says("one", "first")
    activator.says("two", "second")
    user.installs("tool", "echo version one", user.project / "one" / "bin")
    user.installs("tool", "echo version two", user.project / "two" / "bin")
    user.installs("tool", "echo the usual one")
    (user.project / "one" / "deep").mkdir()
    user.writes_settings(read_guide_hooks(activator.name))
    async with user.session() as session:
        for where, expected in [
            (".", "[top]\nthe usual one"),
            ("one", "[first]\nversion one"),
            ("deep", "[first]\nversion one"),
            ("../../two", "[second]\nversion two"),
            ("..", "[top]\nthe usual one"),
        ]:
            await said(session, f"cd {where}")
            assert await said(session, 'echo "[$WORD]"; tool') == expected
        assert "_DIFF" not in await said(session, "env")


async def test_the_hook_of_the_guide_runs_no_file_that_is_not_allowed(user, activator):
    user.has(CI="1", MISE_YES="1")
    activator.says("one", "first", allowed=False)
    user.writes_settings(read_guide_hooks(activator.name))
    async with user.session() as session:
        await said(session, "cd one")
        assert await said(session, 'echo "[$WORD]"') == "[]"
        activator.allow("one")
        user.writes("one/.envrc", "export WORD=changed\n")
        user.writes("one/mise.toml", '[env]\nWORD = "changed"\n')
        if activator.name == "direnv":
            assert await said(session, 'echo "[$WORD]"') == "[]"
            activator.allow("one")
            os.utime(user.project / "one/.envrc", (1, 1))
        assert await said(session, 'echo "[$WORD]"') == "[changed]"


async def test_the_hook_of_the_guide_activates_a_virtualenv(user):
    user.writes(".venv/pyvenv.cfg", "home = /usr/bin")
    user.installs("tool", "echo its own", user.project / ".venv/bin")
    user.installs("tool", "echo the usual one")
    async with user.session() as session:
        assert await said(session, 'tool; echo "[$VIRTUAL_ENV]"') == "the usual one\n[]"
    user.writes_settings(read_guide_hooks("venv"))
    async with user.session() as session:
        assert await said(session, 'tool; echo "[$VIRTUAL_ENV]"') == (
            f"its own\n[{user.project}/.venv]"
        )


@pytest.mark.proves("SH-6")
@pytest.mark.parametrize("source", ["hook", "inherited", "relative"])
async def test_a_name_that_leads_into_the_project_is_not_taken_for_what_it_is_elsewhere(
    user, direnv, source
):
    bin_ = user.project / "bin"
    for name in ("ls", "timeout", "mkdir"):
        user.installs(name, f"touch {user.home}/ran", bin_)
    (bin_ / "python3").symlink_to(shutil.which("python3", path=SYSTEM) or "/bin/sh")
    (bin_ / "head").symlink_to("/usr/bin/env")
    if source == "hook":
        direnv.says(".", "x")
        user.writes_settings(read_guide_hooks("direnv"))
    else:
        own = str(bin_) if source == "inherited" else "bin"
        user.has(PATH=f"{own}:{os.environ['PATH']}")
    async with Session(user.project, permission_mode="acceptEdits") as session:
        for command in ("ls", "l's'", "/bin/cat x | ls", "timeout 5 pwd", "mkdir y", "head x"):
            result = await session.call("Bash", command=command)
            assert result.code == "permission.asked"
            assert "in the project, so its effects are unknown" in result.text
        assert (await session.call("Bash", command="pwd; wc -c /dev/null; python3 --version")).ok
        session.permissions.set_mode("bypassPermissions")
        assert (await session.call("Bash", command="ls")).ok
    assert (user.home / "ran").exists()
    user.has(PATH=f"{SYSTEM}:{bin_}")
    user.writes_settings({})
    async with Session(user.project) as session:
        assert (await session.call("Bash", command="ls")).ok


async def test_the_login_shell_is_not_asked_where_that_is_off(user):
    (user.home / ".profile").write_text(f"touch {user.home}/asked\n")
    async with user.session(shell={"activation": "off"}) as session:
        assert await told(session, "no-such-program") == ""
    assert not (user.home / "asked").exists()


async def test_functions_of_the_users_shell_and_the_path_of_a_directory_go_together(user, direnv):
    (user.home / ".bashrc").write_text("greet() { echo hello; }\nalias tell=tool\n")
    user.installs("tool", "echo version one", user.project / "one" / "bin")
    user.installs("tool", "echo the usual one")
    direnv.says("one", "first")
    user.writes_settings(read_guide_hooks("direnv"))
    async with user.session(shell={"snapshot": True}) as session:
        assert await said(session, "greet; tell; cd one") == "hello\nthe usual one"
        assert await said(session, "greet; tell") == "hello\nversion one"


@pytest.mark.proves("SH-1")
@pytest.mark.parametrize("shell_file", [".bashrc", ".profile"])
async def test_a_program_installed_meanwhile_is_found_the_next_time(user, shell_file):
    async with user.session() as session:
        result = await session.call("Bash", command="fresh --version")
        assert result.data["exitCode"] == 127
        assert f"`fresh` is neither in PATH nor in that of the login shell: {user.bin}, /usr" in (
            result.text
        )
    (user.home / shell_file).write_text('echo noise; PATH="$HOME/new:/usr/bin:$HOME/bad"\n')
    user.installs("fresh", "echo fresh 1.0", user.home / "new")
    user.installs("ls", "echo not the one from before", user.home / "new")
    async with user.session() as session:
        result = await session.call("Bash", command="true && fresh --version")
        assert result.text.count("fresh 1.0") == 0
        assert f"`fresh` is in {user.home}/new" in result.data["stderr"]
        assert await said(session, "fresh --version; ls -d .") == "fresh 1.0\n."


async def test_the_login_shell_is_asked_once_for_a_while(user):
    (user.home / ".profile").write_text(f"echo x >> {user.home}/asked\n")
    async with user.session() as session:
        for command in (
            "nothing-a",
            "sh -c nothing-b",
            "env nothing-c",
            "ls; nothing-d; nothing-e",
        ):
            program = command.rpartition(" ")[2]
            assert f"`{program}` is neither in PATH" in await told(session, command)
        for command in ("exit 127", "PATH=/nowhere; ls", "./nothing-f", "/nothing/g"):
            result = await session.call("Bash", command=command)
            assert result.data["exitCode"] == 127
            assert result.data["stderr"] == ""
    assert (user.home / "asked").read_text() == "x\n"


async def test_a_login_shell_that_hangs_or_is_none_costs_only_the_second_look(user, monkeypatch):
    monkeypatch.setattr(local_shell, "ANSWER_S", 0.2)
    (user.home / ".profile").write_text("sleep 600\n")
    async with user.session() as session:
        assert "is neither in PATH" in await told(session, "nothing-a")
    user.has(SHELL=str(user.installs("nologin", f"touch {user.home}/asked")))
    async with user.session() as session:
        assert "is neither in PATH" in await told(session, "nothing-a")
    assert not (user.home / "asked").exists()
