"""What a command is, what it finds, how it ends."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.waiting import HANG_S, until

from handaxe.contract.faults.shell import (
    BadCommand,
    BadWorkdir,
    CannotStart,
    ShellClosed,
)
from handaxe.contract.ports.shell import ShellCommand
from handaxe.shell.exec.environment.command_environment import EnvironmentFilter
from handaxe.shell.exec.local_shell import LocalShell

TEXTS = [
    "echo hello",
    "exit 3",
    "false",
    "set -e; false; echo no",
    "exec echo replaced",
    'echo "unterminated',
    "echo 'x",
    "if true; then",
    "echo one; )",
    "cat <<E\nhere $((1+1))\nE",
    "cat <<'E'\nnever closed",
    "echo end # a comment",
    "echo 'a\\\nb' \\\n c",
    "# nothing but a comment",
    "",
    "\n\n",
    "true &",
    "sleep 0.01 & wait",
    "echo $0 $# \"$@\"",
    "echo $LINENO\necho $LINENO",
    "trap 'echo bye' EXIT; echo hi",
    "trap 'echo bye; exit 5' EXIT",
    "return 4; echo after",
    "kill -TERM $$",
    "kill -SEGV $$",
    "nosuchcommand --at-all",
    "/",
    "echo a | tee /dev/stderr | cat; exit ${PIPESTATUS[0]}",
    "coproc cat; echo x >&${COPROC[1]}; read -u ${COPROC[0]} y; echo $y; kill $COPROC_PID",
    "shopt -s extglob\necho @(x|y)",
    "x() { echo function; }; x",
    "alias e=echo; e x",
    "read x; echo \"got <$x> $?\"",
    "echo $BASH_ENV; echo ${ENV-none}; set -o | grep -c on",
    "-x", "--version", "--", "-c 'echo no'",
    "printf 'no newline'",
    "printf '\\303\\244\\n'",
    "echo ünïcödé 🪓",
    "(exit 7)",
    "eval 'exit 9'",
    "set -u; echo $undefined_name; echo after",
    "set -o pipefail; false | true",
    "set -n; echo no",
    "BASH_ARGV0=other; echo $0",
]  # fmt: skip


@pytest.mark.proves("SH-1")
@pytest.mark.parametrize("text", TEXTS)
async def test_a_command_means_what_it_means_to_a_plain_bash(bench, text):
    plain = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", "--", text, "bash"],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=bench.directory,
        env=EnvironmentFilter().environment(os.environ),
    )
    running = await bench.run(text)
    code = plain.returncode
    assert running.end.exit_code == (code if code >= 0 else 128 - code)
    assert running.output(100_000).head == plain.stdout.decode("utf-8", "replace")


@pytest.mark.proves("SH-1")
@pytest.mark.parametrize(
    ("text", "cwd"),
    [
        ("cd /usr", "/usr"),
        ("cd /usr; exit 3", "/usr"),
        ("cd /usr && false", "/usr"),
        ("set -e; cd /usr; false; cd /", "/usr"),
        ("cd /usr\necho 'open", "/usr"),
        ("(cd /usr)", None),
        ("cd /usr | cat", None),
        ("pushd /usr >/dev/null", "/usr"),
        ("set -x; cd /usr", "/usr"),
        ("exec 250>&-; cd /usr", ""),
        ("cd /usr; exec true", ""),
        ("cd /usr; trap - EXIT", ""),
        ("cd /usr; kill -9 $$", ""),
        ("echo /etc >&250", ""),
        ("mkdir -p 'a b/ü\n'; cd 'a b/ü\n'", "a b/ü\n"),
        ("mkdir real; ln -s real link; cd link", "real"),
        ("mkdir gone; cd gone; rmdir ../gone", ""),
    ],
)
async def test_where_the_shell_stood_at_its_end_is_known(bench, text, cwd):
    running = await bench.run(text)
    expected = None if cwd == "" else str(bench.directory / (cwd or ""))
    assert running.end.cwd == expected
    # Finding that out says nothing.
    assert "pwd" not in running.output(1000).head
    assert "250" not in running.output(1000).head or "250" in text


@pytest.mark.proves("SH-1")
async def test_the_environment_is_the_users_without_traps(bench, monkeypatch):
    monkeypatch.setenv("MY_VERSION_MANAGER", "here")
    monkeypatch.setenv("MY_TOKEN", "secret")
    monkeypatch.setenv("BASH_ENV", "/nonexistent/profile")
    monkeypatch.setenv("CDPATH", "/usr")
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo trapped; }")
    monkeypatch.setenv("PAGER", "less")
    shell = LocalShell(
        bench.directory,
        environment=EnvironmentFilter(["*_TOKEN"], {"MORE": "yes"}).environment(os.environ),
    )
    text = "echo $MY_VERSION_MANAGER/$MORE/$EXTRA/${MY_TOKEN-hidden}/${BASH_ENV-unset}/${CDPATH-unset}/$PAGER/$TERM/$CLAUDECODE; type -t ls"
    said = await bench.said(text, shell=shell, env={"EXTRA": "per call"})
    assert said == "here/yes/per call/hidden/unset/unset/cat/dumb/1\nfile\n"


@pytest.mark.proves("SH-1")
async def test_the_environment_does_not_carry_over(bench):
    await bench.run("export LEFT=behind; f() { :; }; export -f f")
    assert await bench.said("echo ${LEFT-nothing}; type -t f") == "nothing\n"


@pytest.mark.proves("SH-1")
@pytest.mark.parametrize(
    "text",
    [
        "cat",
        "read -p 'name? ' name; echo",
        "git init -q .; git commit --allow-empty",
        "git -c core.pager=less init -q .; git log | cat; git help git >/dev/null",
        "git ls-remote https://127.0.0.1:9/x",
        "python3 -c 'input()'",
        "python3 -c 'import getpass; getpass.getpass()'",
        ": </dev/tty",
        "tty",
        "${EDITOR} x; ${VISUAL} x; $GIT_EDITOR x",
    ],
)
async def test_nothing_waits_for_somebody_to_type(bench, text):
    running = await bench.start(text)
    assert await running.wait(HANG_S)


async def test_a_command_longer_than_an_argument_runs_too(bench):
    body = "x" * 300_000
    running = await bench.run(f"cat <<'E' | wc -c\n{body}\nE\ncd /usr; exit 6")
    assert running.output(100).head == "300001\n"
    assert (running.end.exit_code, running.end.cwd) == (6, "/usr")


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60))
def test_any_text_reaches_the_shell_unchanged(tmp_path, text):
    # Quoted, so that bash gives it back byte for byte.
    quoted = "'" + text.replace("'", "'\\''") + "'"

    async def run() -> tuple[bytes, int | None]:
        shell = LocalShell(tmp_path, environment=EnvironmentFilter().environment(os.environ))
        running = await shell.start(
            ShellCommand(call_id="c", command=f"printf %s {quoted}", cwd="/")
        )
        running.let_go()
        await running.wait()
        await shell.close()
        said = Path(running.state.output_path).read_bytes()
        return said, running.end.exit_code if running.end else None

    heard, code = asyncio.run(run())
    assert (heard, code) == (text.encode(), 0)


async def test_what_no_shell_can_run_is_refused(bench):
    with pytest.raises(BadCommand, match="NUL"):
        await bench.start("echo a\0b")
    with pytest.raises(BadCommand, match="surrogate"):
        await bench.start("echo \ud800")


async def test_a_directory_that_is_not_there_is_named(bench):
    with pytest.raises(BadWorkdir, match="nowhere"):
        await bench.start("true", cwd=str(bench.directory / "nowhere"))
    assert await bench.said("echo next") == "next\n"


async def test_an_environment_that_is_too_large_is_told(bench):
    with pytest.raises(CannotStart, match="Argument list too long"):
        await bench.start("true", env={"HUGE": "x" * 3_000_000})
    assert await bench.said("echo next") == "next\n"


async def test_a_closed_shell_starts_nothing(bench):
    await bench.shell.close()
    with pytest.raises(ShellClosed):
        await bench.start("true")


@pytest.mark.proves("SH-5")
async def test_a_command_let_go_is_announced_once_and_leaves_its_output_in_a_file(bench):
    running = await bench.start("echo one; sleep 0.05; echo two; exit 4")
    running.let_go()
    running.let_go()
    assert running.state.status == "running"
    assert await running.wait(HANG_S)
    await until(lambda: bench.ended)
    assert bench.ended == [running]
    state = running.state
    assert (state.status, state.exit_code, state.kind) == ("failed", 4, "shell")
    assert Path(state.output_path).read_text() == "one\ntwo\n"
    assert state.output_bytes == 8
    assert state.ended_at >= state.started_at


@pytest.mark.proves("SH-5")
async def test_a_command_that_ended_before_it_was_let_go_is_announced_too(bench):
    running = await bench.run("echo done")
    running.let_go()
    await asyncio.sleep(0)
    assert bench.ended == [running]
    assert Path(running.state.output_path).read_text() == "done\n"


async def test_a_command_that_is_not_let_go_is_not_announced(bench):
    await bench.run("true")
    await asyncio.sleep(0)
    assert bench.ended == []


async def test_a_wait_that_is_cancelled_leaves_the_command_and_other_waits_alone(bench):
    running = await bench.start("sleep 0.2; echo fine")
    first = asyncio.create_task(running.wait())
    second = asyncio.create_task(running.wait())
    await asyncio.sleep(0)
    first.cancel()
    assert await second is True
    assert running.end.exit_code == 0


async def test_a_wait_with_a_limit_says_that_time_was_up(bench):
    running = await bench.start("sleep 600")
    assert await running.wait(0.01) is False
    assert await running.wait(0) is False
    await running.stop()
    assert await running.wait(0) is True
    await running.stop()


@pytest.mark.proves("SH-5")
async def test_a_program_that_asks_on_a_terminal_of_its_own_is_noticed(bench):
    ask = "import pty; pty.spawn(['bash', '-c', 'echo hello; read -p \"Overwrite the file? [y/N] \" x'])"
    running = await bench.start('exec 0< <(sleep 600); python3 -c "$ASK"', env={"ASK": ask})
    line = await until(lambda: running.state.waiting_for_input)
    assert line == "Overwrite the file? [y/N]"
    await running.stop()
    assert running.state.waiting_for_input is None


@pytest.mark.proves("SH-5")
@pytest.mark.parametrize(
    ("shown", "line"), [("a screen\n", "(no prompt)"), ("-- INSERT --", "-- INSERT --")]
)
async def test_a_program_that_reads_where_it_writes_is_noticed(bench, shown, line):
    look = f"import select; print({shown!r}, end='', flush=True); select.select([0], [], [])"
    running = await bench.start('python3 -c "$LOOK" 0>&1; true', env={"LOOK": look})
    assert await until(lambda: running.state.waiting_for_input) == line


@pytest.mark.skipif(shutil.which("vim") is None, reason="needs vim")
async def test_an_editor_that_finds_no_terminal_is_noticed(bench):
    running = await bench.start("vim -n -u NONE x")
    assert await until(lambda: running.state.waiting_for_input)


async def test_a_busy_or_plainly_silent_program_does_not_wait_for_input(bench):
    busy = await bench.start("printf 'Really? '; while :; do :; done")
    silent = await bench.start("echo working; sleep 600")
    await asyncio.sleep(2.5)
    assert busy.state.waiting_for_input is None
    assert silent.state.waiting_for_input is None


async def test_ids_are_short_and_differ(bench):
    several = [await bench.run("true") for _ in range(20)]
    names = {one.state.job_id for one in several}
    assert len(names) == 20
    assert all(name.startswith("bash_") and len(name) == 11 for name in names)
    monitor = await bench.run("true", kind="monitor")
    assert monitor.state.job_id.startswith("monitor_")
