"""One call: the order of its stages, its one result, and what stops it."""

import asyncio
import contextvars
import errno
import inspect
from typing import Annotated, Any

import pytest
from probes import Polite, Step, Stubborn, Wait
from tests import waiting
from tests.expected_types import expect_type, require
from tests.pipeline.harness import PipelineHarness, RecordingCheckpoints, ScriptedAsker

from handaxe import (
    Allow,
    Ask,
    Deny,
    Effects,
    Tool,
    ToolArgs,
    ToolCall,
    ToolContext,
    ToolFault,
    ToolResult,
)
from handaxe.contract.events import CallAsked, CallDecided, CallFinished, CallProgress, CallStarted
from handaxe.hooks.outcome import Outcome
from handaxe.hooks.service import Hooks
from handaxe.pipeline.streaming import run_batch
from handaxe.session.permission_state import RuleBehaviour, SourcedRule
from handaxe.session.workdir import Workdir


def call(tool="Step", call_id="1", **call_input):
    return ToolCall(call_id, tool, call_input)


@pytest.mark.proves("PL-1")
async def test_the_stages_come_in_their_order():
    story: list[str] = []

    async def before(event):
        story.append(f"hook before {event['tool_input']['name']}")

    async def after(event):
        story.append(f"hook after {event['tool_response']['text']}")

    class Asking(ScriptedAsker):
        async def ask(self, request):
            story.append("permission")
            return await super().ask(request)

    bench = PipelineHarness(
        [Step(story)],
        mode="default",
        hooks=Hooks({"PreToolUse": [before], "PostToolUse": [after]}),
        asker=Asking(Allow()),
        checkpoints=RecordingCheckpoints(story),
    )
    result = await bench.pipeline.call(call(name="x", writes=["a"]))
    assert result.ok
    assert story == [
        "validate x",
        "hook before x",
        "permission",
        "checkpoint before",
        "start x",
        "end x",
        "hook after done x",
        "checkpoint after",
    ]
    assert [type(event) for event in bench.events] == [
        CallStarted,
        CallAsked,
        CallDecided,
        CallFinished,
    ]


@pytest.mark.proves("PL-1")
async def test_a_call_that_changes_nothing_makes_no_checkpoint():
    story: list[str] = []
    bench = PipelineHarness([Step(story)], checkpoints=RecordingCheckpoints(story))
    await bench.pipeline.call(call(name="x", reads=["a"]))
    assert story == ["validate x", "start x", "end x"]


@pytest.mark.proves("PL-2")
@pytest.mark.parametrize(
    ("tool", "call_input", "code"),
    [
        ("Nope", {}, "call.unknown_tool"),
        ("", {}, "call.unknown_tool"),
        ("step", {}, "call.unknown_tool"),
        ("Step\ud800", {}, "call.unknown_tool"),
        ("Step", None, "call.bad_input"),
        ("Step", [], "call.bad_input"),
        ("Step", "{", "call.bad_input"),
        ("Step", {"turns": "many"}, "call.bad_input"),
        ("Step", {"name": "\ud800"}, "call.bad_input"),
        ("Step", {"nope": 1}, "call.bad_input"),
        ("Step", {"turns": 10**30}, "call.bad_input"),
        ("Step", {"writes": ["a\0b"]}, "file.bad_path"),
        ("Step", {"writes": ["x" * 300]}, "file.bad_path"),
        ("Step", {"fails": True}, "internal.error"),
    ],
)
async def test_every_bad_call_is_one_failed_result(tool, call_input, code):
    bench = PipelineHarness([Step()])
    result = await bench.pipeline.call(ToolCall("1", tool, call_input))
    assert (result.ok, result.code, result.id) == (False, code, "1")
    assert result.text
    assert [type(e) for e in bench.events] == [CallStarted, CallFinished]


@pytest.mark.proves("PL-2", "TC-4")
async def test_a_tool_that_returns_nonsense_fails_as_a_bug():
    class Odd(Step):
        name = "Odd"

        async def call(self, args, ctx) -> Any:
            return "not a result"

    result = await PipelineHarness([Odd()]).pipeline.call(call("Odd"))
    assert result.code == "internal.error"


@pytest.mark.proves("PL-2")
async def test_a_bug_in_any_method_of_a_tool_is_a_result():
    for method in ("effects_of", "subjects", "validate", "decide"):

        def broken(self, *args):
            raise ZeroDivisionError("planned")

        async def broken_later(self, *args):
            raise ZeroDivisionError("planned")

        is_async = method in ("validate", "decide")
        methods = {"name": "Broken", method: broken_later if is_async else broken}
        tool = type("Broken", (Step,), methods)()
        result = await PipelineHarness([tool]).pipeline.call(call("Broken"))
        assert result.code == "internal.error", method


