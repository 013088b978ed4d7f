"""Nothing of a command outlives it, whatever it does to stay."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.expected_types import require
from tests.holding import open_descriptors
from tests.waiting import HANG_S, blocked_until

import handaxe
from handaxe.contract.faults.shell import CannotStart
from handaxe.process.worker_pool import WORKERS

# A process that stays until it is ended, recognisable by its last argument.
STAY = "python3 -I -S -c 'import time; time.sleep(600)' {mark}"
DEAF = "python3 -I -S -c 'import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(600)' {mark}"
DAEMON = """python3 -I -S -c '
import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for fd in (0, 1, 2): os.close(fd)
time.sleep(600)' {mark}"""
HOPPER = """python3 -I -S -c '
import os
if os.fork(): os._exit(0)
while True:
    if os.fork(): os._exit(0)
    os.setsid()' {mark}"""

LEAVERS = {
    "a_background_job": STAY + " & echo on",
    "a_job_that_is_disowned": STAY + " & disown; echo on",
    "nohup": "nohup " + STAY + " >/dev/null 2>&1 & echo on",
    "a_session_of_its_own": "setsid " + STAY + " & echo on",
    "a_forked_session": "setsid -f " + STAY + " ; echo on",
    "a_daemon": DAEMON + "; echo on",
    "a_subshell_in_the_background": "( ( " + STAY + " & ) & ) ; echo on",
    "one_that_ignores_signals": DEAF + " & sleep 0.2; echo on",
    "a_deaf_one_in_its_own_session": "setsid -f " + DEAF + "; sleep 0.2; echo on",
    "a_group_of_its_own": "set -m; " + STAY + " & echo on",
    "a_coprocess": "coproc " + STAY + "; echo on >&2",
    "a_pipeline_in_the_background": STAY + " | " + STAY + " & echo on",
    "a_process_substitution": "echo on; : < <(" + STAY + ")",
    "a_stopped_process": STAY + " & kill -STOP $!; echo on",
    "one_without_environment": "env -i setsid -f /usr/bin/env " + STAY + "; echo on",
    "one_that_hops_from_process_to_process": HOPPER + "; sleep 0.1; echo on",
    "one_with_closed_output": STAY + " >&- 2>&- & echo on",
    "one_that_holds_the_output": "exec 7>&1; " + STAY + " >/dev/null 2>&1 & echo on",
    "one_left_by_exec": STAY + " & exec echo on",
    "one_left_by_a_killed_shell": STAY + " & echo on; kill -9 $$",
    "eight_busy_deaf_ones": "for i in 1 2 3 4 5 6 7 8; do (trap '' TERM; while :; do :; done; : {mark}) & done; echo on",
}


@pytest.mark.proves("SH-4")
@pytest.mark.parametrize("text", LEAVERS.values(), ids=LEAVERS)
async def test_nothing_is_left_when_the_shell_has_ended(bench, mark, living, text):
    running = await bench.start(text.format(mark=mark))
    assert await running.wait(HANG_S)
    assert living(mark) == []
    assert "on" in running.output(1000).head
    assert running.end.survivors >= 1


@pytest.mark.proves("SH-4")
@pytest.mark.parametrize("text", LEAVERS.values(), ids=LEAVERS)
async def test_nothing_is_left_when_a_command_is_stopped(bench, mark, living, text):
    running = await bench.start(f"{text.format(mark=mark)}; sleep 600")
    heard = asyncio.Event()
    running.follow(lambda piece: heard.set())
    async with asyncio.timeout(HANG_S):
        while not (running.output(100).head or running.end or heard.is_set()):
            await asyncio.wait([asyncio.create_task(heard.wait())], timeout=0.1)
        await running.stop()
    assert living(mark) == []
    assert running.end.how in {"stopped", "exit", "signal"}


async def test_what_ends_soon_by_itself_may_finish(bench):
    running = await bench.run("echo first > >(cat; echo last)")
    assert running.output(100).head == "first\nlast\n"
    assert running.end.survivors == 0


@pytest.mark.proves("SH-4")
async def test_stopping_does_not_wait_for_the_command(bench, mark, living):
    running = await bench.start(STAY.format(mark=mark))
    await running.stop()
    assert living(mark) == []
    assert (running.end.how, running.state.status) == ("stopped", "killed")


