"""Hooks' programs and servers on this machine: fed, limited, ended, and never left behind."""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager, suppress

import pytest
from tests.holding import open_descriptors
from tests.waiting import HANG_S, blocked_until, is_alive, number_in, until

from handaxe.contract.ports.hooks import HookCommand, HookRequest, HookUnreachable
from handaxe.hooks import command_process
from handaxe.hooks.command_process import MAX_STDERR_BYTES, MAX_STDOUT_BYTES
from handaxe.hooks.local_runner import LocalHookPrograms
from handaxe.process import process_tags
from handaxe.process.child_environment import clean_environment


@pytest.fixture
async def programs():
    opened = LocalHookPrograms()
    yield opened
    await opened.close()


def command(line, *, cwd, timeout_s=20.0, **more):
    return HookCommand(command=line, cwd=str(cwd), timeout_s=timeout_s, **more)


async def gone(pid: int) -> bool:
    return await until(lambda: not is_alive(pid))


@pytest.mark.proves("HK-1")
async def test_a_program_gets_the_event_on_stdin_and_is_heard_on_both_outputs(programs, tmp_path):
    end = await programs.run(
        command("cat; echo problem >&2; pwd; exit 3", cwd=tmp_path), b"hello\n"
    )
    assert (end.exit_code, end.stderr) == (3, b"problem\n")
    assert end.stdout == f"hello\n{tmp_path}\n".encode()


async def test_with_arguments_no_shell_is_involved(programs, tmp_path):
    argv = command("printf", args=("%s|", "$HOME", "a b"), cwd=tmp_path)
    assert (await programs.run(argv, b"")).stdout == b"$HOME|a b|"


async def test_the_shell_can_be_chosen(programs, tmp_path):
    line = 'echo "${BASH_VERSION:+bash}"'
    assert (await programs.run(command(line, cwd=tmp_path, shell="bash"), b"")).stdout == b"bash\n"


async def test_a_program_that_cannot_be_started_is_no_answer(programs, tmp_path):
    with pytest.raises(HookUnreachable, match="could not be started"):
        await programs.run(command("/no/such/program", args=(), cwd=tmp_path), b"")
    with pytest.raises(HookUnreachable, match="could not be started"):
        await programs.run(command("true", cwd=tmp_path / "gone"), b"")
    with pytest.raises(HookUnreachable, match="could not be started"):
        await programs.run(command("tr\0ue", cwd=tmp_path), b"")


