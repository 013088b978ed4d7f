"""TaskOutput and TaskStop over commands that really run."""

import asyncio

import pytest
from tests.expected_types import require
from tests.waiting import until

from handaxe import Session


@pytest.fixture
async def free(project):
    async with Session(project, allow=["Bash"]) as opened:
        yield opened


async def begin(session, command):
    result = await session.call("Bash", command=command, run_in_background=True)
    return result.data["backgroundTaskId"]


@pytest.mark.proves("BT-14", "SH-5")
async def test_task_output_waits_for_the_end_and_the_model_is_not_told_twice(free):
    job_id = await begin(free, "sleep 0.3; echo done")
    result = await free.call("TaskOutput", task_id=job_id)
    assert result.data["retrieval_status"] == "success"
    assert result.data["task"]["status"] == "completed"
    assert result.data["task"]["exitCode"] == 0
    assert "<output>\ndone\n</output>" in result.text
    await asyncio.sleep(0.05)
    assert free.jobs.take_notices() == ()
    again = await free.call("TaskOutput", task_id=job_id)
    assert "(nothing new was printed)" in again.text


@pytest.mark.proves("BT-14")
async def test_task_output_gives_what_is_new(free, project):
    job_id = await begin(
        free, "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; sleep 60"
    )

    async def output_with(word):
        text = (await free.call("TaskOutput", task_id=job_id, block=False)).text
        return text if word in text else None

    await until(lambda: output_with("one"))
    (project / "go").touch()
    text = require(await until(lambda: output_with("two")))
    assert "one" not in text
    assert "<retrieval_status>not_ready</retrieval_status>" in text
    waited = await free.call("TaskOutput", task_id=job_id, timeout=50)
    assert waited.data["retrieval_status"] == "timeout"
    assert waited.data["task"]["status"] == "running"


@pytest.mark.proves("BT-14")
async def test_task_stop_ends_a_task_once(free):
    job_id = await begin(free, "sleep 60")
    stopped = await free.call("KillShell", shell_id=job_id)
    assert stopped.ok
    assert stopped.data == {
        "message": f"Successfully stopped task: {job_id} (sleep 60)",
        "task_id": job_id,
        "task_type": "local_bash",
        "command": "sleep 60",
    }
    await asyncio.sleep(0.05)
    assert free.jobs.take_notices() == ()
    again = await free.call("TaskStop", task_id=job_id)
    assert again.code == "task.not_running"
    assert f"Shell {job_id} is not running, so cannot be killed (status: killed)" in again.text


async def test_looking_at_a_task_holds_nobody_up(free):
    job_id = await begin(free, "sleep 60")
    waiting = asyncio.create_task(free.call("TaskOutput", task_id=job_id, timeout=60_000))
    await asyncio.sleep(0.05)
    assert (await free.call("Bash", command="touch x")).ok
    assert (await free.call("TaskStop", task_id=job_id)).ok
    assert (await waiting).data["task"]["status"] == "killed"


async def test_work_that_a_limit_ended_says_so(project):
    settings = {"shell": {"runaway_bytes": 2 << 20, "max_output_bytes": 1 << 20}}
    async with Session(project, permission_mode="bypassPermissions", settings=settings) as session:
        started = await session.call("Bash", command="yes", run_in_background=True)
        task_id = started.data["backgroundTaskId"]
        done = await session.call("TaskOutput", task_id=task_id, block=True, timeout=30_000)
        assert done.data["task"]["status"] == "killed"
        assert done.data["task"]["ended_by"] == "output_limit"
        assert "<ended_by>output_limit</ended_by>" in done.text
        stopped = await session.call("Bash", command="sleep 100", run_in_background=True)
        other = stopped.data["backgroundTaskId"]
        await session.call("TaskStop", task_id=other)
        shown = await session.call("TaskOutput", task_id=other, block=False)
        assert shown.data["task"]["ended_by"] == "stopped"


async def test_a_task_that_prints_its_own_output_is_ended_with_that_reason(free, project):
    wait = "while [ ! -e path ]; do sleep 0.02; done"
    started = await free.call(
        "Bash",
        command=f'seq 1 20000; {wait}; tail -n +1 -f "$(cat path)"',
        run_in_background=True,
    )
    task_id = started.data["backgroundTaskId"]
    (project / "new").write_text(started.data["rawOutputPath"])
    (project / "new").rename(project / "path")
    done = await free.call("TaskOutput", task_id=task_id, timeout=60_000)
    assert done.data["task"]["status"] == "killed"
    assert done.data["task"]["ended_by"] == "own_output"
    assert done.data["task"]["total_bytes"] < 32 << 20


async def test_a_task_that_reads_its_own_output_and_prints_it_elsewhere_goes_on(free, project):
    (project / "both.sh").write_text(
        "while [ ! -e path ]; do sleep 0.02; done\n"
        'echo begin\ntail -n +1 -f "$(cat path)" > copy &\n'
        "until [ -s copy ]; do sleep 0.02; done\nseq 1 600000\nkill $!\n"
    )
    started = await free.call("Bash", command="bash both.sh", run_in_background=True)
    task_id = started.data["backgroundTaskId"]
    (project / "new").write_text(started.data["rawOutputPath"])
    (project / "new").rename(project / "path")
    done = await free.call("TaskOutput", task_id=task_id, timeout=60_000)
    assert done.data["task"]["ended_by"] == "exit"
    assert done.data["task"]["total_bytes"] > 2 << 20