@pytest.mark.proves("PL-3")
async def test_a_hook_that_rewrites_the_input_sends_it_through_parse_and_permission_again():
    async def rewrite(event):
        return Outcome(input={**event["tool_input"], "name": "other", "writes": ["b"]})

    story: list[str] = []
    hooks = Hooks({"PreToolUse": [rewrite]})
    result = await PipelineHarness([Step(story)], hooks=hooks).pipeline.call(call(name="x"))
    assert result.text == "done other"
    assert story == ["validate x", "validate other", "start other", "end other"]

    async def nonsense(event):
        return Outcome(input={"turns": "many"})

    hooks = Hooks({"PreToolUse": [nonsense]})
    result = await PipelineHarness([Step()], hooks=hooks).pipeline.call(call(name="x"))
    assert result.code == "call.bad_input"


@pytest.mark.proves("PL-3")
async def test_rewritten_input_is_judged_by_the_rules():
    class TouchArgs(ToolArgs):
        path: Annotated[str, "Where."]

    class Touch(Tool[TouchArgs]):
        """Touch."""

        def effects_of(self, args):
            return Effects.on(args.path)

        async def call(self, args, ctx):
            return ToolResult(args.path)

    async def rewrite(event):
        return Outcome(input={"path": "/project/secret/x"}, decision=Allow())

    bench = PipelineHarness(
        [Touch()],
        rules=[SourcedRule("Edit(/secret/**)", "deny", "flags")],
        hooks=Hooks({"PreToolUse": [rewrite]}),
    )
    result = await bench.pipeline.call(call("Touch", path="/project/open/x"))
    assert result.code == "permission.denied"
    assert require(result.decision).rule == "Edit(/secret/**)"


@pytest.mark.proves("PL-2")
async def test_a_hook_may_block_and_a_failing_hook_blocks_too():
    async def block(event):
        return Outcome(blocked="not today")

    async def fail(event):
        raise ValueError("planned")

    for hook in (block, fail):
        story: list[str] = []
        hooks = Hooks({"PreToolUse": [hook]})
        result = await PipelineHarness([Step(story)], hooks=hooks).pipeline.call(call(name="x"))
        assert result.code == "hook.blocked"
        assert "start x" not in story


async def test_an_after_hook_adds_to_the_result_and_cannot_break_it():
    async def add(event):
        return Outcome(messages=("look at this",))

    async def fail(event):
        raise ValueError("planned")

    hooks = Hooks({"PostToolUse": [add, fail]})
    result = await PipelineHarness([Step()], hooks=hooks).pipeline.call(call(name="x"))
    assert result.ok
    assert result.messages == ("look at this",)
    assert "planned" in result.notes[-1]


async def test_an_allow_of_a_hook_does_not_beat_a_rule():
    async def allow(event):
        return Outcome(decision=Allow())

    hooks = Hooks({"PreToolUse": [allow]})
    cases: list[tuple[RuleBehaviour, str]] = [
        ("deny", "permission.denied"),
        ("ask", "permission.asked"),
    ]
    for behaviour, code in cases:
        bench = PipelineHarness(
            [Step()], mode="default", rules=[SourcedRule("Step", behaviour, "flags")], hooks=hooks
        )
        result = await bench.pipeline.call(call(name="x", writes=["a"]))
        assert result.code == code
    bench = PipelineHarness([Step()], mode="default", hooks=hooks)
    assert (await bench.pipeline.call(call(name="x", writes=["a"]))).ok


async def test_where_nobody_may_be_asked_a_hook_that_wants_it_is_answered_with_no():
    async def ask(event):
        return Outcome(decision=Ask("look at this", by="hook"))

    asker = ScriptedAsker(Allow())
    bench = PipelineHarness(
        [Step()], mode="dontAsk", hooks=Hooks({"PreToolUse": [ask]}), asker=asker
    )
    result = await bench.pipeline.call(call(name="x"))
    assert (result.code, require(result.decision).verdict, require(result.decision).by) == (
        "permission.denied",
        "deny",
        "mode",
    )
    assert "look at this" in result.text


async def test_nobody_to_ask_means_no_and_the_decision_says_ask():
    result = await PipelineHarness([Step()], mode="default").pipeline.call(call(writes=["a"]))
    assert result.code == "permission.asked"
    assert require(result.decision).verdict == "ask"