async def test_the_environment_holds_no_secret(programs, tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    monkeypatch.setenv("BASH_ENV", "/nowhere.sh")
    monkeypatch.setenv("LC_TIME", "C")
    line = command("env", cwd=tmp_path, env={"CLAUDE_PROJECT_DIR": "/p", "TOKEN": "named"})
    end = await programs.run(line, b"")
    names = dict(entry.split("=", 1) for entry in end.stdout.decode().splitlines())
    assert names["CLAUDE_PROJECT_DIR"] == "/p"
    assert names["TOKEN"] == "named"
    assert names["LC_TIME"] == "C"
    assert names["PATH"] == os.environ["PATH"]
    assert names.keys().isdisjoint({"ANTHROPIC_API_KEY", "LD_PRELOAD", "BASH_ENV"})


def test_only_harmless_names_are_passed_on():
    inherited = {"PATH": "/bin", "GITHUB_TOKEN": "x", "BASH_FUNC_ls%%": "()", "HTTP_PROXY": "y"}
    assert clean_environment(inherited, {"A": "1"}) == {"PATH": "/bin", "A": "1"}


async def test_a_program_inherits_no_descriptor(programs, tmp_path):
    with (tmp_path / "open").open("w") as opened:
        os.set_inheritable(opened.fileno(), True)
        end = await programs.run(command("ls /proc/self/fd", cwd=tmp_path), b"")
    # `ls` itself holds one more: the directory it lists.
    assert end.stdout.split() == [b"0", b"1", b"2", b"3"]


async def test_a_large_event_reaches_a_program_that_reads_late_or_never(programs, tmp_path):
    event = b"x" * 3_000_000
    end = await programs.run(command("sleep 0.1; wc -c", cwd=tmp_path), event)
    assert end.stdout.split() == [b"3000000"]
    end = await programs.run(command("exit 0", cwd=tmp_path, timeout_s=float("inf")), event)
    assert end.exit_code == 0


async def test_what_a_program_says_too_much_is_dropped_and_does_not_hold_it_up(programs, tmp_path):
    line = "head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2; exit 4"
    end = await programs.run(command(line, cwd=tmp_path), b"")
    assert end.exit_code == 4
    assert len(end.stdout) == MAX_STDOUT_BYTES
    assert len(end.stderr) == MAX_STDERR_BYTES


@pytest.mark.proves("HK-1")
async def test_at_the_timeout_the_whole_tree_is_ended(programs, tmp_path):
    line = (
        "sleep 600 & echo $! > child; setsid sleep 600 & echo $! > daemon; trap '' TERM; wait; wait"
    )
    with pytest.raises(HookUnreachable, match=r"did not finish within 2\.5 s") as caught:
        await programs.run(command(line, cwd=tmp_path, timeout_s=2.5), b"")
    assert caught.value.timed_out
    assert await gone(await number_in(tmp_path / "child"))
    assert await gone(await number_in(tmp_path / "daemon"))


async def test_a_program_that_ends_when_told_to_may_clean_up(programs, tmp_path):
    line = "trap 'echo bye > left; exit' TERM; sleep 600 & wait"
    with pytest.raises(HookUnreachable):
        await programs.run(command(line, cwd=tmp_path, timeout_s=2), b"")
    assert (tmp_path / "left").read_text() == "bye\n"


@pytest.mark.parametrize("few", [200, 0])
async def test_a_child_that_lives_on_does_not_hold_the_result_and_is_ended(
    programs, tmp_path, monkeypatch, few
):
    monkeypatch.setattr(process_tags, "_FEW", few)
    line = "echo said; setsid sleep 600 & echo $! > daemon; sleep 600 & echo $! > child"
    end = await programs.run(command(line, cwd=tmp_path), b"")
    assert (end.exit_code, end.stdout) == (0, b"said\n")
    assert await gone(await number_in(tmp_path / "child"))
    assert await gone(await number_in(tmp_path / "daemon"))


async def test_cancelling_ends_a_tree_that_is_deaf(programs, tmp_path):
    line = (
        "setsid sleep 600 & echo $! > daemon; trap '' TERM; echo $$ > leader; sleep 600; sleep 600"
    )
    running = asyncio.create_task(programs.run(command(line, cwd=tmp_path), b""))
    leader = await number_in(tmp_path / "leader")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await gone(leader)
    assert await gone(await number_in(tmp_path / "daemon"))


async def test_the_end_of_a_program_is_seen_without_help_of_the_system(
    programs, tmp_path, monkeypatch
):
    monkeypatch.setattr(command_process, "_open_exit_event", lambda pid: None)
    line = "cat; setsid sleep 600 & exit 3"
    end = await programs.run(command(line, cwd=tmp_path, timeout_s=1e12), b"x")
    assert (end.exit_code, end.stdout) == (3, b"x")
    with pytest.raises(HookUnreachable):
        await programs.run(command("sleep 600", cwd=tmp_path, timeout_s=0.1), b"")


async def test_closing_ends_what_still_runs(tmp_path):
    programs = LocalHookPrograms()
    running = asyncio.create_task(
        programs.run(command("echo $$ > pid; sleep 600", cwd=tmp_path), b"")
    )
    pid = await number_in(tmp_path / "pid")
    await programs.close()
    assert await gone(pid)
    assert (await running).exit_code == -9


async def test_many_programs_run_side_by_side_and_leave_nothing(programs, tmp_path):
    before = open_descriptors()
    # Each is at its end only when all are there.
    meet = 'n=$(cat); touch "$n"; until [ "$(ls | wc -l)" -eq 20 ]; do sleep 0.05; done'
    line = command(f'{meet}; printf %s "$n"', cwd=tmp_path, timeout_s=HANG_S)
    ends = await asyncio.gather(*(programs.run(line, str(n).encode()) for n in range(20)))
    assert [end.stdout for end in ends] == [str(n).encode() for n in range(20)]
    assert open_descriptors() <= before


async def test_the_event_loop_goes_on_while_a_program_runs(programs, tmp_path):
    line = command("touch on; until [ -e go ]; do sleep 0.01; done; echo went", cwd=tmp_path)
    running = asyncio.create_task(programs.run(line, b""))
    # Nobody but the loop lets the program end.
    await until((tmp_path / "on").exists)
    (tmp_path / "go").touch()
    assert (await running).stdout == b"went\n"


def test_a_forgotten_session_leaves_no_program_behind(tmp_path):
    import subprocess

    script = f"""
import asyncio, os
from handaxe.contract.ports.hooks import HookCommand
from handaxe.hooks.local_runner import LocalHookPrograms

async def main():
    programs = LocalHookPrograms()
    shell = "echo $$ > new; mv new pid; exec sleep 600"
    line = HookCommand(command=shell, cwd={str(tmp_path)!r}, timeout_s=300)
    task = asyncio.ensure_future(programs.run(line, b""))
    while not os.path.exists({str(tmp_path / "pid")!r}):
        await asyncio.sleep(0.01)
    globals().update(kept=(programs, task))
    asyncio.get_running_loop().stop()

loop = asyncio.new_event_loop()
task = loop.create_task(main())
loop.run_forever()
"""
    subprocess.run([sys.executable, "-c", script], timeout=HANG_S, check=True, capture_output=True)
    pid = int((tmp_path / "pid").read_text())
    blocked_until(lambda: not is_alive(pid))


# Servers


@asynccontextmanager
async def server(*answers: bytes, wait_s: float = 0.0):
    """A server that gives prepared answers, and the requests that it got."""
    got: list[bytes] = []
    waiting = list(answers)
    serving = set()

    async def serve(reader, writer):
        serving.add(asyncio.current_task())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            got.append(head + await reader.readexactly(size))
            await asyncio.sleep(wait_s)
            writer.write(waiting.pop(0))
            await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/hook?x=1", got
    finally:
        listening.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await listening.wait_closed()


def answer(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


@pytest.mark.proves("HK-1")
async def test_a_server_gets_the_event_as_json(programs, monkeypatch):
    monkeypatch.setenv("GIVEN", "open sesame")
    monkeypatch.setenv("HIDDEN", "secret")
    async with server(answer(b'{"a": 1}')) as (url, got):
        headers = {"Authorization": "Bearer $GIVEN", "X-Other": "${HIDDEN}|", "Host": "evil"}
        request = HookRequest(url=url, headers=headers, env_names=("GIVEN",), timeout_s=HANG_S)
        reply = await programs.post(request, b'{"event": 1}')
    assert (reply.status, json.loads(reply.body)) == (200, {"a": 1})
    head, _, body = got[0].partition(b"\r\n\r\n")
    assert body == b'{"event": 1}'
    assert head.startswith(b"POST /hook?x=1 HTTP/1.1\r\n")
    assert b"Authorization: Bearer open sesame" in head
    assert b"X-Other: |" in head
    assert b"Content-Type: application/json" in head
    assert b"evil" not in head
    assert b"secret" not in head


@pytest.mark.parametrize(
    "raw",
    [
        b'HTTP/1.1 200 OK\r\ntransfer-encoding:chunked\r\n\r\n8;x=y\r\n{"a": 1}\r\n0\r\n\r\n',
        b"HTTP/1.1 100 Continue\r\n\r\n" + answer(b'{"a": 1}'),
        b"HTTP/1.0 200 OK\r\n\r\n" + b'{"a": 1}',
    ],
    ids=["in chunks", "after a hundred", "until the end"],
)
async def test_answers_come_in_every_framing(programs, raw):
    async with server(raw) as (url, _):
        reply = await programs.post(HookRequest(url=url, timeout_s=HANG_S), b"{}")
    assert (reply.status, json.loads(reply.body)) == (200, {"a": 1})


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1_100_000,
    ],
    ids=["empty", "no http", "huge", "negative", "cut off", "bad chunk", "long head", "long body"],
)
async def test_what_is_no_answer_is_said_so(programs, raw):
    async with server(raw) as (url, _):
        with pytest.raises(HookUnreachable):
            await programs.post(HookRequest(url=url, timeout_s=HANG_S), b"{}")


