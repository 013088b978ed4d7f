"""The environment of commands is the one the user has: per directory, and as it is now.

Real direnv and mise take part where they are installed; small stand-ins do anywhere.
"""

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import msgspec
import pytest

from handaxe import Session
from handaxe.shell.sandbox.backend import find_backend

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

    def begin_in(self, where: str) -> None:
        """Start handaxe from a prompt in that directory."""
        user = self._user
        if self.name == "direnv":
            user.has(**json.loads(user.runs("direnv", "export", "json", where=where)))
            return
        word, place = user.runs("sh", "-c", "grep WORD mise.toml", where=where), where
        value = word.split('"')[1]
        added = f"{user.project}/{place}/bin"
        diff = {"old": {}, "new": {"WORD": value}, "path": [added]}
        noted = base64.b64encode(zlib.compress(msgspec.msgpack.encode(diff))).decode()
        user.has(WORD=value, PATH=f"{added}:{os.environ['PATH']}", __MISE_DIFF=noted.rstrip("="))


@pytest.fixture
def user(tmp_path, monkeypatch):
    return User(tmp_path, monkeypatch)


KINDS = {
    f"{name}-{'real' if program else 'stand-in'}": (name, program)
    for name in ("direnv", "mise")
    for program in (None, shutil.which(name))
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
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
async def test_a_directory_has_its_variables_and_leaving_takes_them_back(user, activator):
    activator.says("one", "first")
    activator.says("two", "second")
    user.installs("tool", "echo version one", user.project / "one" / "bin")
    user.installs("tool", "echo version two", user.project / "two" / "bin")
    user.installs("tool", "echo the usual one")
    (user.project / "one" / "deep").mkdir()
    (user.project / "none").mkdir()
    async with user.session() as session:
        for where, expected in [
            (".", "[]\nthe usual one"),
            ("one", "[first]\nversion one"),
            ("deep", "[first]\nversion one"),
            ("../../two", "[second]\nversion two"),
            ("../none", "[]\nthe usual one"),
        ]:
            await said(session, f"cd {where}")
            assert await said(session, 'echo "[$WORD]"; tool') == expected


async def test_what_held_where_handaxe_was_started_is_taken_back_elsewhere(user, activator):
    activator.says("one", "first")
    activator.says("two", "second")
    activator.begin_in("one")
    user.installs("tool", "echo version one", user.project / "one" / "bin")
    user.installs("tool", "echo the usual one")
    async with user.session() as session:
        await said(session, "cd one")
        assert await said(session, 'echo "[$WORD]"; tool') == "[first]\nversion one"
        await said(session, "cd ../two")
        assert await said(session, 'echo "[$WORD]"; tool') == "[second]\nthe usual one"
        await said(session, "cd ..")
        assert await said(session, 'echo "[$WORD]"; tool') == "[]\nthe usual one"


@pytest.mark.parametrize("begin", [None, "direnv", "mise"])
@pytest.mark.parametrize("program", [None, shutil.which], ids=["stand-in", "installed"])
async def test_two_such_tools_do_not_take_back_what_is_the_others(user, begin, program):
    both = [Activator(user, name, program and program(name)) for name in ("direnv", "mise")]
    for activator in both:
        activator.says(activator.name, f"of {activator.name}".replace(" ", "-"))
        user.installs("tool", f"echo {activator.name}", user.project / activator.name / "bin")
        if activator.name == begin:
            activator.begin_in(begin)
    (user.project / "none").mkdir()
    user.installs("tool", "echo the usual one")
    async with user.session() as session:
        for place in ("direnv", "mise", "direnv", "none", "mise", "none"):
            await said(session, f"cd {user.project}/{place}")
            expected = "[]\nthe usual one" if place == "none" else f"[of-{place}]\n{place}"
            assert await said(session, 'echo "[$WORD]"; tool') == expected


async def test_a_file_that_is_not_allowed_is_not_run_and_that_is_told_once(user, activator):
    user.has(CI="1", MISE_YES="1")
    activator.says("one", "first", allowed=False)
    async with user.session() as session:
        await said(session, "cd one")
        note = await told(session, 'echo "[$WORD]"')
        assert f"{activator.name} does not run {user.project}/one/" in note
        assert await told(session, "true") == ""
        assert await said(session, 'echo "[$WORD]"') == "[]"
        activator.allow("one")
        assert await said(session, 'echo "[$WORD]"') == "[first]"


async def test_an_answer_holds_until_its_file_changes(user, direnv):
    user.writes("one/.envrc", "echo x >> ran\nwatch_file list\nexport WORD=$(cat list)\n")
    user.writes("one/list", "first")
    direnv.allow("one")
    async with user.session() as session:
        await said(session, "cd one")
        await asyncio.gather(*(said(session, f"echo {number}") for number in range(5)))
        assert await said(session, "echo $WORD; cat ran") == "first\nx"
        user.writes("one/list", "second")
        assert await said(session, "echo $WORD; cat ran") == "second\nx\nx"
        user.writes("one/.envrc", "export WORD=third")
        assert "does not run" in await told(session, "true")
        assert await said(session, 'echo "[$WORD]"; cat ran') == "[]\nx\nx"


@pytest.mark.parametrize("program", [None, shutil.which("direnv")], ids=["stand-in", "installed"])
async def test_a_watched_file_counts_also_where_handaxe_was_started(user, program):
    direnv = Activator(user, "direnv", program)
    user.writes("one/.envrc", "watch_file list\nexport WORD=$(cat list)\n")
    user.writes("one/list", "first")
    direnv.allow("one")
    direnv.begin_in("one")
    async with user.session() as session:
        await said(session, "cd one")
        assert await said(session, "echo $WORD") == "first"
        # direnv itself looks at whole seconds.
        os.utime(user.writes("one/list", "second"), (1, 1))
        assert await said(session, "echo $WORD") == "second"


async def test_what_is_hidden_stays_hidden_and_what_is_set_stays_set(user, direnv):
    user.writes(
        "one/.envrc",
        "export OPENAI_API_KEY=sk-1 MY_TOKEN=t-1 PAGER=less BASH_ENV=/evil HANDAXE=no OWN=no WORD=w\n",
    )
    direnv.allow("one")
    user.has(OPENAI_API_KEY="sk-0")
    direnv.begin_in("one")
    settings = {"shell": {"hidden_variables": ["*_API_KEY", "MY_*"]}, "env": {"OWN": "yes"}}
    async with user.session(**settings) as session:
        await said(session, "cd one")
        seen = dict(line.partition("=")[::2] for line in (await said(session, "env")).split("\n"))
    assert not seen.keys() & {"OPENAI_API_KEY", "MY_TOKEN", "BASH_ENV", "DIRENV_DIFF"}
    assert (seen["PAGER"], seen["HANDAXE"], seen["OWN"], seen["WORD"]) == ("cat", "1", "yes", "w")
    assert not any("sk-" in value for value in seen.values())


async def test_a_program_of_the_project_is_not_asked(user):
    (user.home / ".config" / "direnv").mkdir(parents=True)
    user.installs("direnv", f"touch {user.home}/asked", user.project / "bin")
    (user.project / "link").symlink_to(user.project / "bin")
    (user.home / "link").symlink_to(user.project / "bin")
    user.has(PATH=f"{user.project}/bin:{user.project}/link:{user.home}/link:bin:{SYSTEM}")
    user.writes(".envrc", "export WORD=x")
    async with user.session() as session:
        await said(session, "true")
    assert not (user.home / "asked").exists()


@pytest.mark.proves("SH-6")
@pytest.mark.parametrize("source", ["direnv", "inherited", "relative"])
async def test_a_name_that_leads_into_the_project_is_not_taken_for_what_it_is_elsewhere(
    user, direnv, source
):
    bin_ = user.project / "bin"
    for name in ("ls", "timeout", "mkdir"):
        user.installs(name, f"touch {user.home}/ran", bin_)
    (bin_ / "python3").symlink_to(shutil.which("python3", path=SYSTEM) or "/bin/sh")
    (bin_ / "head").symlink_to("/usr/bin/env")
    if source == "direnv":
        direnv.says(".", "x")
    else:
        own = str(bin_) if source == "inherited" else "bin"
        user.has(PATH=f"{own}:{os.environ['PATH']}")
    async with Session(user.project, permission_mode="acceptEdits") as session:
        for command in ("ls", "l's'", "/bin/cat x | ls", "timeout 5 pwd", "mkdir y", "head x"):
            result = await session.call("Bash", command=command)
            assert result.code == "permission.asked"
            assert "in the project, so it may do anything" in result.text
        assert (await session.call("Bash", command="pwd; wc -c /dev/null; python3 --version")).ok
        session.permissions.set_mode("bypassPermissions")
        assert (await session.call("Bash", command="ls")).ok
    assert (user.home / "ran").exists()
    user.has(PATH=f"{SYSTEM}:{bin_}")
    async with Session(user.project, settings={"shell": {"activation": "off"}}) as session:
        assert (await session.call("Bash", command="ls")).ok


@pytest.mark.parametrize("name", ["direnv", "mise"])
async def test_nobody_is_asked_who_does_not_use_it_or_does_not_want_it(user, name):
    user.installs(name, f"echo x >> {user.home}/asked")
    user.writes(".envrc", "export WORD=x")
    user.writes("mise.toml", "")
    async with user.session() as session:
        await said(session, "true")
    user.has(DIRENV_DIFF="x", MISE_SHELL="bash")
    async with user.session(shell={"activation": "off"}) as session:
        await said(session, "true")
        assert await told(session, "no-such-program") == ""
    assert not (user.home / "asked").exists()
    async with user.session() as session:
        await said(session, "true")
    assert (user.home / "asked").exists()


async def test_one_that_never_answers_is_done_without(user, monkeypatch):
    monkeypatch.setattr("handaxe.shell.exec.local_shell.ANSWER_S", 0.2)
    user.installs("direnv", f"echo $$ > {user.home}/pid; exec sleep 600")
    user.has(DIRENV_DIFF="x")
    async with user.session() as session:
        assert "direnv gave no answer" in await told(session, "true")
        assert await told(session, "true") == ""
        pid = int((user.home / "pid").read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("answer", ["", "[]", "{", '{"WORD": 3}', "null", "echo"])
async def test_an_answer_that_is_none_changes_nothing(user, answer):
    user.installs("direnv", f"printf %s '{answer}'")
    user.has(DIRENV_DIFF="x", WORD="mine")
    async with user.session() as session:
        assert await said(session, "echo $WORD") == "mine"


async def test_one_that_fails_is_told_with_its_reason(user, direnv):
    user.installs("direnv", "echo 'direnv: error no such stdlib' >&2; exit 1")
    user.writes(".envrc", "")
    async with user.session() as session:
        note = await told(session, "true")
    assert note == f"direnv failed in {user.project}: direnv: error no such stdlib"


async def test_a_virtualenv_nobody_activated_counts_only_where_that_is_wanted(user):
    for place in ("one/.venv", "two/.venv", "two/venv"):
        user.writes(f"{place}/pyvenv.cfg", "home = /usr/bin")
        user.installs("tool", f"echo {place}", user.project / place / "bin")
    user.installs("tool", "echo the usual one")
    async with user.session() as session:
        assert await said(session, "cd one") == ""
        assert await said(session, "tool") == "the usual one"
    async with user.session(shell={"activation": "virtualenv"}) as session:
        assert await said(session, "tool; cd one") == "the usual one"
        assert await said(session, "tool; echo $VIRTUAL_ENV; cd ../two") == (
            f"one/.venv\n{user.project}/one/.venv"
        )
        assert await said(session, "tool") == "the usual one"
    user.has(VIRTUAL_ENV="/somewhere")
    async with user.session(shell={"activation": "virtualenv"}) as session:
        assert await said(session, "cd one") == ""
        assert await said(session, "tool") == "the usual one"


async def test_functions_of_the_users_shell_and_the_path_of_a_directory_go_together(user, direnv):
    (user.home / ".bashrc").write_text(
        'export PATH="$PATH:$HOME/more"\ngreet() { echo hello; }\nalias tell=tool\n'
    )
    user.installs("extra", "echo extra", user.home / "more")
    user.installs("tool", "echo version one", user.project / "one" / "bin")
    user.installs("tool", "echo the usual one")
    direnv.says("one", "first")
    async with user.session(shell={"snapshot": True}) as session:
        assert await said(session, "greet; extra; tell; cd one") == ("hello\nextra\nthe usual one")
        assert await said(session, "greet; extra; tell") == "hello\nextra\nversion one"


@pytest.fixture
def roomy_user(monkeypatch):
    """One whose home a sandbox shows; it has a `/tmp` of its own."""
    top = Path(tempfile.mkdtemp(prefix="handaxe-environment-", dir="/var/tmp"))
    yield User(top, monkeypatch)
    shutil.rmtree(top)


@pytest.mark.proves("SH-7")
@pytest.mark.skipif(find_backend().name == "none", reason="nothing can be confined here")
async def test_what_a_directory_runs_is_confined_as_its_commands_are(roomy_user):
    user = roomy_user
    stand_in = user.home / "stand_ins.py"
    shutil.copy(STAND_INS, stand_in)
    shutil.copytree(Path(msgspec.__file__).parent, user.home / "msgspec")
    direnv = Activator(user, "direnv", None)
    # What lies below /tmp, perhaps all of this checkout, is not seen inside.
    python = os.path.realpath(sys.executable)
    user.installs("direnv", f'exec {python} {stand_in} direnv "$@"')
    user.writes("one/.envrc", 'touch "$HOME/outside"; touch inside; export WORD=first\n')
    direnv.allow("one")
    (user.home / ".bashrc").write_text('PATH="$PATH:$HOME/more"; touch "$HOME/outside"\n')
    user.installs("extra", "echo extra", user.home / "more")
    shown = {"allowRead": ["~", sys.base_prefix]}
    async with user.session(sandbox={"enabled": True, "filesystem": shown}) as session:
        await said(session, "cd one")
        assert await said(session, "echo $WORD; ls") == "first\ninside"
        assert "commands find it there from now on" in await told(session, "extra")
        assert await said(session, "extra") == "extra"
    assert not (user.home / "outside").exists()


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
    monkeypatch.setattr("handaxe.shell.exec.local_shell.ANSWER_S", 0.2)
    (user.home / ".profile").write_text("sleep 600\n")
    async with user.session() as session:
        assert "is neither in PATH" in await told(session, "nothing-a")
    user.has(SHELL=str(user.installs("nologin", f"touch {user.home}/asked")))
    async with user.session() as session:
        assert "is neither in PATH" in await told(session, "nothing-a")
    assert not (user.home / "asked").exists()