async def test_a_no_reaches_the_model_with_its_comment():
    asker = ScriptedAsker(Deny("use the other file"))
    bench = PipelineHarness([Step()], mode="default", asker=asker)
    result = await bench.pipeline.call(call(writes=["a"]))
    assert result.code == "permission.denied"
    assert "use the other file" in result.text
    assert asker.asked[0].tool == "Step"


@pytest.mark.proves("PL-4")
async def test_the_same_call_id_again_gives_the_stored_result():
    story: list[str] = []
    bench = PipelineHarness([Step(story)])
    first = await bench.pipeline.call(call(name="x", writes=["a"]))
    again = await bench.pipeline.call(call(name="x", writes=["a"]))
    assert again == first
    assert story.count("start x") == 1


@pytest.mark.proves("PL-4")
async def test_a_call_id_cannot_be_used_for_another_call():
    bench = PipelineHarness([Step()])
    await bench.pipeline.call(call(name="x"))
    result = await bench.pipeline.call(call(name="y"))
    assert result.code == "call.bad_input"
    assert "used for another call" in result.text


@pytest.mark.proves("PL-4")
async def test_a_repeated_call_that_still_runs_is_waited_for():
    story: list[str] = []
    bench = PipelineHarness([Step(story)])
    same = call(name="x", writes=["a"], turns=5)
    results = await asyncio.gather(*(bench.pipeline.call(same) for _ in range(3)))
    assert story.count("start x") == 1
    assert results[0] == results[1] == results[2]


async def until(condition):
    # What these tests look at lasts a few turns of the loop only.
    await waiting.until(condition, every_s=0)


@pytest.mark.proves("EX-4")
async def test_cancel_reaches_a_running_call_and_says_what_had_happened():
    bench = PipelineHarness([Wait()])
    running = asyncio.create_task(bench.pipeline.call(call("Wait")))
    await until(lambda: bench.events)
    assert bench.pipeline.cancel("1") == 1
    result = await running
    assert result.code == "call.cancelled"
    assert "already started" in result.text
    assert isinstance(bench.events[-1], CallFinished)


@pytest.mark.proves("EX-4")
async def test_cancel_of_one_call_leaves_its_siblings_alone():
    bench = PipelineHarness([Wait(), Step()])
    batch = [call("Wait", "1"), call("Step", "2", name="x", turns=50)]
    running = asyncio.create_task(run_batch(batch, bench.pipeline))
    await until(lambda: len(bench.events) == 2)
    bench.pipeline.cancel("1")
    assert [r.code for r in await running] == ["call.cancelled", None]


@pytest.mark.proves("EX-4")
async def test_a_call_cancelled_while_it_waits_for_another_never_starts():
    story: list[str] = []
    bench = PipelineHarness([Step(story)])
    first = call(call_id="1", name="a", writes=["x"], turns=100)
    second = call(call_id="2", name="b", writes=["x"])
    running = asyncio.create_task(run_batch([first, second], bench.pipeline))
    await until(lambda: "start a" in story)
    bench.pipeline.cancel("2")
    results = await running
    assert [r.code for r in results] == [None, "call.cancelled"]
    assert "nothing was changed" in results[1].text
    assert "start b" not in story


async def test_cancelling_the_callers_task_passes_through_and_is_recorded():
    bench = PipelineHarness([Wait()])
    running = asyncio.create_task(bench.pipeline.call(call("Wait")))
    await until(lambda: bench.events)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    finished = bench.events[-1]
    assert isinstance(finished, CallFinished)
    assert finished.result.code == "call.cancelled"


async def test_cancelling_a_batch_from_outside_gives_every_call_its_result():
    bench = PipelineHarness([Wait(), Step()], max_parallel=1)
    batch = [call("Wait", "1"), call("Wait", "2"), call("Step", "3")]
    running = asyncio.create_task(run_batch(batch, bench.pipeline))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    finished = sorted(e.call_id for e in bench.events if isinstance(e, CallFinished))
    assert finished == ["1", "2", "3"]


@pytest.mark.proves("TC-9")
async def test_new_input_stops_only_tools_that_give_way():
    bench = PipelineHarness([Polite(), Stubborn()])
    polite = asyncio.create_task(bench.pipeline.call(call("Polite", "1")))
    stubborn = asyncio.create_task(bench.pipeline.call(call("Stubborn", "2")))
    await until(lambda: len(bench.events) == 2)
    assert bench.pipeline.interrupt() == 1
    assert (await polite).code == "call.cancelled"
    assert not stubborn.done()
    bench.pipeline.cancel()
    assert (await stubborn).code == "call.cancelled"


