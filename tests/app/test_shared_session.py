"""One session, several holders: refused unless all ask for it, and then each call runs once."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
from tests.waiting import HANG_S, until

from handaxe import Session, ToolCall, tool
from handaxe.contract.faults import SetupError
from handaxe.contract.faults.session import SessionBusy
from handaxe.storage import session_lock as presence
from handaxe.storage.home import find_data_home
from handaxe.storage.session_lock import SessionLock, get_holders_file

pytestmark = pytest.mark.proves("SS-3")

IDS = 15
WORKS = """
import asyncio, os, sys
from pathlib import Path
from handaxe import Effects, Session, ToolCall, tool

@tool(effects=lambda args: Effects.on(args.path))
async def note(path: str) -> str:
    "Write a line."
    with open(path, "a") as file:
        file.write("x\\n")
    await asyncio.sleep(60 if "die" in sys.argv else 0)
    return "done"

async def main(project, ids):
    opened = dict(session_id="s", shared=True, tools=["Glob", note], allow=["note"])
    async with Session(project, **opened) as session:
        Path(project, f"ready-{os.getpid()}").touch()
        while not Path(project, "go").exists():
            await asyncio.sleep(0.002)
        for number in range(ids):
            path = {"path": f"{project}/ran-{number}"}
            result = await session.run(ToolCall(f"id-{number}", "note", path))
            assert result.ok or result.code == "call.result_lost", result
        await session.run(ToolCall(f"look-{os.getpid()}", "Glob", {"pattern": "*"}))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""