async def test_redirects_are_not_followed(programs):
    async with server(answer(b"", "302 Found", "Location: http://127.0.0.1:9/\r\n")) as (url, _):
        assert (await programs.post(HookRequest(url=url, timeout_s=HANG_S), b"{}")).status == 302


async def test_a_slow_server_is_not_waited_for(programs):
    async with server(answer(b"{}"), wait_s=600) as (url, _):
        with pytest.raises(HookUnreachable, match=r"within 0\.1 s") as caught:
            await programs.post(HookRequest(url=url, timeout_s=0.1), b"{}")
    assert caught.value.timed_out


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x/", "http:///x", "http://127.0.0.1:1/"]
)
async def test_nothing_but_http_is_reached(programs, url):
    with pytest.raises(HookUnreachable):
        await programs.post(HookRequest(url=url, timeout_s=HANG_S), b"{}")


async def test_a_header_cannot_smuggle_another_one(programs, monkeypatch):
    monkeypatch.setenv("EVIL", "x\r\nX-Injected: 1")
    async with server() as (url, got):
        headers = {"X-A": "$EVIL"}
        request = HookRequest(url=url, headers=headers, env_names=("EVIL",), timeout_s=HANG_S)
        with pytest.raises(HookUnreachable):
            await programs.post(request, b"{}")
        with pytest.raises(HookUnreachable):
            await programs.post(
                HookRequest(url=url, headers={"X:\n": "1"}, timeout_s=HANG_S), b"{}"
            )
    assert got == []