async def test_a_tool_that_passes_its_time_limit_is_stopped():
    class Slow(Wait):
        name = "Slow"
        timeout_s = 0.01

    result = await PipelineHarness([Slow()]).pipeline.call(call("Slow"))
    assert result.code == "call.timed_out"


@pytest.mark.proves("TC-7")
async def test_an_oversized_result_is_kept_whole_and_shown_from_both_ends():
    text = "".join(f"line {i}\n" for i in range(20_000))

    class Long(Wait):
        name = "Long"

        async def call(self, args, ctx):
            return ToolResult(text)

    class Longer(Long):
        name = "Longer"
        max_result_chars = float("inf")

    bench = PipelineHarness([Long(), Longer()])
    result = await bench.pipeline.call(call("Long"))
    assert bench.results.kept == {"1": text}
    assert "/results/1.txt" in result.text
    assert text[:2000] in result.text
    assert text[-2000:] in result.text
    assert len(result.text) < 5000
    assert result.size_chars == len(text)
    assert (await bench.pipeline.call(call("Longer", "2"))).text == text


@pytest.mark.proves("EX-5")
async def test_progress_is_an_event_of_its_call():
    class Chatty(Wait):
        name = "Chatty"

        async def call(self, args, ctx):
            ctx.report("half way")
            return ToolResult("done")

    bench = PipelineHarness([Chatty()])
    await bench.pipeline.call(call("Chatty"))
    assert [e.text for e in bench.events if isinstance(e, CallProgress)] == ["half way"]


@pytest.mark.proves("TC-3")
async def test_a_tool_reaches_only_what_it_declares():
    class Greedy(Wait):
        name = "Greedy"

        async def call(self, args, ctx: ToolContext):
            return ToolResult(ctx[Workdir].root)

    class Modest(Greedy):
        name = "Modest"
        uses = (Workdir,)

    bench = PipelineHarness([Greedy(), Modest()])
    assert (await bench.pipeline.call(call("Greedy"))).code == "internal.error"
    assert (await bench.pipeline.call(call("Modest", "2"))).text == "/project"


@pytest.mark.proves("TC-11")
async def test_observers_see_resolved_paths_and_the_model_does_not():
    class LookArgs(ToolArgs):
        file_path: Annotated[str, "Where."]

    class Look(Tool[LookArgs]):
        """Look."""

        effects = Effects.none()

        async def call(self, args, ctx):
            return ToolResult(args.file_path)

    seen = []

    async def watch(event):
        seen.append(event["tool_input"])

    bench = PipelineHarness([Look()], hooks=Hooks({"PreToolUse": [watch]}))
    result = await bench.pipeline.call(call("Look", file_path="src/../a.py"))
    assert result.text == "src/../a.py"
    assert seen == [{"file_path": "/project/a.py"}]
    started = expect_type(CallStarted, bench.events[0])
    assert started.input == {"file_path": "src/../a.py"}
    assert started.derived == {"file_path": "/project/a.py"}


class Bursting(Tool[ToolArgs]):
    """Raises what it is made with."""

    effects = Effects.pure()

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def call(self, args, ctx):
        raise self._error


class _Panic(BaseException):
    """What some libraries raise from other languages."""


@pytest.mark.proves("PL-2")
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        _Panic("beneath"),
        asyncio.CancelledError(),
        GeneratorExit(),
        MemoryError(),
    ],
    ids=repr,
)
async def test_whatever_a_tool_raises_by_itself_becomes_its_result(error):
    bench = PipelineHarness([Bursting(error)])
    result = await bench.pipeline.call(call("Bursting"))
    assert (result.ok, result.code) == (False, "internal.error")
    assert type(error).__name__ in result.text
    assert [type(event) for event in bench.events][-1] is CallFinished


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EIO, "Input/output error", "/a/file"),
        OSError(errno.ENOSPC, "No space left on device", "/a/file"),
        OSError(errno.EMFILE, "Too many open files", "/a/file"),
        RuntimeError("can't start new thread"),
    ],
    ids=str,
)
async def test_a_failure_of_the_machine_is_not_called_a_bug(error, caplog):
    result = await PipelineHarness([Bursting(error)]).pipeline.call(call("Bursting"))
    assert (result.ok, result.code) == (False, "system.failed")
    assert "bug" not in result.text
    assert str(error.args[1] if len(error.args) > 1 else error).lower() in result.text
    assert "Traceback" not in caplog.text


