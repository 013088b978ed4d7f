"""Calls run side by side unless they collide; results come back in the order asked."""

import asyncio
import itertools
import os
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import Step
from tests.pipeline.harness import PipelineHarness

from handaxe import ToolCall
from handaxe.contract.events import CallFinished, CallStarted
from handaxe.pipeline.streaming import CallStream, run_batch

PATHS = st.sampled_from(["a", "b", "a/x", "c"])
STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "reads": st.lists(PATHS, max_size=2).map(tuple),
            "writes": st.lists(PATHS, max_size=1).map(tuple),
            "turns": st.integers(0, 4),
            "fails": st.booleans(),
        }
    ),
    min_size=1,
    max_size=12,
)


def run_steps(steps, max_parallel=10):
    tool = Step()
    bench = PipelineHarness([tool], max_parallel=max_parallel)
    calls = [ToolCall(str(i), "Step", {"name": str(i), **step}) for i, step in enumerate(steps)]
    results = asyncio.run(run_batch(calls, bench.pipeline))
    return tool, bench, calls, results


def collide(first, second):
    def overlap(a, b):
        return a == b or a.startswith(b + "/") or b.startswith(a + "/")

    def disturbs(one, other):
        touched = other["reads"] + other["writes"]
        return any(overlap(w, t) for w in one["writes"] for t in touched)

    return disturbs(first, second) or disturbs(second, first)


@pytest.mark.proves("EX-1", "EX-3", "PL-2")
@given(STEPS, st.integers(1, 4))
def test_every_call_runs_once_and_answers_in_the_order_asked(steps, max_parallel):
    tool, _, calls, results = run_steps(steps, max_parallel)
    assert [result.id for result in results] == [call.id for call in calls]
    assert sorted(line for line in tool.story if line.startswith("start")) == sorted(
        f"start {i}" for i in range(len(steps))
    )
    for step, result in zip(steps, results, strict=True):
        assert result.ok is not step["fails"]
        assert result.code == ("internal.error" if step["fails"] else None)


@pytest.mark.proves("EX-1")
@given(STEPS)
def test_colliding_calls_keep_their_order_and_never_overlap(steps):
    tool, *_ = run_steps(steps)
    when = {line: position for position, line in enumerate(tool.story)}
    for (i, first), (j, second) in itertools.combinations(enumerate(steps), 2):
        if collide(first, second):
            assert when[f"end {i}"] < when[f"validate {j}"]


@pytest.mark.proves("EX-1")
@given(st.integers(2, 20), st.integers(1, 5))
def test_never_more_calls_run_at_once_than_there_are_lanes(count, max_parallel):
    tool, *_ = run_steps([{"turns": 3}] * count, max_parallel)
    running = 0
    for line in tool.story:
        running += {"start": 1, "end": -1}.get(line.split()[0], 0)
        assert running <= max_parallel
    assert f"start {min(max_parallel, count) - 1}" in tool.story[: 2 * count]


@pytest.mark.proves("PL-2", "SS-3")
@given(STEPS)
def test_every_started_call_has_exactly_one_finish_event(steps):
    _, bench, calls, _ = run_steps(steps)
    started = [e.call_id for e in bench.events if isinstance(e, CallStarted)]
    finished = [e.call_id for e in bench.events if isinstance(e, CallFinished)]
    assert sorted(started) == sorted(finished) == sorted(call.id for call in calls)


def test_independent_calls_really_run_together():
    tool, *_ = run_steps([{"reads": ("a",), "turns": 3}, {"reads": ("a",), "turns": 3}])
    assert tool.story.index("start 1") < tool.story.index("end 0")


@pytest.mark.proves("EX-5")
async def test_identical_calls_of_one_message_run_once():
    tool = Step()
    bench = PipelineHarness([tool])
    calls = [ToolCall(str(i), "Step", {"name": "x", "reads": ["a"]}) for i in range(3)]
    results = await run_batch(calls, bench.pipeline)
    assert [line for line in tool.story if line.startswith("start")] == ["start x"]
    assert [result.id for result in results] == ["0", "1", "2"]
    assert "ran once" in results[1].notes[-1]


