"""Events as JSON: one way to name them and their parts."""

import json
from typing import get_args

import msgspec
import pytest

import handaxe.events as public
from handaxe.agent.events import FromAgent, RunFinished
from handaxe.contract.content import TextBlock
from handaxe.contract.decision import Allow
from handaxe.contract.events import (
    CallDecided,
    CallFinished,
    CallStarted,
    Event,
    JobStarted,
    JsonEvent,
    Todo,
    TodosChanged,
    UserSaid,
    to_event_type,
)
from handaxe.contract.job_state import JobState
from handaxe.contract.messages import TokenUsage, UserMessage
from handaxe.contract.ports.model import TextDelta
from handaxe.contract.result import ToolResult

EVENTS: list[type[JsonEvent]] = sorted(
    {*get_args(public.Event), *get_args(public.AgentEvent)}, key=lambda one: one.__name__
)


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_is_public_and_can_be_told_as_json(event: type):
    assert getattr(public, event.__name__) is event
    assert event.__name__ in public.__all__
    assert callable(event.to_json)


def test_no_two_events_have_the_same_type():
    assert len({to_event_type(event) for event in EVENTS}) == len(EVENTS)


@pytest.mark.parametrize("event", get_args(Event), ids=lambda one: one.__name__)
def test_the_type_of_an_event_is_the_one_in_the_log(event: type[JsonEvent]):
    assert to_event_type(event) == event.__struct_config__.tag


def find_keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in find_keys(item)}
    return {key for item in value for key in find_keys(item)} if isinstance(value, list) else set()


@pytest.mark.parametrize(
    "event",
    [
        TodosChanged(todos=(Todo(content="a", status="pending", active_form="b"),)),
        JobStarted(job=JobState(job_id="1", kind="shell", status="running", description="d")),
        UserSaid(message_id="1", message=UserMessage((TextBlock("hi"),))),
        CallDecided(call_id="1", decision=Allow("yes")),
        CallFinished(call_id="1", result=ToolResult("x", data={"some_key": (1, 2)})),
        FromAgent("a", "b", None, TextDelta("x")),
        RunFinished(
            subtype="success", is_error=False, terminal_reason="completed", result="", turns=1,
            session_id="s", model_usage={"some_model": TokenUsage(input_tokens=1)},
        ),
    ],
    ids=lambda event: type(event).__name__,
)  # fmt: skip
def test_every_part_of_an_event_is_named_in_snake_case(event: public.JsonEvent):
    told = event.to_json()
    assert json.loads(json.dumps(told)) == told
    assert {key for key in find_keys(told) if key != key.lower()} == set()
    assert told["type"] == to_event_type(type(event))


def test_results_and_decisions_are_told_as_everywhere_else():
    result = ToolResult("x", data={"filePath": "a"}, decision=Allow("yes"))
    assert CallFinished(call_id="1", result=result).to_json()["result"] == result.to_json()
    assert CallDecided(call_id="1", decision=Allow("no")).to_json()["decision"] == (
        Allow("no").to_json()
    )


class Foreign(msgspec.Struct, rename="camel"):
    """A struct of another program."""

    some_field: int


class Unspeakable:
    """Something that JSON does not know."""


def test_the_input_of_a_call_keeps_its_own_names_whatever_it_holds():
    held: dict[str, object] = {"itself": None}
    held["itself"] = held
    for given, told in (
        ({"camelCase": Foreign(1)}, {"camelCase": {"someField": 1}}),
        ([1, {"a": (2, {3})}], [1, {"a": [2, [3]]}]),
        (None, None),
        ("text", "text"),
    ):
        event = CallStarted(call_id="1", tool="t", input=given)
        assert event.to_json()["input"] == told
    for odd in (held, {"a": Unspeakable()}, {1: {2}}):
        event = CallStarted(call_id="1", tool="t", input=odd)
        assert json.dumps(event.to_json()["input"])
