"""Tools that will not be stopped: their calls end all the same, and their late end changes nothing."""

import asyncio
import threading

import pytest
from probes import Step, Wait
from tests.expected_types import expect_type
from tests.pipeline.harness import PipelineHarness
from tests.waiting import until

from handaxe import Effects, Session, ToolCall, ToolFault, ToolResult
from handaxe.app.session import get_parts
from handaxe.contract.cancellation import CancelledWithResult
from handaxe.contract.context import CallOverError
from handaxe.contract.events import (
    CallFinished,
    CallProgress,
    CallStarted,
    DirectoryChanged,
    SessionClosed,
)
from handaxe.contract.ports.files import Files
from handaxe.pipeline import pipeline as execute
from handaxe.pipeline import run as in_time
from handaxe.pipeline import streaming as batch
from handaxe.pipeline.streaming import run_batch
from handaxe.session.workdir import Workdir
from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import read_events


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(in_time, "TIDY_S", 0.02)
    monkeypatch.setattr(execute, "CLOSE_S", 0.05)


class Deaf(Wait):
    """Goes on whatever it is told, until the test lets it go; then it does what it is to."""

    timeout_s = 0.01
    uses = (Workdir,)

    def __init__(self):
        self.may_end = asyncio.Event()
        self.last_acts = []
        self.has_ended = False

    async def call(self, args, ctx):
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                ctx.report("no")
        ctx.report("too late")
        try:
            ctx[Workdir]
        except CallOverError as refused:
            self.last_acts.append(str(refused))
        self.has_ended = True
        return ToolResult("late")


class DeafForEver(Deaf):
    timeout_s = None


class Threaded(Wait):
    """Waits for a thread that nobody can stop."""

    timeout_s = 0.01

    def __init__(self):
        self.may_end = threading.Event()

    async def call(self, args, ctx):
        thread = asyncio.get_running_loop().run_in_executor(None, self.may_end.wait)
        while not thread.done():
            try:
                await asyncio.shield(thread)
            except asyncio.CancelledError:
                continue
        return ToolResult("late")


def call(tool, call_id="1", **call_input):
    return ToolCall(call_id, tool, call_input)


@pytest.mark.proves("PL-2")
async def test_a_tool_that_swallows_its_cancellation_does_not_outlive_its_limit(caplog):
    deaf = Deaf()
    bench = PipelineHarness([deaf, Step()], max_parallel=1)
    result = await bench.pipeline.call(call("Deaf"))
    assert result.code == "call.timed_out"
    assert "could not be stopped" in result.text
    assert not deaf.has_ended
    # Its lane is free, and so is the way.
    assert (await bench.pipeline.call(call("Step", "2", writes=["a"]))).ok
    before = list(bench.events)
    deaf.may_end.set()
    await until(lambda: deaf.has_ended)
    await until(lambda: not bench.pipeline._context.outliving)
    assert bench.events == before
    assert deaf.last_acts == ["The call 1 is over: Workdir is out of reach."]
    assert await bench.pipeline.call(call("Deaf")) == result
    assert "Deaf continues after its call ended" in caplog.text


async def test_a_tool_that_waits_for_a_thread_does_not_outlive_its_limit():
    threaded = Threaded()
    bench = PipelineHarness([threaded])
    result = await bench.pipeline.call(call("Threaded"))
    assert (result.code, len(bench.events)) == ("call.timed_out", 2)
    threaded.may_end.set()
    await until(lambda: not bench.pipeline._context.outliving)
    assert len(bench.events) == 2


async def test_every_call_of_a_wave_ends_at_its_limit():
    deaf = [type(f"Deaf{number}", (Deaf,), {})() for number in range(3)]
    bench = PipelineHarness([*deaf, Step()], max_parallel=2)
    calls = [call(tool.name, tool.name) for tool in deaf] + [call("Step", "s", name="x")]
    results = await run_batch(calls, bench.pipeline)
    assert [result.code for result in results] == ["call.timed_out"] * 3 + [None]
    for tool in deaf:
        tool.may_end.set()


async def test_a_tool_that_stops_in_order_may_tidy_up_first(monkeypatch):
    monkeypatch.setattr(in_time, "TIDY_S", 60)
    tidied = []

    class Neat(Wait):
        timeout_s = 0.01

        async def call(self, args, ctx):
            try:
                return await super().call(args, ctx)
            finally:
                await asyncio.sleep(0.01)
                tidied.append(True)

    bench = PipelineHarness([Neat()])
    result = await bench.pipeline.call(call("Neat"))
    assert (result.code, tidied) == ("call.timed_out", [True])
    assert "was stopped" in result.text
    assert not bench.pipeline._context.outliving


