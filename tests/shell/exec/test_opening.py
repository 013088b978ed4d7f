"""A session's shell by its settings: environment, snapshot, limits, what stays on disk."""

import os
import time
from pathlib import Path

import pytest

from handaxe.config.settings import Settings, ShellOptions
from handaxe.contract.ports.shell import ShellCommand
from handaxe.shell.exec.capture import OutputCapture
from handaxe.shell.exec.environment import shell_snapshot
from handaxe.shell.exec.environment.command_environment import UNATTENDED, EnvironmentFilter
from handaxe.shell.exec.factory import TASKS, create_shell
from handaxe.shell.exec.retention import prune_outputs


async def said(shell, text: str) -> str:
    running = await shell.start(ShellCommand(call_id="c", command=text, cwd="/"))
    assert await running.wait(30)
    return running.output(10_000).head


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bashrc").write_text(
        "echo noise\n"
        "alias greet='echo hello from an alias'\n"
        "shopt -s extglob\n"
        'shout() { case $1 in @(a|b)) echo "${1^^} $(_inner)";; esac; }\n'
        "_inner() { echo inside; }\n"
        "export PATH=$HOME/bin:$PATH\n"
        "trap 'echo rude' EXIT\n"
        "PROMPT_COMMAND='echo prompt'\n"
    )
    (home / "bin").mkdir()
    (home / "bin" / "mine").write_text("#!/bin/sh\necho my own program\n")
    (home / "bin" / "mine").chmod(0o755)
    return home


async def test_a_snapshot_brings_aliases_functions_and_path(tmp_path, home):
    shell = create_shell(
        tmp_path / "s" / "1",
        Settings(shell=ShellOptions(snapshot=True)),
        {**os.environ, "HOME": str(home)},
    )
    try:
        assert await said(shell, "greet") == "hello from an alias\n"
        assert await said(shell, "shout a; mine; cd /usr") == "A inside\nmy own program\n"
        assert await said(shell, "readlink /proc/self/fd/251; echo $HANDAXE_SNAPSHOT") == "\n"
    finally:
        await shell.close()


async def test_without_a_snapshot_start_up_files_are_not_read(tmp_path, home):
    inherited = {**os.environ, "HOME": str(home), "BASH_ENV": str(home / ".bashrc")}
    shell = create_shell(tmp_path / "s" / "1", Settings(), inherited)
    try:
        assert await said(shell, "type -t greet shout mine; true") == ""
    finally:
        await shell.close()


async def test_start_up_files_that_never_end_cost_only_the_snapshot(tmp_path, home, monkeypatch):
    monkeypatch.setattr(shell_snapshot, "CAPTURE_S", 0.3)
    (home / ".bashrc").write_text("sleep 600")
    inherited = {**os.environ, "HOME": str(home)}
    shell = create_shell(
        tmp_path / "s" / "1", Settings(shell=ShellOptions(snapshot=True)), inherited
    )
    try:
        assert await said(shell, "echo works") == "works\n"
    finally:
        await shell.close()


async def test_secrets_are_hidden_from_commands(tmp_path):
    inherited = {**os.environ, "OPENAI_API_KEY": "sk-1", "HANDAXE_X_KEY": "2", "OTHER_NAME": "3"}
    settings = Settings(env={"FROM_SETTINGS": "4"})
    shell = create_shell(tmp_path / "s" / "1", settings, inherited, more={"SESSION": "5"})
    try:
        text = "echo $OPENAI_API_KEY/$HANDAXE_X_KEY/$OTHER_NAME/$FROM_SETTINGS/$SESSION"
        assert await said(shell, text) == "//3/4/5\n"
    finally:
        await shell.close()


def test_what_keeps_programs_from_asking_holds_whatever_the_user_has_set():
    made = EnvironmentFilter().environment(
        {"PAGER": "less", "GIT_PAGER": "delta", "EDITOR": "vim", "X": "1"}
    )
    assert made == {"X": "1", **UNATTENDED}


def test_what_settings_say_wins_over_everything():
    assert EnvironmentFilter(["A"], {"A": "2"}).environment({"A": "1"})["A"] == "2"
    assert EnvironmentFilter([], {"PAGER": "mine"}).environment({})["PAGER"] == "mine"


def test_old_output_goes_first_and_recent_output_stays(tmp_path):
    now = time.time()
    for session, age_days in (("a", 40), ("b", 20), ("c", 10), ("d", 0)):
        (tmp_path / session / TASKS).mkdir(parents=True)
        path = tmp_path / session / TASKS / "bash_1.output"
        path.write_bytes(b"x" * 1000)
        (tmp_path / session / TASKS / "notes.txt").write_text("not output")
        then = now - age_days * 86_400
        os.utime(path, (then, then))

    def left() -> str:
        return "".join(sorted(p.parent.parent.name for p in tmp_path.glob("*/tasks/*.output")))

    assert prune_outputs(tmp_path, TASKS, max_bytes=10_000, max_age_s=30 * 86_400) == 1
    assert left() == "bcd"
    assert prune_outputs(tmp_path, TASKS, max_bytes=2000, max_age_s=30 * 86_400) == 1
    assert left() == "cd"
    assert prune_outputs(tmp_path, TASKS, max_bytes=0, max_age_s=0) == 1
    assert left() == "d"
    assert prune_outputs(tmp_path / "nowhere", TASKS, max_bytes=0, max_age_s=0) == 0
    assert len(list(tmp_path.glob("*/tasks/notes.txt"))) == 4


def test_the_output_of_a_command_that_goes_on_stays_however_long_it_is_silent(tmp_path):
    path = tmp_path / "a" / TASKS / "bash_1.output"
    capture = OutputCapture(str(path), 1 << 20)
    capture.open_file()
    capture.take(b"hello\n", 6)
    os.utime(path, (0, 0))
    assert prune_outputs(tmp_path, TASKS, max_bytes=0, max_age_s=0) == 0
    capture.take(b"and more\n", 9)
    capture.close()
    assert path.read_bytes() == b"hello\nand more\n"
    os.utime(path, (0, 0))
    assert prune_outputs(tmp_path, TASKS, max_bytes=0, max_age_s=0) == 1
