"""Where a model has no room, the next one answers; what was said is never said twice."""

import sys
from pathlib import Path

import pytest

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import UserMessage
from handaxe.contract.ports.model import Failure, ModelFailed, ModelRequest, Retrying, TextDelta
from handaxe.models.factory import FallbackModel

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from players import Player, Step, says

REQUEST = ModelRequest(messages=(UserMessage((TextBlock("hi"),)),))


def failing(failure: Failure, *before: Step, name: str = "first") -> Player:
    return Player([*before, ModelFailed(failure, "No.")], name=name)


async def events_of(model: FallbackModel) -> list[object]:
    return [event async for event in model.stream(REQUEST)]


@pytest.mark.proves("AR-3")
@pytest.mark.parametrize("failure", ["overloaded", "rate_limited", "unreachable"])
async def test_the_next_one_answers_and_it_is_told(failure: Failure):
    opened: list[str] = []

    def second() -> Player:
        opened.append("second")
        return Player(says("Here."), says("Again."), name="second")

    model = FallbackModel(failing(failure), [second])
    assert opened == []
    events = await events_of(model)
    assert isinstance(events[0], Retrying)
    assert "The next model is second" in events[0].sentence
    assert events[1] == TextDelta("Here.")
    assert opened == ["second"]


@pytest.mark.parametrize("failure", ["authentication", "bad_request", "too_long"])
async def test_other_failures_stay_failures(failure: Failure):
    model = FallbackModel(failing(failure), [lambda: Player(says("x"))])
    with pytest.raises(ModelFailed):
        await events_of(model)


async def test_nothing_is_said_twice():
    model = FallbackModel(failing("overloaded", TextDelta("Hal")), [lambda: Player(says("x"))])
    with pytest.raises(ModelFailed):
        await events_of(model)


async def test_the_last_one_that_fails_is_a_failure():
    model = FallbackModel(failing("overloaded"), [lambda: failing("overloaded", name="second")])
    with pytest.raises(ModelFailed):
        await events_of(model)