KINDS = st.lists(
    st.sampled_from(
        [
            {"name": "read a", "reads": ("a",)},
            {"name": "read c", "reads": ("c",)},
            {"name": "write a", "writes": ("a",)},
            {"name": "write b", "reads": ("c",), "writes": ("b",)},
            {"name": "nothing"},
        ]
    ),
    max_size=10,
)


@pytest.mark.proves("EX-5")
@given(KINDS, st.booleans())
def test_identical_calls_that_change_something_run_as_often_as_they_are_asked_for(kinds, streams):
    tool = Step()
    bench = PipelineHarness([tool])
    calls = [ToolCall(str(i), "Step", kind) for i, kind in enumerate(kinds)]

    async def run_all():
        if not streams:
            return await run_batch(calls, bench.pipeline)
        stream = CallStream(bench.pipeline)
        for call in calls:
            stream.add(call)
        return await stream.results()

    results = asyncio.run(run_all())
    starts = Counter(line.removeprefix("start ") for line in tool.story if "start" in line)
    asked = Counter(kind["name"] for kind in kinds)
    for kind in kinds:
        name, changes = kind["name"], sum(1 for other in kinds if other.get("writes") == ("a",))
        if kind.get("writes"):
            assert starts[name] == asked[name]
        elif kind.get("reads") == ("a",):
            assert 1 <= starts[name] <= min(asked[name], changes + 1)
        else:
            assert starts[name] == 1
    repeats = [result for result in results if any("ran once" in note for note in result.notes)]
    assert len(repeats) == sum((asked - starts).values())
    assert [result.id for result in results] == [call.id for call in calls]


@pytest.mark.proves("EX-5")
async def test_an_identical_call_behind_a_repeated_id_runs():
    tool = Step()
    bench = PipelineHarness([tool])
    write = {"name": "write", "writes": ["a"]}
    first = ToolCall("0", "Step", write)
    await bench.pipeline.call(first)

    again, other = await run_batch([first, ToolCall("1", "Step", write)], bench.pipeline)

    assert (again.id, other.id) == ("0", "1")
    assert tool.story.count("start write") == 2


@pytest.mark.proves("EX-5")
async def test_an_identical_call_runs_again_if_something_in_between_changed_its_ground():
    tool = Step()
    bench = PipelineHarness([tool])
    read = {"name": "read", "reads": ["a"]}
    calls = [
        ToolCall("0", "Step", read),
        ToolCall("1", "Step", {"name": "write", "writes": ["a"]}),
        ToolCall("2", "Step", read),
    ]
    await run_batch(calls, bench.pipeline)
    assert [line for line in tool.story if line.startswith("start")] == [
        "start read",
        "start write",
        "start read",
    ]


@pytest.mark.proves("EX-3")
async def test_a_failure_stops_the_rest_only_when_told_to():
    steps = [{"writes": ["a"], "fails": True}, {"writes": ["a"]}, {"writes": ["a"]}]
    calls = [ToolCall(str(i), "Step", {"name": str(i), **s}) for i, s in enumerate(steps)]
    bench = PipelineHarness([Step()])
    codes = [r.code for r in await run_batch(calls, bench.pipeline)]
    assert codes == ["internal.error", None, None]
    bench = PipelineHarness([Step()])
    codes = [r.code for r in await run_batch(calls, bench.pipeline, stop_on_error=True)]
    assert codes == ["internal.error", "call.cancelled", "call.cancelled"]


async def test_calls_on_two_names_of_one_file_keep_their_order(session, project):
    (project / "one").write_text("a\n")
    (project / "deep").mkdir()
    os.link(project / "one", project / "deep/two")
    results = await session.call_many(
        [
            ("Read", {"file_path": "deep/two"}),
            ("Read", {"file_path": "one"}),
            ("Edit", {"file_path": "one", "old_string": "a", "new_string": "b"}),
            ("Read", {"file_path": "deep/two"}),
            ("Grep", {"pattern": "b", "path": "deep"}),
            ("Edit", {"file_path": "deep/two", "old_string": "b", "new_string": "c"}),
            ("Read", {"file_path": "one"}),
        ]
    )
    assert [result.code for result in results] == [None] * 7
    assert [results[at].text.strip() for at in (0, 3, 6)] == ["1→a", "1→b", "1→c"]
    assert results[4].data["numFiles"] == 1
    assert (project / "one").samefile(project / "deep/two")