HOLDS = """
import sys
from handaxe import Session
session = Session(sys.argv[1], session_id="s", shared="shared" in sys.argv)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start(project):
    """Starts programs that end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(code: str, *words: str) -> subprocess.Popen[bytes]:
        one = subprocess.Popen(
            [sys.executable, "-c", code, str(project), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(one)
        return one

    yield begin
    for one in started:
        one.kill()
        one.communicate(timeout=HANG_S)


@tool
async def ask_the_time(path: str) -> str:
    """Look somewhere."""
    with open(path, "a") as file:
        file.write("ran\n")
    return "now"


@pytest.mark.parametrize("theirs", ["alone", "shared"])
async def test_a_second_holder_that_did_not_ask_for_sharing_is_refused(project, start, theirs):
    other = start(HOLDS, theirs)
    assert other.stdout.readline() == b"open\n"
    with pytest.raises(SessionBusy) as refused:
        Session(project, session_id="s")
    assert isinstance(refused.value, SetupError)
    assert refused.value.code == "session.busy"
    assert f"process {other.pid}" in refused.value.sentence
    assert "--fork-session" in refused.value.sentence
    done = subprocess.run(
        [sys.executable, "-m", "handaxe", "call", "Glob", "pattern=*", "--session-id", "s"],
        cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"process {other.pid}" in done.stderr
    other.kill()
    other.wait(HANG_S)
    async with Session(project, session_id="s") as session:
        assert (await session.call("Glob", pattern="*")).ok


async def test_sharing_needs_the_first_holder_as_well(project, start):
    other = start(HOLDS)
    assert other.stdout.readline() == b"open\n"
    with pytest.raises(SessionBusy):
        Session(project, session_id="s", shared=True)


async def test_in_one_process_a_closed_or_forgotten_session_holds_nothing(project):
    async with Session(project, session_id="s") as first:
        await first.call("Glob", pattern="*")
        with pytest.raises(SessionBusy, match="this process"):
            Session(project, session_id="s")
    async with Session(project, session_id="s"):
        pass
    Session(project, session_id="t")
    async with Session(project, session_id="t"):
        pass
    assert not presence._files


async def test_a_session_with_an_id_of_its_own_is_held_from_its_first_event(project):
    async with Session(project) as session:
        assert not get_holders_file(find_data_home()).exists()
        await session.call("Glob", pattern="*")
        with pytest.raises(SessionBusy):
            Session(project, session_id=session.id)


async def test_undo_and_history_work_beside_a_session_that_is_open(project):
    async with Session(project, session_id="s", permission_mode="acceptEdits") as session:
        assert (await session.call("Write", file_path="a.txt", content="a")).ok
        for words in (["history", "--session-id", "s"], ["undo", "--session-id", "s"]):
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-m", "handaxe", *words],
                cwd=project, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, "")
        assert not (project / "a.txt").exists()


async def test_each_call_of_three_holders_runs_once(project, start):
    working = [start(WORKS, str(IDS)) for _ in range(3)]
    await until(lambda: len([*project.glob("ready-*")]) == 3)
    (project / "go").touch()
    for one in working:
        assert await asyncio.to_thread(one.wait, HANG_S) == 0
    ran = {f"ran-{number}": (project / f"ran-{number}").read_text() for number in range(IDS)}
    assert ran == dict.fromkeys(ran, "x\n")


async def test_a_holder_gets_the_result_of_a_call_that_another_made(project):
    (project / "a.txt").write_text("hello\n")
    opened = {"session_id": "s", "shared": True}
    async with Session(project, **opened) as one, Session(project, **opened) as other:
        read = ToolCall("r", "Read", {"file_path": "a.txt"})
        made = await one.run(read)
        (project / "a.txt").write_text("changed\n")
        again = await other.run(read)
        assert again.ok
        assert again.text == made.text
        # The same id for something else is refused, whoever used it first.
        reused = await other.run(ToolCall("r", "Glob", {"pattern": "*"}))
        assert reused.code == "call.bad_input"


async def test_a_call_that_only_looks_runs_once_as_well(project, tmp_path):
    async def make(session):
        call = ToolCall("t", "ask_the_time", {"path": str(tmp_path / "ran")})
        return await session.run(call)

    opened = {"session_id": "s", "shared": True, "tools": [ask_the_time], "allow": ["ask_the_time"]}
    async with Session(project, **opened) as one, Session(project, **opened) as other:
        results = await asyncio.gather(make(one), make(other))
        assert (tmp_path / "ran").read_text() == "ran\n"
        assert [result.ok for result in results].count(True) >= 1
        assert (await make(one)).text == (await make(other)).text == "now"


async def test_a_call_of_a_holder_that_died_is_not_made_again(project, start):
    other = start(WORKS, "1", "die")
    (project / "go").touch()
    await until((project / "ran-0").exists)
    async with Session(project, session_id="s", shared=True) as session:
        for _ in range(2):
            call = ToolCall("id-0", "note", {"path": f"{project}/ran-0"})
            result = await session.run(call)
            assert result.code == "call.result_lost"
            assert "another process" in result.text
            other.kill()
            await asyncio.to_thread(other.wait, HANG_S)
    assert (project / "ran-0").read_text() == "x\n"


def test_a_place_is_held_by_many_that_share_it_or_by_one(tmp_path):
    first, second = (SessionLock(tmp_path, "s", shared=True) for _ in range(2))
    first.take()
    second.take()
    assert first.take_call("c")
    assert not second.take_call("c")
    first.release_call("c")
    assert second.take_call("c")
    first.release()
    alone = SessionLock(tmp_path, "s")
    with pytest.raises(SessionBusy):
        alone.take()
    second.release()
    alone.take()
    alone.take()
    SessionLock(tmp_path, "another", is_named=True).release()
    alone.release()
    assert not presence._files


def test_where_nothing_can_be_locked_nobody_is_kept_from_work(tmp_path):
    (tmp_path / "home").write_text("in the way")
    hold = SessionLock(tmp_path / "home", "s", is_named=True)
    hold.release()


def test_a_copy_of_the_process_holds_nothing(tmp_path):
    hold = SessionLock(tmp_path, "s", is_named=True)
    child = os.fork()
    if not child:
        busy = 0
        try:
            SessionLock(tmp_path, "s", is_named=True)
        except SessionBusy as fault:
            busy = int(f"process {os.getppid()}" in fault.sentence)
        os._exit(busy)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    hold.release()


async def test_run_takes_the_flag(project):
    lines = json.dumps({"id": "1", "tool": "Glob", "input": {"pattern": "*"}})
    async with Session(project, session_id="s", shared=True) as session:
        await session.call("Glob", pattern="*")
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "handaxe", "run", "-", "--session-id", "s", "--shared-session"],
            cwd=project, input=lines, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