async def test_what_a_late_tool_still_says_is_not_its_result(monkeypatch):
    monkeypatch.setattr(in_time, "TIDY_S", 60)

    class Excusing(Wait):
        timeout_s = 0.01

        async def call(self, args, ctx):
            try:
                return await super().call(args, ctx)
            except asyncio.CancelledError:
                return ToolResult("here it is")

    assert (
        await PipelineHarness([Excusing()]).pipeline.call(call("Excusing"))
    ).code == "call.timed_out"


@pytest.mark.parametrize("limit_s", [None, 60])
async def test_a_cancelled_tool_can_say_what_had_happened(limit_s):
    class Telling(Wait):
        timeout_s = limit_s

        async def call(self, args, ctx):
            try:
                return await super().call(args, ctx)
            except asyncio.CancelledError:
                raise CancelledWithResult(
                    ToolResult("half of it", ok=False, code="x.half")
                ) from None

    bench = PipelineHarness([Telling()])
    running = asyncio.ensure_future(bench.pipeline.call(call("Telling")))
    await until(lambda: bench.events)
    await asyncio.sleep(0)
    assert bench.pipeline.cancel() == 1
    assert (await running).code == "x.half"
    assert running.cancelling() == 0


async def test_a_cancelled_tool_with_a_limit_is_left_to_itself():
    class Patient(Deaf):
        timeout_s = 60

    patient = Patient()
    bench = PipelineHarness([patient])
    running = asyncio.ensure_future(bench.pipeline.call(call("Patient")))
    await until(lambda: bench.events)
    await asyncio.sleep(0)
    bench.pipeline.cancel()
    assert (await running).code == "call.cancelled"
    patient.may_end.set()
    await until(lambda: patient.has_ended)
    assert sum(isinstance(event, CallFinished) for event in bench.events) == 1
    assert running.cancelling() == 0


async def test_the_hosts_own_cancellation_reaches_the_host_and_the_tool():
    class Patient(Deaf):
        timeout_s = 60

    patient = Patient()
    bench = PipelineHarness([patient])
    running = asyncio.ensure_future(bench.pipeline.call(call("Patient")))
    await until(lambda: bench.events)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [event.result.code for event in bench.events if isinstance(event, CallFinished)] == [
        "call.cancelled"
    ]
    patient.may_end.set()


@pytest.mark.parametrize("limit_s", [None, 60])
async def test_a_swallowed_cancellation_leaves_no_trace_in_the_callers_task(limit_s):
    class Shrugging(Wait):
        timeout_s = limit_s

        async def call(self, args, ctx):
            try:
                return await super().call(args, ctx)
            except asyncio.CancelledError:
                return ToolResult("done anyway")

    bench = PipelineHarness([Shrugging()])
    running = asyncio.ensure_future(bench.pipeline.call(call("Shrugging")))
    await until(lambda: bench.events)
    await asyncio.sleep(0)
    bench.pipeline.cancel()
    assert (await running).text == "done anyway"
    assert running.cancelling() == 0


@pytest.mark.parametrize(
    "error", [SystemExit(3), RuntimeError("planned"), asyncio.CancelledError(), GeneratorExit()]
)
async def test_what_a_tool_with_a_limit_raises_is_its_result(error):
    class Raising(Wait):
        timeout_s = 60

        async def call(self, args, ctx):
            await asyncio.sleep(0)
            raise error

    result = await PipelineHarness([Raising()]).pipeline.call(call("Raising"))
    assert result.code == "internal.error"
    assert type(error).__name__ in result.text


async def test_a_failure_after_the_end_is_only_logged(caplog):
    class Falling(Deaf):
        async def call(self, args, ctx):
            await super().call(args, ctx)
            raise RuntimeError("planned")

    falling = Falling()
    bench = PipelineHarness([falling])
    await bench.pipeline.call(call("Falling"))
    falling.may_end.set()
    await until(lambda: not bench.pipeline._context.outliving)
    assert "Falling failed after its call was over" in caplog.text
    assert len([event for event in bench.events if isinstance(event, CallFinished)]) == 1


async def test_progress_after_the_result_is_not_told():
    reports = []

    class Chatty(Wait):
        timeout_s = None

        async def call(self, args, ctx):
            reports.append(ctx.report)
            ctx.report("in time")
            return ToolResult("done")

    bench = PipelineHarness([Chatty()])
    await bench.pipeline.call(call("Chatty"))
    reports[0]("too late")
    assert [event.text for event in bench.events if isinstance(event, CallProgress)] == ["in time"]


