"""A request built from what is known already is the request built from nothing."""

import copy
import gc

import msgspec
import pytest
from tests.models.talk import LONG, PIXEL, READ

from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from handaxe.contract.ports.model import ModelRequest, ToolSpec
from handaxe.models.anthropic import request as anthropic
from handaxe.models.openai import request as openai
from handaxe.models.openai.request import ServerQuirks
from handaxe.schema.image_limits import cache_by_identity


class Value(msgspec.Struct, frozen=True, weakref=True):
    """Something to make something of."""

    number: int


def test_each_value_is_asked_once_and_equal_ones_are_two():
    asked: list[Value] = []

    @cache_by_identity
    def doubled(value: Value) -> int:
        asked.append(value)
        return value.number * 2

    first, second = Value(1), Value(1)
    assert [doubled(first), doubled(first), doubled(second)] == [2, 2, 2]
    assert len(asked) == 2
    assert doubled.__name__ == "doubled"


def test_what_was_made_goes_with_its_value():
    class Made:
        alive = 0

        def __init__(self) -> None:
            Made.alive += 1

        def __del__(self) -> None:
            Made.alive -= 1

    make = cache_by_identity(lambda _: Made())
    kept = Value(0)
    make(kept)
    for number in range(100):
        make(Value(number))
    gc.collect()
    assert Made.alive == 1


def conversation() -> list[Message]:
    """Turns with texts, calls, results and pictures, and two messages of one side in a row."""
    messages: list[Message] = [*LONG.messages]
    for number in range(4):
        call_id = f"c{number}"
        picture = (ImageBlock("image/png", PIXEL),) if number == 2 else ()
        bad = (ImageBlock("image/tiff", PIXEL),) if number == 1 else ()
        messages += [
            AssistantMessage((ToolUseBlock(call_id, "Read", {"file_path": "a"}),)),
            UserMessage((ToolResultBlock(call_id, (TextBlock("x"), *picture, *bad)),)),
            UserMessage((TextBlock("a word more"),), synthetic=True),
        ]
    return messages


def from_scratch(request: ModelRequest) -> ModelRequest:
    """The same request of values nobody has seen before."""
    return copy.deepcopy(request)


@pytest.mark.proves("AR-3")
def test_a_growing_conversation_is_always_sent_as_if_it_were_new():
    messages = conversation()
    strict = ToolSpec(name="S", description="", input_schema=READ.input_schema, strict=True)
    for end in range(1, len(messages) + 1):
        request = ModelRequest(
            system=("a", "b"), messages=tuple(messages[:end]), tools=(READ, strict)
        )
        new = from_scratch(request)
        assert anthropic.build_request("m", request) == anthropic.build_request("m", new)
        for allowed in (ServerQuirks(), ServerQuirks(is_openai=True)):
            assert openai.build_request("m", request, allowed) == openai.build_request(
                "m", from_scratch(request), allowed
            )


def test_marks_are_only_on_the_last_turns_however_often_it_was_sent():
    messages = conversation()
    for end in (5, 9, len(messages), 5):
        request = ModelRequest(messages=tuple(messages[:end]), tools=(READ,))
        body = anthropic.build_request("m", request)
        marked = [
            (at, block)
            for at, turn in enumerate(body["messages"])
            for block in turn["content"]
            if "cache_control" in block
        ]
        users = [at for at, turn in enumerate(body["messages"]) if turn["role"] == "user"]
        assert [at for at, _ in marked] == users[-2:]