@pytest.mark.proves("SH-4")
async def test_a_start_that_is_cancelled_leaves_nothing(bench, mark, living):
    for delay_s in (0, 0.001, 0.003):
        task = asyncio.create_task(bench.start(STAY.format(mark=mark)))
        await asyncio.sleep(delay_s)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            await task.result().stop()
    await bench.shell.close()
    assert living(mark) == []


@pytest.mark.proves("SH-4")
async def test_closing_one_shell_leaves_the_commands_of_another(bench, mark, living):
    other = bench.another()
    await bench.start(DEAF.format(mark=mark))
    stays = await bench.start("sleep 600", shell=other)
    stays.let_go()
    await bench.shell.close()
    assert living(mark) == []
    assert stays.end is None
    await other.close()
    assert stays.end is not None


async def test_a_fork_storm_is_ended(bench, mark, living):
    storm = f"f() {{ [ $1 -gt 7 ] && exec {STAY.format(mark=mark)}; f $(($1+1)) & f $(($1+1)) & wait; }}; f 1 & echo on; sleep 600"
    running = await bench.start(storm)
    await asyncio.sleep(0.3)
    await running.stop()
    assert living(mark) == []


@pytest.mark.parametrize(
    "attack",
    [
        "kill -KILL $PPID",
        "kill -STOP $PPID",
        "kill -TERM $PPID; kill -HUP $PPID; kill -INT $PPID",
        "S=$(cut -d' ' -f4 /proc/$PPID/stat); kill -STOP $S $PPID",
        "S=$(cut -d' ' -f4 /proc/$PPID/stat); kill -KILL $S $PPID",
    ],
)
async def test_a_command_that_attacks_its_keepers_is_ended_all_the_same(
    bench, mark, living, attack
):
    running = await bench.start(f"{attack}; {DEAF.format(mark=mark)}")
    await running.wait(0.3)
    async with asyncio.timeout(HANG_S):
        await running.stop()
    assert living(mark) == []
    # And the next command finds somebody to run it.
    assert await bench.said("echo fine") == "fine\n"