@pytest.mark.parametrize("kind", [Deaf, DeafForEver])
async def test_a_session_closes_over_a_tool_that_will_not_stop(project, caplog, kind):
    deaf = kind()
    deaf.effects = Effects.none()
    session = Session(project, session_id="s", tools=[deaf])
    running = asyncio.ensure_future(session.call(deaf.name))
    await until(lambda: get_parts(session).pipeline.is_busy)
    if kind is Deaf:
        assert (await running).code == "call.timed_out"
    await session.close()
    code = "call.timed_out" if kind is Deaf else "call.cancelled"
    deaf.may_end.set()
    assert (await running).code == code
    await until(lambda: deaf.has_ended)
    events = list(read_events(find_data_home(), "s"))
    assert [event.result.code for event in events if isinstance(event, CallFinished)] == [code]
    assert isinstance(events[-1], SessionClosed)
    if kind is Deaf:
        assert "Deaf still runs when its session closes" in caplog.text


class Tidying(Wait):
    """Takes a while to end when it is told to."""

    def __init__(self):
        self.may_end = asyncio.Event()

    async def call(self, args, ctx):
        try:
            return await super().call(args, ctx)
        except asyncio.CancelledError:
            await self.may_end.wait()
            raise CancelledWithResult(ToolResult("half of it", ok=False, code="x.half")) from None


@pytest.mark.parametrize("is_waited_for", [True, False])
async def test_a_batch_that_nobody_waits_for_ends_with_what_its_calls_came_to(
    monkeypatch, is_waited_for
):
    monkeypatch.setattr(batch, "CLOSE_S", 60 if is_waited_for else 0.01)
    tidying = Tidying()
    bench = PipelineHarness([tidying, Wait()])
    calls = [call("Tidying", "1"), call("Wait", "2")]
    running = asyncio.ensure_future(run_batch(calls, bench.pipeline))
    await until(lambda: len(bench.events) == 2)
    await asyncio.sleep(0)
    running.cancel()
    if is_waited_for:
        await until(lambda: len(bench.events) == 3)
        tidying.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    tidying.may_end.set()
    await until(lambda: not bench.pipeline._scheduler._open)
    started = [event.call_id for event in bench.events if isinstance(event, CallStarted)]
    ended = {e.call_id: e.result for e in bench.events if isinstance(e, CallFinished)}
    assert (started, len(bench.events)) == (["1", "2"], 4)
    assert ended["1"].code == ("x.half" if is_waited_for else "call.cancelled")
    assert "nothing was changed" not in ended["1"].text


async def test_nothing_comes_after_the_last_word_of_a_session(project, monkeypatch):
    """What ends while the session closes is told before, or not at all."""
    session = Session(project, session_id="s")
    (project / "a.txt").write_text("x")
    await session.call("Read", file_path="a.txt")
    emit, let_go = get_parts(session).session_context.emit, get_parts(session).tracker.close

    async def close(options):
        emit(DirectoryChanged(path="/late"))
        await let_go(options)

    monkeypatch.setattr(get_parts(session).tracker, "close", close)
    await session.close()
    emit(DirectoryChanged(path="/later"))
    late, last = list(read_events(find_data_home(), "s"))[-2:]
    assert (expect_type(DirectoryChanged, late).path, type(last)) == ("/late", SessionClosed)


async def test_work_that_was_left_to_itself_opens_no_files_any_more(project):
    told = []

    class Writer(Deaf):
        uses = (Files, Workdir)

        async def call(self, args, ctx):
            files = ctx[Files]
            result = await super().call(args, ctx)
            self.has_ended = False
            try:
                await files.read(str(project / "a.txt"))
            except ToolFault as refused:
                told.append(refused.code)
            self.has_ended = True
            return result

    (project / "a.txt").write_text("x")
    writer = Writer()
    async with Session(project, tools=[writer], permission_mode="bypassPermissions") as session:
        assert (await session.call("Writer")).code == "call.timed_out"
        writer.may_end.set()
        await until(lambda: told)
    assert told == ["call.cancelled"]


def test_nothing_is_said_to_the_loop_of_work_that_was_left(project):
    """No task is destroyed while it waits, and no exception is lost."""

    async def main() -> list[str]:
        heard: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, about: heard.append(str(about["message"]))
        )
        deaf = Deaf()
        async with Session(project, tools=[deaf], permission_mode="bypassPermissions") as session:
            await session.call("Deaf")
        deaf.may_end.set()
        return heard

    assert asyncio.run(main()) == []
