"""Long-lived children: talk, floods, deafness, and an end that leaves nothing."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.expected_types import expect_type
from tests.waiting import HANG_S, is_alive, until

from handaxe.contract.ports.processes import Child, ChildProgram, ProcessStartFailed
from handaxe.process import child_processes as processes
from handaxe.process.child_processes import BoundedLog, LocalChild, LocalProcesses
from handaxe.text.redact import Redactor


async def _start(tmp_path: Path, script: str, **env: str) -> Child:
    program = ChildProgram(
        argv=(sys.executable, "-c", script),
        cwd=str(tmp_path),
        env=env,
        log_path=str(tmp_path / "logs" / "child.log"),
    )
    return await LocalProcesses().start(program)


def _bearers(mark: str) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if f"TEST_MARK={mark}".encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.append(name)
            except OSError:
                continue
    return found


async def test_a_child_hears_and_answers(tmp_path):
    child = await _start(
        tmp_path, "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"
    )
    await child.write(b"hello\n")
    assert await child.read() == b"HELLO\n"
    await child.stop()
    assert child.exit_code == 0
    assert await child.read() == b""


async def test_its_environment_holds_no_secret_of_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "secret")
    child = await _start(tmp_path, "import os; print(sorted(os.environ))", WANTED="1")
    names = (await child.read()).decode()
    assert "WANTED" in names
    assert "SOME_TOKEN" not in names
    await child.stop()


async def test_a_program_that_is_not_there_cannot_be_started(tmp_path):
    program = ChildProgram(argv=("/no/such",), cwd=str(tmp_path), log_path=str(tmp_path / "l"))
    with pytest.raises(ProcessStartFailed, match="/no/such could not be started"):
        await LocalProcesses().start(program)


async def test_output_that_nobody_reads_waits_within_bounds(tmp_path):
    child = await _start(tmp_path, "import sys\nwhile True: sys.stdout.write('x' * 65536)")
    talk = expect_type(LocalChild, child)._talk
    await until(lambda: talk._waiting_bytes > 1 << 20)
    # Whatever it writes from now on stays with it.
    await asyncio.sleep(0.1)
    assert talk._waiting_bytes < 3 << 20
    await child.stop()


async def test_megabytes_on_standard_error_are_kept_within_bounds(tmp_path):
    child = await _start(
        tmp_path,
        "import sys\nfor n in range(200000): sys.stderr.write(f'line {n} of noise\\n')\nprint('done')",
    )
    assert await child.read() == b"done\n"
    await child.stop()
    logs = list((tmp_path / "logs").iterdir())
    assert sum(log.stat().st_size for log in logs) <= 2 << 20
    assert child.read_stderr_tail(100).endswith("line 199999 of noise")


@pytest.mark.proves("AR-2")
async def test_a_child_that_ignores_every_request_is_ended_with_its_children(tmp_path):
    script = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", grandchild])
subprocess.Popen([sys.executable, "-c", grandchild], start_new_session=True)
print("ready", flush=True)
time.sleep(600)
"""
    mark = os.urandom(8).hex()
    child = await _start(tmp_path, script, TEST_MARK=mark)
    assert await child.read() == b"ready\n"
    await until(lambda: len(_bearers(mark)) == 3)
    await child.stop()
    assert _bearers(mark) == []


async def test_children_of_a_child_that_ended_by_itself_are_ended_even_without_their_mark(tmp_path):
    script = """
import subprocess, sys, time
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={})
print(left.pid, flush=True)
"""
    child = await _start(tmp_path, script)
    left = int(await child.read())
    assert await child.read() == b""
    await child.stop()
    await until(lambda: not is_alive(left))


async def test_writing_to_an_ended_child_fails_at_once(tmp_path):
    child = await _start(tmp_path, "pass")
    assert await child.read() == b""
    await until(lambda: child.exit_code is not None)
    with pytest.raises(BrokenPipeError):
        await child.write(b"x")
    await child.stop()


async def test_a_deaf_child_does_not_hold_up_its_own_end(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "POLITE_S", 0.1)
    child = await _start(tmp_path, "import time; print('up', flush=True); time.sleep(600)")
    assert await child.read() == b"up\n"
    writing = asyncio.ensure_future(child.write(b"x" * 10_000_000))
    await asyncio.sleep(0.05)
    assert not writing.done()
    await child.stop()
    await asyncio.wait([writing], timeout=HANG_S)
    assert writing.done()


@pytest.mark.proves("S14")
def test_a_log_holds_no_secret_however_it_comes(tmp_path):
    secret = "ghp_Zx81kQpLm2Zx81kQpLm2"
    redactor = Redactor({"GITHUB_TOKEN": secret})
    log = BoundedLog(str(tmp_path / "a.log"), max_bytes=100, redactor=redactor)
    for _ in range(20):
        for letter in f"is {secret}\n":
            log.write(letter.encode())
    log.write(b"missing")
    assert log.read_stderr_tail(7) == "missing"
    log.close()
    for name in ("a.log", "a.log.1"):
        assert secret[:9] not in (tmp_path / name).read_text()
    assert (tmp_path / "a.log").read_text().endswith("is [redacted: GITHUB_TOKEN]\nmissing")


def test_a_log_keeps_its_newest_part(tmp_path):
    log = BoundedLog(str(tmp_path / "a.log"), max_bytes=100)
    for n in range(100):
        log.write(f"line {n}\n".encode())
    log.close()
    kept = (tmp_path / "a.log.1").read_text() + (tmp_path / "a.log").read_text()
    assert kept.endswith("line 99\n")
    assert len(kept) <= 200
    assert log.read_stderr_tail(20).splitlines() == ["line 98", "line 99"]