ROOT = Path(handaxe.__file__).parent.parent
HOST = """
import asyncio, os, sys
from pathlib import Path
from handaxe.contract.ports.shell import ShellCommand
from handaxe.shell.exec.environment.command_environment import EnvironmentFilter
from handaxe.shell.exec.local_shell import LocalShell

async def main():
    shell = LocalShell(Path(sys.argv[1]), environment=EnvironmentFilter().environment(os.environ))
    for text in sys.argv[2:]:
        running = await shell.start(ShellCommand(call_id="c", command=text, cwd="/"))
        running.let_go()
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def host(directory: Path, *texts: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOST, str(directory), *texts], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.proves("SH-4")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_host_dies(tmp_path, mark, living, number):
    texts = [
        f"{LEAVERS[name].format(mark=mark)}; sleep 600"
        for name in ("a_daemon", "a_deaf_one_in_its_own_session", "nohup", "a_stopped_process")
    ]
    process = host(tmp_path, *texts, DEAF.format(mark=mark))
    try:
        # They have to be there for their end to mean something.
        blocked_until(lambda: len(living(mark)) >= 6)
    finally:
        process.send_signal(number)
        process.wait(HANG_S)
        require(process.stdout).close()
    # The host itself has the word in its arguments and is gone by now.
    blocked_until(lambda: not living(mark))
    supervisor = (
        f"supervisor import main\nmain(int(sys.argv[2]), sys.argv[3])\n\0{ROOT}\0{process.pid}\0"
    )
    blocked_until(lambda: not living(supervisor))


def test_nothing_is_left_when_a_host_dies_whose_child_holds_its_descriptors(tmp_path, mark, living):
    fork = "child = os.fork()\n    if not child: __import__('time').sleep(60); os._exit(0)\n    "
    source = HOST.replace('print("ready"', f'{fork}print(child, flush=True); print("ready"')
    process = subprocess.Popen(
        [sys.executable, "-c", source, str(tmp_path), DEAF.format(mark=mark)],
        stdout=subprocess.PIPE,
    )
    child = int(require(process.stdout).readline())
    try:
        assert require(process.stdout).readline() == b"ready\n"
        process.kill()
        process.wait(HANG_S)
        # The child is a copy of the host and has its arguments.
        blocked_until(lambda: len(living(mark)) == 1)
        assert living(mark)[0].startswith(f"{child} ")
    finally:
        os.kill(child, signal.SIGKILL)
        require(process.stdout).close()


async def test_no_zombies_and_no_descriptors_stay(bench):
    await bench.run("true")
    before = open_descriptors()
    for number in range(150):
        running = await bench.run(f"echo {number}; exit {number % 7}")
        assert running.end.exit_code == number % 7
        assert running.output(100).head == f"{number}\n"
    assert open_descriptors() <= before
    assert zombies() == []


async def test_a_supervisor_that_was_let_go_is_no_zombie_for_long(bench):
    await bench.run("true")
    former = WORKERS.supervisor_pid
    WORKERS.shut_down()
    # A new one is there before the former has ended: nobody could reap it at that time.
    await bench.run("true")
    blocked_until(lambda: not is_running(former))
    await bench.run("true")
    assert zombies() == []


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def zombies() -> list[str]:
    """Every ended process that waits for this one or for the supervisor to take note of it."""
    parents = {str(os.getpid()), str(WORKERS.supervisor_pid)}
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *_ = status.read_text().rpartition(")")[2].split()
            if state == "Z" and parent in parents:
                found.append(status.read_text())
    return found


@pytest.mark.proves("SH-1")
async def test_a_command_inherits_nothing(bench):
    with open(os.devnull) as kept:
        os.set_inheritable(kept.fileno(), True)
        WORKERS.shut_down()
        listed = await bench.said("ls /proc/self/fd; cat /proc/self/stat | cut -d' ' -f6; echo $$")
    *fds, session, shell = listed.split()
    # Its three, and what ls itself opens.
    assert sorted(map(int, fds)) == [0, 1, 2, 3]
    assert session == shell
    assert await bench.said("readlink /proc/self/fd/0") == "/dev/null\n"


async def test_two_hundred_commands_run_side_by_side(bench):
    said = await asyncio.gather(*(bench.said(f"sleep 0.2; echo {n}") for n in range(200)))
    assert said == [f"{n}\n" for n in range(200)]


async def test_a_supervisor_that_cannot_come_up_is_told(bench, monkeypatch):
    WORKERS.shut_down()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(CannotStart):
        await bench.start("true")
    monkeypatch.undo()
    assert await bench.said("echo again") == "again\n"


async def test_a_host_without_room_for_a_descriptor_is_told(bench):
    await bench.run("true")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 4, hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        with pytest.raises(CannotStart, match="ulimit -n"):
            await bench.start("true")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)
    assert await bench.said("echo again") == "again\n"


async def test_no_descriptor_of_ours_reaches_programs(bench):
    """Neither where bash says its directory, nor the text of a command too long for an argument."""
    listing = "cd /usr; ls /proc/self/fd; cat <(ls /proc/self/fd) | sort -u; (ls /proc/self/fd)"
    for text in (listing, f"{listing}; : {'x' * 140_000}"):
        running = await bench.run(text, cwd="/")
        assert running.output(1000).head.split() == ["0", "1", "2", "3"] * 3
        assert running.end.cwd == "/usr"


@pytest.mark.parametrize("limit", [250, 64])
def test_commands_run_where_few_files_may_be_open(limit, tmp_path):
    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    program = (
        "import asyncio, handaxe\n"
        "async def main():\n"
        "    async with handaxe.Session('.', permission_mode='bypassPermissions') as session:\n"
        "        for text in ('mkdir -p a && cd a; echo ok', 'pwd; ls /proc/self/fd'):\n"
        "            print((await session.call('Bash', command=text)).text.partition('[')[0])\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lower,
        timeout=HANG_S,
    )
    assert ran.stdout.split() == ["ok", f"{tmp_path}/a", "0", "1", "2", "3"], ran


async def test_commands_run_where_the_host_holds_many_files(bench, tmp_path):
    held = [os.open(tmp_path, os.O_RDONLY) for _ in range(300)]
    try:
        running = await bench.run("cd /usr; ls", cwd="/")
        assert running.end.cwd == "/usr"
    finally:
        for fd in held:
            os.close(fd)
