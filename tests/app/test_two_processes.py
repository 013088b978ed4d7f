"""One session opened by two processes: what the other one has under way is its own."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import HANG_S, blocked_until, until

from handaxe import Session, ToolCall
from handaxe.app.session import get_parts
from handaxe.contract.events import CallFinished, JobEnded
from handaxe.storage import event_log
from handaxe.storage.event_log import EventLog
from handaxe.storage.home import find_data_home
from handaxe.storage.session_lock import LOCK_NAME, SharedSessionLock
from handaxe.storage.sessions import LOG_NAME, read_events, read_history

pytestmark = pytest.mark.proves("SS-3")

WORKS = """
import asyncio, sys
from pathlib import Path
from handaxe import Session, ToolCall

async def main(project):
    async with Session(project, session_id="s", shared=True, allow=["Bash"]) as session:
        if "job" in sys.argv:
            await session.call("Bash", command="until [ -e go ]; do sleep 0.02; done",
                               description="d", run_in_background=True)
            Path(project, "began").touch()
            while not Path(project, "go").exists():
                await asyncio.sleep(0.02)
            await session.jobs.news(60)
        else:
            wait = "touch began; until [ -e go ]; do sleep 0.02; done; echo late"
            await session.run(ToolCall("mine", "Bash", {"command": wait, "description": "d"}))

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def other(project):
    """Starts a process that works in the session until `go` is there."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        one = subprocess.Popen([sys.executable, "-c", WORKS, str(project), *words])
        started.append(one)
        blocked_until((project / "began").exists)
        return one

    yield start
    for one in started:
        one.kill()
        one.wait(HANG_S)


def log() -> Path:
    return find_data_home() / "sessions" / "s" / LOG_NAME


def ends_of(call_id):
    events = read_events(find_data_home(), "s")
    return [e.result for e in events if isinstance(e, CallFinished) and e.call_id == call_id]


async def test_a_call_that_another_process_has_under_way_is_not_closed(project, other):
    working = other()
    async with Session(project, session_id="s", shared=True) as second:
        assert ends_of("mine") == []
        (project / "a.txt").write_text("hello\n")
        assert (await second.call("Read", file_path="a.txt")).ok
        # The very same call again is not made twice, and nobody says that it never ran.
        call = read_history(log()).calls["mine"]
        again = await second.run(ToolCall("mine", call.tool, call.input))
        assert again.code == "call.result_lost"
        assert "another process" in again.text
    (project / "go").touch()
    assert await asyncio.to_thread(working.wait, HANG_S) == 0
    (end,) = ends_of("mine")
    assert end.ok
    assert end.text.startswith("late\n")


async def test_a_call_of_a_process_that_was_killed_is_closed_once(project, other):
    working = other()
    working.send_signal(signal.SIGKILL)
    await asyncio.to_thread(working.wait, HANG_S)
    for _ in range(2):
        async with Session(project, session_id="s", shared=True):
            pass
    (end,) = ends_of("mine")
    assert end.code == "call.interrupted"


async def test_a_call_is_closed_by_whoever_comes_when_its_process_is_gone(project, other):
    working = other()
    async with Session(project, session_id="s", shared=True):
        assert ends_of("mine") == []
    working.send_signal(signal.SIGKILL)
    await asyncio.to_thread(working.wait, HANG_S)
    async with Session(project, session_id="s", shared=True):
        pass
    assert [end.code for end in ends_of("mine")] == ["call.interrupted"]


async def test_background_work_of_another_process_is_its_own(project, other):
    working = other("job")
    async with Session(project, session_id="s", shared=True) as second:
        assert second.jobs.take_notices() == ()
        assert not [e for e in read_events(find_data_home(), "s") if isinstance(e, JobEnded)]
    (project / "go").touch()
    assert await asyncio.to_thread(working.wait, HANG_S) == 0
    (end,) = [e for e in read_events(find_data_home(), "s") if isinstance(e, JobEnded)]
    assert end.job.status == "completed"


async def test_a_session_that_rests_keeps_nobody_from_closing_what_the_dead_left(
    project, other, monkeypatch
):
    monkeypatch.setattr(event_log, "IDLE_S", 0.02)
    working = other()
    async with Session(project, session_id="s", shared=True) as resting:
        await until(lambda: not get_parts(resting).recorder.log._presence.is_held)
        working.send_signal(signal.SIGKILL)
        await asyncio.to_thread(working.wait, HANG_S)
        async with Session(project, session_id="s", shared=True):
            pass
        assert [end.code for end in ends_of("mine")] == ["call.interrupted"]


async def test_whoever_has_work_under_way_does_not_rest(project, monkeypatch):
    monkeypatch.setattr(event_log, "IDLE_S", 0.01)
    async with Session(project, session_id="s", shared=True, allow=["Bash"]) as session:
        wait = "touch began; until [ -e go ]; do sleep 0.02; done"
        running = asyncio.ensure_future(session.call("Bash", command=wait, description="d"))
        await until((project / "began").exists)
        for _ in range(5):
            await asyncio.sleep(0.02)
            assert not EventLog(log()).take_over()
        (project / "go").touch()
        assert (await running).ok


def test_presence_is_shared_and_ends_with_its_holder(tmp_path):
    first, second, third = (SharedSessionLock(tmp_path) for _ in range(3))
    assert third.enter_alone()
    third.leave()
    first.enter()
    second.enter()
    assert not third.enter_alone()
    first.leave()
    assert not third.enter_alone()
    del second
    assert third.enter_alone()
    # Alone no more, and still there.
    third.enter()
    first.enter()
    assert (tmp_path / LOCK_NAME).stat().st_size == 0


def test_where_nothing_can_be_locked_one_goes_on_as_if_alone(tmp_path):
    nowhere = SharedSessionLock(tmp_path / "missing")
    nowhere.enter()
    assert not nowhere.is_held
    assert nowhere.enter_alone()
