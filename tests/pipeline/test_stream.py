"""Calls that arrive while the model still talks keep the rules of a batch."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import Step, Wait
from tests.pipeline.harness import PipelineHarness
from tests.waiting import until

from handaxe import Effects, ToolCall, tool
from handaxe.contract.events import CallFinished, CallStarted
from handaxe.contract.faults import BadInput
from handaxe.pipeline.streaming import CallStream

PATHS = st.sampled_from(["/project/a", "/project/b", "/project/c"])
STEPS = st.lists(
    st.tuples(
        st.fixed_dictionaries(
            {
                "reads": st.lists(PATHS, max_size=2),
                "writes": st.lists(PATHS, max_size=1),
                "turns": st.integers(1, 4),
                "fails": st.booleans(),
            }
        ),
        st.integers(0, 3),
    ),
    max_size=8,
)


def collides(one: dict, other: dict) -> bool:
    first, second = Step().effects_of, Step().effects_of
    from probes import StepArgs

    return first(StepArgs(**one)).collides(second(StepArgs(**other)))


@pytest.mark.proves("EX-2")
@given(STEPS)
def test_any_arrivals_keep_order_where_they_collide(steps: list[tuple[dict, int]]):
    """Whatever arrives whenever: one result each, in the order asked, colliding ones in turn."""
    inputs = [
        {**{k: tuple(v) if isinstance(v, list) else v for k, v in step.items()}, "name": str(i)}
        for i, (step, _) in enumerate(steps)
    ]

    async def play() -> tuple[list[str], list[str]]:
        story: list[str] = []
        bench = PipelineHarness([Step(story)])
        stream = CallStream(bench.pipeline)
        for index, (_, pause) in enumerate(steps):
            stream.add(ToolCall(f"c{index}", "Step", inputs[index]))
            for _ in range(pause):
                await asyncio.sleep(0)
        results = await stream.results()
        return story, [result.id for result in results]

    story, ids = asyncio.run(play())
    assert ids == [f"c{index}" for index in range(len(steps))]
    for later in range(len(steps)):
        for earlier in range(later):
            if collides(inputs[earlier], inputs[later]):
                assert story.index(f"end {earlier}") < story.index(f"start {later}")


async def test_a_call_starts_before_the_next_arrives():
    story: list[str] = []
    stream = CallStream(PipelineHarness([Step(story)]).pipeline)
    stream.add(ToolCall("a", "Step", {"name": "a", "turns": 3}))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert "start a" in story
    stream.add(ToolCall("b", "Step", {"name": "b"}))
    assert [result.text for result in await stream.results()] == ["done a", "done b"]


async def test_a_repetition_is_run_once_and_answered_twice():
    story: list[str] = []
    bench = PipelineHarness([Step(story)])
    stream = CallStream(bench.pipeline)
    stream.add(ToolCall("a", "Step", {"name": "x"}))
    await asyncio.sleep(0)
    stream.add(ToolCall("b", "Step", {"name": "x"}))
    results = await stream.results()
    assert [result.id for result in results] == ["a", "b"]
    assert story.count("start x") == 1
    assert sum(isinstance(event, CallFinished) for event in bench.events) == 2


async def test_a_call_with_a_fault_is_answered_in_its_place_and_logged():
    bench = PipelineHarness([Step()])
    seen: list[str] = []
    stream = CallStream(bench.pipeline, on_result=lambda result: seen.append(result.id))
    stream.add(ToolCall("a", "Step", {"name": "a"}))
    stream.add(ToolCall("b", "Step", {}), fault=BadInput("Step", ["broken"]))
    results = await stream.results()
    assert [(result.id, result.code) for result in results] == [
        ("a", None),
        ("b", "call.bad_input"),
    ]
    assert seen == ["b", "a"]
    assert sum(isinstance(event, CallStarted) for event in bench.events) == 2


async def test_cancelling_answers_every_call_once():
    bench = PipelineHarness([Step(), Wait()])
    stream = CallStream(bench.pipeline)
    stream.add(ToolCall("a", "Step", {"name": "a"}))
    stream.add(ToolCall("b", "Wait", {}))
    stream.add(ToolCall("c", "Wait", {}))
    waiting = asyncio.ensure_future(stream.results())
    await until(lambda: any(isinstance(event, CallFinished) for event in bench.events))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    results = await stream.close()
    assert [(r.id, r.code) for r in results] == [
        ("a", None),
        ("b", "call.cancelled"),
        ("c", "call.cancelled"),
    ]
    finished = [event.call_id for event in bench.events if isinstance(event, CallFinished)]
    assert sorted(finished) == ["a", "b", "c"]


async def test_ten_looking_calls_run_side_by_side():
    everybody = asyncio.Barrier(10)

    @tool(effects=Effects.none())
    async def meet(number: int) -> str:
        """Wait until all ten are here."""
        await everybody.wait()
        return str(number)

    stream = CallStream(PipelineHarness([meet]).pipeline)
    for number in range(10):
        stream.add(ToolCall(f"c{number}", "meet", {"number": number}))
    results = await stream.results()
    assert [result.text for result in results] == [str(number) for number in range(10)]