async def test_an_interrupted_process_leaves_no_call_behind():
    bench = PipelineHarness([Bursting(KeyboardInterrupt())])
    running = bench.pipeline.call(call("Bursting"))
    with pytest.raises(KeyboardInterrupt):
        # Driven by hand: an event loop would end with it.
        running.send(None)
    assert not bench.pipeline.is_busy
    assert expect_type(CallFinished, bench.events[-1]).result.code == "call.cancelled"


@pytest.mark.parametrize("method", ["effects_of", "subjects", "validate", "decide", "situate"])
async def test_a_generator_exit_in_any_method_of_a_tool_is_a_result(method):
    def leave(*_):
        raise GeneratorExit

    async def leave_later(*_):
        leave()

    is_later = inspect.iscoroutinefunction(getattr(Step, method))
    members = {method: leave_later if is_later else leave}
    bench = PipelineHarness([type("Leaving", (Step,), members)()])
    result = await bench.pipeline.call(call("Leaving"))
    assert result.code == "internal.error"
    assert not bench.pipeline.is_busy


@pytest.mark.parametrize("limit_s", [None, 60])
async def test_a_call_that_is_closed_from_outside_ends_its_tool_and_lets_others_go_on(limit_s):
    class Holding(Step):
        timeout_s = limit_s

        async def call(self, args, ctx):
            self.story.append("at work")
            try:
                return await super().call(args, ctx)
            finally:
                self.story.append("left")

    tool = Holding()
    bench = PipelineHarness([tool])
    writing = {"name": "x", "writes": ["a"], "turns": 50}
    running = bench.pipeline.call(ToolCall("1", "Holding", writing))
    context = contextvars.copy_context()
    while "at work" not in tool.story:
        context.run(running.send, None)
        await asyncio.sleep(0)
    running.close()

    assert not bench.pipeline.is_busy
    assert expect_type(CallFinished, bench.events[-1]).result.code == "call.cancelled"
    later = await bench.pipeline.call(ToolCall("2", "Holding", {**writing, "turns": 0}))
    assert later.ok
    assert tool.story.count("left") == 2
    assert [e.call_id for e in bench.events if isinstance(e, CallFinished)] == ["1", "2"]


@pytest.mark.proves("TC-6")
@pytest.mark.parametrize(
    ("given", "code"),
    [
        (ToolResult("no", ok=False), "call.failed"),
        (ToolResult("no", ok=False, code="nope"), "call.failed"),
        (ToolResult("no", ok=False, code="my.fact"), "my.fact"),
        (ToolResult("yes", code="my.fact"), None),
    ],
)
async def test_a_failed_result_always_has_a_code_and_a_good_one_never(given, code):
    class Saying(Tool[ToolArgs]):
        effects = Effects.pure()

        async def call(self, args, ctx):
            return given

    result = await PipelineHarness([Saying()]).pipeline.call(call("Saying"))
    assert result.code == code


@pytest.mark.parametrize("code", ["nodot", "", ".x", "a b.c", 5])
def test_a_fault_whose_code_nobody_could_rely_on_is_refused_where_it_is_written(code):
    with pytest.raises(TypeError, match=r"family\.fact"):
        type("Odd", (ToolFault,), {"code": code})


class Long(Tool[ToolArgs]):
    """Gives more than it may."""

    effects = Effects.pure()
    max_result_chars = 100

    async def call(self, args, ctx):
        return ToolResult("begin" + "x" * 490 + "finis")


@pytest.mark.proves("TC-7")
async def test_a_preview_is_no_longer_than_the_limit_it_stands_for():
    text = (await PipelineHarness([Long()]).pipeline.call(call("Long"))).text
    assert "Preview (first 50 characters):\nbegin" in text
    assert "[... 400 characters left out ...]" in text
    assert "x" * 51 not in text
    assert "finis" in text


@pytest.mark.proves("TC-7")
async def test_a_long_result_that_cannot_be_stored_is_still_given_at_both_ends():
    bench = PipelineHarness([Long()])

    def no_room(call_id, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    bench.results.keep = no_room
    result = await bench.pipeline.call(call("Long"))
    assert result.ok
    assert "could not be saved (No space left on device)" in result.text
    assert "begin" in result.text
    assert "finis" in result.text


@pytest.mark.proves("PL-4")
async def test_a_call_whose_result_is_lost_is_not_made_twice():
    story: list[str] = []
    bench = PipelineHarness([Step(story)])
    await bench.pipeline.call(call(name="a"))
    made = list(story)
    bench.events.clear()
    again = await bench.pipeline.call(call(name="a"))
    assert (again.ok, again.code, again.id) == (False, "call.result_lost", "1")
    assert story == made
