"""A script says what the model says."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.expected_types import expect_type
from tests.models.talk import events_of, heard_until_failure

from handaxe.contract.content import TextBlock
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import AssistantMessage, TokenUsage, ToolResultBlock, UserMessage
from handaxe.contract.ports.model import (
    MessageEnded,
    ModelFailed,
    ModelRequest,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
)
from handaxe.models.scripted import ScriptedModel, parse_script

SAID = AssistantMessage((TextBlock("."),))


def user(text: str) -> UserMessage:
    return UserMessage((TextBlock(text),))


def results(*texts: str) -> UserMessage:
    return UserMessage(
        tuple(ToolResultBlock(f"t{i}", (TextBlock(t),)) for i, t in enumerate(texts))
    )


def asked(*messages, system: str = "") -> ModelRequest:
    return ModelRequest(messages=messages, system=(system,))


def scripted(*turns: dict, **options) -> ScriptedModel:
    return ScriptedModel(parse_script({"turn": list(turns), **options}))


async def text_of(model: ScriptedModel, *messages, system: str = "") -> str:
    events = await events_of(model, asked(*messages, system=system))
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.proves("AR-3")
async def test_a_turn_is_streamed_in_pieces():
    model = scripted(
        {"thinking": "hm", "text": "Hello you", "call": [{"tool": "Read", "input": {"a": 1}, "id": "t1"}]},
        chunk_chars=5,
    )  # fmt: skip
    events = await events_of(model, asked(user("hi")))
    assert events[:-1] == [
        ThinkingDelta("hm"),
        ThinkingDelta("", "scripted"),
        TextDelta("Hello"),
        TextDelta(" you"),
        ToolStarted("t1", "Read"),
        ToolInputDelta("t1", '{"a":'),
        ToolInputDelta("t1", "1}"),
        ToolEnded("t1", "Read", {"a": 1}),
    ]
    assert isinstance(events[-1], MessageEnded)
    assert events[-1].stop_reason == "tool_use"
    assert events[-1].usage.output_tokens > 0


async def test_a_script_has_an_end():
    model = scripted({"text": "one"})
    assert await text_of(model, user("a")) == "one"
    with pytest.raises(ModelFailed) as caught:
        await text_of(model, user("a"), SAID, user("the rest"))
    assert caught.value.failure == "script_ended"
    assert "the rest" in caught.value.sentence


@pytest.mark.parametrize("expect", ["green", "/gr.*n/", ["green", "apple"]])
async def test_what_is_expected_is_there(expect):
    assert await text_of(scripted({"text": "ok", "expect": expect}), user("a green apple")) == "ok"


@pytest.mark.parametrize("expect", ["red", "/^green/", ["green", "pear"]])
async def test_what_is_expected_and_missing_is_told(expect):
    with pytest.raises(ModelFailed, match="script mismatch: turn 1 expects") as caught:
        await text_of(scripted({"text": "ok", "expect": expect}), user("a green apple"))
    assert "a green apple" in caught.value.sentence


async def test_expectations_look_at_everything_since_the_last_response():
    model = scripted({"text": "a"}, {"text": "b", "expect": ["result", "notice"]})
    await text_of(model, user("x"))
    assert await text_of(model, user("x"), SAID, results("the result"), user("a notice")) == "b"


async def test_answers_can_use_what_was_said():
    model = scripted(
        {"text": "{{first.text}}"},
        {"text": "{{result.2}} {{ id }}", "capture": {"id": r"agent (\w+)"}},
        {"call": [{"tool": "SendMessage", "input": {"to": ["{{id}}"], "n": 1}}]},
        {"text": "{{nothing}}"},
    )
    first = user("hello")
    assert await text_of(model, first) == "hello"
    assert await text_of(model, first, SAID, results("agent a7", "two")) == "two a7"
    events = await events_of(model, asked(first, SAID, user("."), SAID, user(".")))
    assert [e.input for e in events if isinstance(e, ToolEnded)] == [{"to": ["a7"], "n": 1}]
    with pytest.raises(ModelFailed, match=r"nothing.*known are: first.text, id"):
        await text_of(model, user("x"))


async def test_a_capture_that_finds_nothing_is_a_mismatch():
    model = scripted({"text": "x", "capture": {"id": r"agent (\w+)"}})
    with pytest.raises(ModelFailed, match="captures 'id'"):
        await text_of(model, user("hi"))


async def test_branches_and_jumps():
    turns = [
        {"text": "which?", "label": "start"},
        {"text": "left", "when": "left"},
        {"text": "right", "when": "/right|east/"},
        {"text": "again", "go_to": "start"},
    ]
    for way, said in (("left", "left"), ("east", "right")):
        model = scripted(*turns)
        heard = [await text_of(model, user(text)) for text in ("?", way, "left", "!")]
        assert heard == ["which?", said, "again", "which?"]
    model = scripted(*turns)
    assert [await text_of(model, user("neither")) for _ in range(2)] == ["which?", "again"]


async def test_agents_have_their_own_turns_side_by_side():
    model = scripted(
        {"text": "main 1"}, {"text": "main 2"},
        {"agent": "explore", "text": "e1"}, {"agent": "explore", "text": "e2"},
        {"agent": "Review it", "text": "r1"},
        {"agent": "helper", "text": "h1"},
        agents={"explore": {"match": "/^Find/"}, "helper": {"system": "You help"}},
    )  # fmt: skip
    assert await text_of(model, user("do it")) == "main 1"
    find = user("Find x")
    # Two agents with the same task, at the same time, each from the beginning.
    assert await text_of(model, find) == "e1"
    assert await text_of(model, find) == "e1"
    assert await text_of(model, find, SAID, user("go on")) == "e2"
    assert await text_of(model, find, SAID, user("go on")) == "e2"
    assert await text_of(model, user("Review it please")) == "r1"
    assert await text_of(model, user("x"), system="You help.") == "h1"
    assert await text_of(model, user("do it"), SAID, user("more")) == "main 2"


async def test_a_resumed_conversation_goes_on_where_it_was():
    turns = [{"text": f"turn {n}"} for n in range(4)]
    assert await text_of(scripted(*turns), user("a"), SAID, user("b"), SAID, user("c")) == "turn 2"


async def test_ids_of_calls_are_never_used_twice():
    turns = [{"call": [{"tool": "A"}, {"tool": "A"}], "label": "x", "go_to": "x"}]
    model = scripted(*turns)
    ids = []
    for said in range(3):
        history = [message for _ in range(said) for message in (SAID, user("."))]
        events = await events_of(model, asked(user("a"), *history))
        ids += [event.id for event in events if isinstance(event, ToolEnded)]
    # After a restart the numbers go on.
    events = await events_of(scripted(*turns), asked(user("a"), *[SAID, user(".")] * 3))
    ids += [event.id for event in events if isinstance(event, ToolEnded)]
    assert len(set(ids)) == len(ids) == 8


async def test_failures_can_be_scripted():
    model = scripted(
        {"fail": "rate_limited"},
        {"text": "x" * 40, "fail": {"how": "broken_stream", "after": 1, "sentence": "cut"}},
        {"text": "ok", "fail": {"how": "overloaded", "retries": 2, "status": 529}},
    )
    with pytest.raises(ModelFailed) as caught:
        await text_of(model, user("a"))
    assert caught.value.failure == "rate_limited"
    heard, failed = await heard_until_failure(model, asked(user("a")))
    assert failed.sentence == "cut"
    assert heard == [TextDelta("x" * 16)]
    events = await events_of(model, asked(user("a")))
    assert [type(event) for event in events] == [Retrying, Retrying, TextDelta, MessageEnded]
    assert expect_type(Retrying, events[0]).status == 529


async def test_broken_input_can_be_scripted():
    events = await events_of(scripted({"call": [{"tool": "A", "raw": '{"a": '}]}), asked(user("x")))
    assert [e.broken for e in events if isinstance(e, ToolEnded)] == ['{"a": ']


async def test_usage_and_stop_reason_are_what_the_script_says():
    model = scripted(
        {"text": "x", "usage": {"input_tokens": 5, "output_tokens": 6}, "stop_reason": "max_tokens"}
    )
    end = (await events_of(model, asked(user("a"))))[-1]
    assert (expect_type(MessageEnded, end).usage, expect_type(MessageEnded, end).stop_reason) == (
        TokenUsage(input_tokens=5, output_tokens=6),
        "max_tokens",
    )


async def test_pieces_can_come_slowly_and_be_left():
    model = scripted(
        {"text": "x" * 100, "delay_ms": 1}, {"text": "y", "delay_ms": 600_000}, {"text": "next"}
    )
    assert await text_of(model, user("a")) == "x" * 100
    stream = expect_type(AsyncGenerator, model.stream(asked(user("a"))))
    first = asyncio.ensure_future(anext(stream))
    await asyncio.wait([first], timeout=0.05)
    assert not first.done()
    first.cancel()
    await asyncio.wait([first])
    await stream.aclose()
    assert await text_of(model, user("a")) == "next"


async def test_the_same_script_gives_the_same_events():
    turn = {"text": "some text", "call": [{"tool": "A", "input": {"x": [1]}}]}
    first, second = await asyncio.gather(
        events_of(scripted(turn), asked(user("a"))), events_of(scripted(turn), asked(user("a")))
    )
    assert first == second


async def test_lines_of_json_are_a_script_too(tmp_path: Path):
    file = tmp_path / "script.jsonl"
    lines = [
        {"agents": {"e": {"match": "Find"}}, "chunk_chars": 3, "delay_ms": 0},
        {"text": "hello"},
        {"agent": "e", "text": "found"},
    ]
    file.write_text("\n\n".join(json.dumps(line) for line in lines))
    model = ScriptedModel(file)
    assert await text_of(model, user("Find it")) == "found"
    events = await events_of(model, asked(user("x")))
    assert events[0] == TextDelta("hel")


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a.toml", "[[turn]\n", "well-formed"),
        ("a.toml", "[[turn]]\ntxt = 'x'\n", "txt"),
        ("a.toml", "[[turn]]\ntext = 3\n", "turn\\[0\\].text"),
        ("a.toml", "[[turn]]\nexpect = '/(/'\n", "broken pattern"),
        ("a.toml", "[[turn]]\ncapture = {a = '['}\n", "broken pattern"),
        ("a.toml", "[[turn]]\ngo_to = 'x'\n", "label"),
        ("a.toml", "chunk_chars = 0\n", "chunk_chars"),
        ("a.jsonl", "{\n", "well-formed"),
        ("a.jsonl", "[1]\n", "mistake"),
        ("a.toml", "[[turn]]\nfail = 'explodes'\n", "fail"),
    ],
)
def test_mistakes_in_a_script_are_found_before_it_runs(
    tmp_path: Path, name: str, text: str, word: str
):
    (tmp_path / name).write_text(text)
    with pytest.raises(SetupError, match=word):
        ScriptedModel(tmp_path / name)
