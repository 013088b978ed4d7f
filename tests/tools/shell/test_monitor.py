"""Monitor: lines reach listeners and the model while something else goes on."""

from pathlib import Path

import pytest
from tests.waiting import until

from handaxe import Session
from handaxe.contract.events import JobEnded, JobSaid
from handaxe.shell.sandbox.backend import find_backend


@pytest.fixture
async def free(project):
    async with Session(project, allow=["Bash"]) as opened:
        yield opened


async def ended(session, job_id):
    await until(lambda: job_id in session.jobs._ended)


@pytest.mark.proves("BT-30", "SH-5")
async def test_every_line_is_an_event_and_is_told_to_the_model(free):
    events = []
    free.subscribe(events.append)
    result = await free.call(
        "Monitor",
        command="echo one; printf '\\033[31mtwo\\033[0m\\n'; printf three",
        description="d",
    )
    assert result.ok
    assert result.data["timeoutMs"] == 300_000
    await ended(free, result.data["taskId"])
    await until(lambda: any(isinstance(event, JobEnded) for event in events))
    assert [e.line for e in events if isinstance(e, JobSaid)] == ["one", "two", "three"]
    assert len([e for e in events if isinstance(e, JobEnded)]) == 1
    lines, end = free.jobs.take_notices()
    assert "<event>one\ntwo\nthree</event>" in lines
    assert '<summary>Monitor "d" completed (exit code 0)</summary>' in end


@pytest.mark.proves("BT-30")
async def test_a_pattern_chooses_the_lines(free):
    command = "for i in 1 2 3 ERROR; do echo line $i '<b>'; done"
    result = await free.call("Monitor", command=command, description="d", pattern="ERR|1")
    await ended(free, result.data["taskId"])
    lines = free.jobs.take_notices()[0]
    assert "<event>line 1 &lt;b&gt;\nline ERROR &lt;b&gt;</event>" in lines


@pytest.mark.proves("BT-30")
async def test_a_watch_ends_at_its_time_and_a_lasting_one_does_not(free):
    short = await free.call("Monitor", command="sleep 60", description="s", timeout_ms=100)
    lasting = await free.call("Monitor", command="sleep 60", description="l", persistent=True)
    assert lasting.data == {"taskId": lasting.data["taskId"], "timeoutMs": 0, "persistent": True}
    assert short.data["timeoutMs"] == 100
    await ended(free, short.data["taskId"])
    state = free.jobs.named(short.data["taskId"])[0]
    assert (state.status, state.ended_by) == ("killed", "time_up")
    assert 'Monitor "s" was ended because its time was up' in free.jobs.take_notices()[0]
    assert [state.description for state in free.jobs.running()] == ["l"]
    stopped = await free.call("TaskStop", task_id=lasting.data["taskId"])
    assert stopped.data["task_type"] == "monitor"


@pytest.mark.parametrize(
    ("asked", "held", "note"),
    [
        (0, 300_000, "must be positive"),
        (-1, 300_000, "must be positive"),
        (1e9, 3_600_000, "Timeout reduced"),
        (70.4, 70, None),
    ],
)
async def test_the_time_of_a_watch_is_said(free, asked, held, note):
    result = await free.call("Monitor", command="true", description="t", timeout_ms=asked)
    assert result.data["timeoutMs"] == held
    assert isinstance(result.data["timeoutMs"], int)
    assert [note in said for said in result.notes] == ([True] if note else [])


async def test_a_flood_of_lines_does_not_flood_the_model(free):
    result = await free.call("Monitor", command="seq 1 5000", description="d")
    await ended(free, result.data["taskId"])
    lines = free.jobs.take_notices()[0]
    assert "(4,800 earlier lines are only in the output file)" in lines
    assert lines.count("\n") < 220


@pytest.mark.proves("BT-30")
async def test_standard_error_is_kept_and_not_told(free):
    command = "echo one; echo aside >&2; echo two; printf rest >&2"
    result = await free.call("Monitor", command=command, description="d")
    await ended(free, result.data["taskId"])
    assert "<event>one\ntwo</event>" in free.jobs.take_notices()[0]
    kept = Path(free.jobs.named(result.data["taskId"])[0].output_path).read_text()
    assert all(word in kept for word in ("aside", "one", "rest", "two"))


@pytest.mark.proves("BT-30")
async def test_standard_error_is_told_where_the_command_says_so(free):
    command = "(echo one; echo aside >&2) 2>&1"
    result = await free.call("Monitor", command=command, description="d")
    await ended(free, result.data["taskId"])
    assert "<event>one\naside</event>" in free.jobs.take_notices()[0]


async def test_much_on_standard_error_ends_and_is_kept(free):
    command = "seq 1 50000 >&2; echo done"
    result = await free.call("Monitor", command=command, description="d")
    await ended(free, result.data["taskId"])
    assert "<event>done</event>" in free.jobs.take_notices()[0]
    kept = Path(free.jobs.named(result.data["taskId"])[0].output_path).read_text()
    assert kept.splitlines().count("50000") == 1
    assert len(kept.splitlines()) == 50_001


async def test_who_closes_its_output_is_still_watched_to_its_end(free):
    command = "echo one; exec 1>&-; echo aside >&2; sleep 0.1"
    result = await free.call("Monitor", command=command, description="d")
    await ended(free, result.data["taskId"])
    assert "<event>one</event>" in free.jobs.take_notices()[0]
    state = free.jobs.named(result.data["taskId"])[0]
    assert (state.status, Path(state.output_path).read_text()) == ("completed", "one\naside\n")


@pytest.mark.skipif(find_backend().name == "none", reason="no sandbox here")
async def test_standard_error_is_apart_inside_a_sandbox_too(project):
    settings = {"sandbox": {"enabled": True}}
    async with Session(project, allow=["Bash"], settings=settings) as session:
        command = "echo one; echo aside >&2"
        result = await session.call("Monitor", command=command, description="d")
        await ended(session, result.data["taskId"])
        assert "<event>one</event>" in session.jobs.take_notices()[0]
        kept = Path(session.jobs.named(result.data["taskId"])[0].output_path).read_text()
    assert sorted(kept.split()) == ["aside", "one"]
