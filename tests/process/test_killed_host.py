"""A host that is killed takes with it what it started without the shell: hooks, servers, searches."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.expected_types import require
from tests.waiting import HANG_S, blocked_until

HOST = """
import asyncio, os, sys
from handaxe.contract.ports.hooks import HookCommand
from handaxe.contract.ports.processes import ChildProgram
from handaxe.hooks.local_runner import LocalHookPrograms
from handaxe.process.child_processes import LocalProcesses
from handaxe.search.rg.rg_process import RipgrepProcess, RipgrepOutcome
from handaxe.search.rg.rg_binary import find_ripgrep
from handaxe.search.deadline import SearchDeadline

kind, top, text = sys.argv[1:]

async def main():
    if kind == "hook":
        command = HookCommand(command=text, cwd=top, timeout_s=600)
        await LocalHookPrograms().run(command, b"")
    elif kind == "server":
        argv = ("/bin/sh", "-c", text)
        await LocalProcesses().start(ChildProgram(argv=argv, cwd=top, log_path=top + "/log"))
        await asyncio.sleep(600)
    else:
        os.mkfifo(f"{top}/{text}")
        rg = find_ripgrep([])
        RipgrepProcess([rg, "x", f"{top}/{text}"], top, lambda piece: False, SearchDeadline(600), RipgrepOutcome()).go()

asyncio.run(main())
"""


@pytest.fixture
def word(tmp_path):
    """A word in the arguments of every process that a test starts."""
    return f"{os.getpid()}{abs(hash(str(tmp_path)))}"


def living(word: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (place / "stat").read_bytes().rpartition(b")")[2].split()[0]
            if state != b"Z" and word.encode() in (place / "cmdline").read_bytes():
                found.append(place.name)
    return found


SERVERS = {
    "a_hook_with_children": ("hook", "sleep 6{word} & setsid sleep 7{word} & sleep 8{word}", 4),
    "a_hook_whose_child_hides_its_mark": ("hook", "env -i sleep 6{word} & sleep 7{word}", 3),
    "a_hook_whose_child_hides_well": ("hook", "env -i setsid sleep 6{word} & sleep 7{word}", 3),
    "a_deaf_server": ("server", "trap '' TERM HUP; while :; do sleep 6{word}; done", 2),
    "a_server_in_its_own_session": ("server", "setsid sleep 6{word} & sleep 7{word}", 3),
    "a_search": ("search", "pipe{word}", 1),
}


@pytest.mark.proves("SH-4")
@pytest.mark.parametrize(("kind", "text", "count"), SERVERS.values(), ids=SERVERS)
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_nothing_is_left_when_the_host_is_killed(tmp_path, word, kind, text, count):
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, kind, str(tmp_path), text.format(word=word)],
        stdin=subprocess.DEVNULL,
    )
    try:
        # The host itself bears the word too.
        blocked_until(lambda: len(living(word)) > count)
        # A search begins before its supervisor does; alone it ends with its last file.
        blocked_until(lambda: _supervisors_of(host.pid))
    finally:
        host.send_signal(signal.SIGKILL)
        host.wait(HANG_S)
    blocked_until(lambda: not living(word), lambda: str(living(word)))


def test_a_host_that_only_ends_its_supervisor_keeps_its_children(tmp_path, word):
    source = HOST.replace(
        "        await asyncio.sleep(600)",
        "        from handaxe.process.worker_pool import WORKERS\n"
        "        WORKERS.shut_down()\n"
        "        print('down', flush=True)\n"
        "        await asyncio.sleep(600)",
    )
    host = subprocess.Popen(
        [sys.executable, "-c", source, "server", str(tmp_path), f"sleep 6{word}"],
        stdout=subprocess.PIPE,
    )
    try:
        assert require(host.stdout).readline() == b"down\n"
        blocked_until(lambda: not _supervisors_of(host.pid))
        assert len(living(word)) > 1
    finally:
        host.kill()
        host.wait(HANG_S)
        require(host.stdout).close()
        for pid in living(word):
            os.kill(int(pid), signal.SIGKILL)


def _supervisors_of(pid: int) -> list[str]:
    return living(
        f"supervisor import main\nmain(int(sys.argv[2]), sys.argv[3])\n\0{_root()}\0{pid}\0"
    )


def _root() -> str:
    return str(Path(require(sys.modules["handaxe"].__file__)).parents[1])
