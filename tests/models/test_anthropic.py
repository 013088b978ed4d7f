"""The Messages API: requests, streams, refusals."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest
from tests.expected_types import expect_type
from tests.models.serving import Reply, error, model_server, named, sliced
from tests.models.talk import HELLO, LONG, READ, events_of, heard_until_failure
from tests.waiting import HANG_S

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    ThinkingBlock,
    TokenUsage,
    ToolUseBlock,
    UserMessage,
)
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
from handaxe.models.anthropic import AnthropicModel, build_messages_url
from handaxe.models.anthropic.request import build_request
from handaxe.models.http.asyncio_transport import DirectTransport

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5,
                  "output_tokens": 1},
    },
}  # fmt: skip
STOP = {"type": "message_stop"}


def ended(reason: str = "end_turn", **usage: int) -> dict:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7, **usage}}


def block(index: int, start: dict, *deltas: dict) -> list[dict]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *pieces: str) -> list[dict]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


def call(index: int, id: str, *pieces: str) -> list[dict]:
    start = {"type": "tool_use", "id": id, "name": "Read", "input": {}}
    return block(index, start, *({"type": "input_json_delta", "partial_json": p} for p in pieces))


ANSWER = named(START, *text(0, "Hel", "lo ä😀"), ended(), STOP)


def made(url: str, **options) -> AnthropicModel:
    options = {"max_retries": 2, "token": "k", **options}
    return AnthropicModel(
        "claude-x", DirectTransport({}, idle_timeout_s=5), base_url=url, **options
    )


async def answer(*replies: Reply, request: ModelRequest = HELLO, **options):
    async with model_server(*replies) as server:
        model = made(server.url, **options)
        try:
            return await events_of(model, request), server
        finally:
            await model.close()


@pytest.mark.proves("AR-3")
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_text_thinking_and_calls_are_streamed(size: int):
    thinking = block(
        0, {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "sig"},
    )  # fmt: skip
    redacted = block(1, {"type": "redacted_thinking", "data": "xyz"})
    body = named(
        START, {"type": "ping"}, *thinking, *redacted, *text(2, "Hel", "lo ä😀"),
        *call(3, "t1", '{"file_', 'path": "a"}'), *call(4, "t2"), {"type": "something_new", "x": 1},
        ended("tool_use"), STOP,
    )  # fmt: skip
    events, server = await answer(Reply(pieces=sliced(body, size)))
    assert events == [
        ThinkingDelta("hm"),
        ThinkingDelta("", "sig"),
        ThinkingDelta("", "redacted:xyz"),
        TextDelta("Hel"),
        TextDelta("lo ä😀"),
        ToolStarted("t1", "Read"),
        ToolInputDelta("t1", '{"file_'),
        ToolInputDelta("t1", 'path": "a"}'),
        ToolEnded("t1", "Read", {"file_path": "a"}),
        ToolStarted("t2", "Read"),
        ToolEnded("t2", "Read", {}),
        MessageEnded(
            "tool_use",
            TokenUsage(
                input_tokens=10, output_tokens=7, cache_read_tokens=90, cache_write_tokens=5
            ),
            "claude-x",
            "msg_1",
        ),
    ]
    (asked,) = server.asked
    assert asked.path == "/v1/messages"
    assert asked.headers["authorization"] == "Bearer k"


def test_the_cache_is_marked_at_what_stays():
    body = build_request("claude-x", LONG)
    marked = [
        where
        for where, item in [
            *((f"system {i}", part) for i, part in enumerate(body["system"])),
            *((f"tool {i}", part) for i, part in enumerate(body["tools"])),
            *(
                (f"{turn['role']} {t}.{i}", part)
                for t, turn in enumerate(body["messages"])
                for i, part in enumerate(turn["content"])
            ),
        ]
        if "cache_control" in item
    ]
    # Four marks are allowed; the last part of the system prompt may vary.
    assert marked == ["system 0", "tool 0", "user 0.1", "user 2.2"]


def test_thoughts_go_back_as_they_came_and_results_stand_first():
    _, assistant, results = build_request("claude-x", LONG)["messages"]
    assert assistant["content"][:2] == [
        {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
    ]
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result", "text"]
    assert [part["type"] for part in results["content"][0]["content"]] == ["text", "image"]
    assert results["content"][1]["is_error"] is True


def test_what_the_vendor_refuses_is_left_out():
    request = ModelRequest(
        system=("", "only"),
        messages=(
            UserMessage((TextBlock(" "), TextBlock("hi"))),
            AssistantMessage((ThinkingBlock("unsigned"), TextBlock("\n"))),
            UserMessage((TextBlock("go on"),)),
            AssistantMessage((ToolUseBlock("t", "Read", ["no object"]),)),
        ),
    )
    body = build_request("claude-x", request)
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant"]
    assert [part["text"] for part in body["messages"][0]["content"]] == ["hi", "go on"]
    assert body["messages"][1]["content"][0]["input"] == {"input": ["no object"]}
    assert [part["text"] for part in body["system"]] == ["only"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("claude-sonnet-4-5-20250929", "enabled"), ("claude-opus-4-1", "enabled"),
        ("claude-3-7-sonnet-latest", "enabled"), ("claude-sonnet-4-20250514", "enabled"),
        ("claude-opus-4-6", "adaptive"), ("claude-sonnet-5-5", "adaptive"), ("my-gateway", "adaptive"),
    ],
)  # fmt: skip
def test_thinking_is_asked_for_as_each_model_wants_it(name: str, kind: str):
    request = ModelRequest(messages=HELLO.messages, thinking_tokens=2000, max_tokens=1500)
    body = build_request(name, request)
    assert body["thinking"]["type"] == kind
    if kind == "enabled":
        assert body["max_tokens"] > body["thinking"]["budget_tokens"] == 2000


def test_an_answer_can_be_held_to_a_schema():
    request = ModelRequest(messages=HELLO.messages, output_schema=READ.input_schema)
    sent = build_request("claude-x", request)["output_config"]["format"]
    assert sent["schema"]["required"] == ["file_path"]
    loose = ModelRequest(messages=HELLO.messages, output_schema={"type": "object"})
    assert "output_config" not in build_request("claude-x", loose)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("end_turn", "end_turn"), ("max_tokens", "max_tokens"), ("stop_sequence", "stop_sequence"),
        ("refusal", "refusal"), ("model_context_window_exceeded", "max_tokens"),
        ("pause_turn", "pause_turn"), ("something_new", "end_turn"),
    ],
)  # fmt: skip
async def test_stop_reasons(given: str, reason: str):
    events, _ = await answer(Reply(pieces=(named(START, *text(0, "x"), ended(given), STOP),)))
    assert expect_type(MessageEnded, events[-1]).stop_reason == reason


async def test_a_call_that_was_cut_off_is_broken_not_lost():
    body = named(START, *call(0, "t1", '{"file_path": "a')[:-1], ended("max_tokens"), STOP)
    events, _ = await answer(Reply(pieces=(body,)))
    assert events[-2] == ToolEnded("t1", "Read", {}, '{"file_path": "a')
    assert expect_type(MessageEnded, events[-1]).stop_reason == "max_tokens"


@pytest.mark.parametrize(
    ("reply", "failure", "word"),
    [
        (error(401, {"error": {"type": "authentication_error", "message": "bad"}}), "authentication", "ANTHROPIC_API_KEY"),
        (error(403, {"error": {"message": "no"}}), "authentication", "claude-x"),
        (error(404, {"error": {"message": "model: claude-x"}}), "not_found", "--model"),
        (error(400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}), "too_long", "too long"),
        (error(413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}), "too_long", "too long"),
        (error(400, {"error": {"message": "messages.3: bad"}}), "bad_request", "messages.3: bad"),
        (error(400, {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}), "bad_request", "credit"),
        (error(301, b"moved", location="http://127.0.0.1:1/"), "bad_request", "redirect"),
        (error(400, b"<html>no</html>"), "bad_request", "refused"),
        (Reply(headers={"content-type": "text/html"}, pieces=(b"<html>",)), "broken_stream", "web page"),
        (Reply(pieces=(b"data: nonsense\n\n",)), "broken_stream", "ANTHROPIC_BASE_URL"),
    ],
)  # fmt: skip
async def test_refusals_say_what_to_do_and_are_not_repeated(reply: Reply, failure: str, word: str):
    async with model_server(reply) as server:
        model = made(server.url)
        with pytest.raises(ModelFailed) as caught:
            await events_of(model)
        await model.close()
    assert caught.value.failure == failure
    assert word in caught.value.sentence
    assert len(server.asked) == 1


QUICK = {"retry_after_ms": "20"}


@pytest.mark.proves("AR-3")
@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (error(529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, **QUICK), 529),
        (error(429, {"error": {"type": "rate_limit_error", "message": "slow"}}, **QUICK), 429),
        (error(500, **QUICK), 500),
        (error(400, x_should_retry="true", **QUICK), 400),
    ],
)  # fmt: skip
async def test_what_may_pass_is_tried_again_and_told(reply: Reply, status: int):
    events, server = await answer(reply, reply, Reply(pieces=(ANSWER,)))
    assert [type(event) for event in events[:2]] == [Retrying, Retrying]
    assert [
        (
            expect_type(Retrying, event).attempt,
            expect_type(Retrying, event).status,
            expect_type(Retrying, event).delay_s,
        )
        for event in events[:2]
    ] == [
        (1, status, 0.02),
        (2, status, 0.02),
    ]
    assert len(server.asked) == 3


async def test_an_overload_in_the_stream_before_a_word_is_tried_again():
    overload = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events, _ = await answer(Reply(pieces=(named(START, overload),)), Reply(pieces=(ANSWER,)))
    assert isinstance(events[0], Retrying)
    assert events[1] == TextDelta("Hel")


async def test_after_a_word_there_is_no_second_attempt():
    overload = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    body = named(START, *text(0, "Hel"), overload)
    async with model_server(Reply(pieces=(body,)), Reply(pieces=(ANSWER,))) as server:
        model = made(server.url)
        heard, failed = await heard_until_failure(model)
        await model.close()
    assert heard == [TextDelta("Hel")]
    assert failed.failure == "overloaded"
    assert len(server.asked) == 1


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("at", ["in an event", "between events"])
async def test_a_stream_that_breaks_off_is_a_failure(cut: bool, at: str):
    body = named(START, *text(0, "Hello"))
    half = body[:-20] if at == "in an event" else body
    async with model_server(Reply(pieces=(half,), cut=cut)) as server:
        model = made(server.url)
        with pytest.raises(ModelFailed) as caught:
            await events_of(model)
        await model.close()
    assert caught.value.failure == "broken_stream"


async def test_a_stream_that_stops_without_ending_times_out():
    async with model_server(Reply(pieces=(named(START, *text(0, "Hel")),), hang=True)) as server:
        model = AnthropicModel(
            "claude-x", DirectTransport({}, idle_timeout_s=0.2), base_url=server.url, max_retries=0
        )
        with pytest.raises(ModelFailed) as caught:
            await events_of(model)
        await asyncio.wait_for(server.gone.wait(), HANG_S)
    assert caught.value.failure == "timed_out"


async def test_closing_the_stream_leaves_the_server_at_once():
    async with model_server(Reply(pieces=(named(START, *text(0, "Hel")),), hang=True)) as server:
        model = made(server.url)
        stream = expect_type(AsyncGenerator, model.stream(HELLO))
        assert await anext(stream) == TextDelta("Hel")
        await stream.aclose()
        await asyncio.wait_for(server.gone.wait(), HANG_S)
        await model.close()


async def test_turns_share_a_connection():
    async with model_server(Reply(pieces=(ANSWER,))) as server:
        model = made(server.url)
        for _ in range(3):
            await events_of(model)
            await asyncio.sleep(0)
        await model.close()
    assert [asked.connection for asked in server.asked] == [1, 1, 1]


async def test_nobody_there_is_said_with_what_to_check():
    model = made("http://127.0.0.1:1", max_retries=0)
    with pytest.raises(ModelFailed) as caught:
        await events_of(model)
    assert caught.value.failure == "unreachable"
    assert "ANTHROPIC_BASE_URL" in caught.value.sentence


async def test_a_server_that_does_not_stream_is_understood():
    whole = {
        **START["message"],
        "content": [
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "t", "name": "Read", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
    }
    reply = Reply(
        headers={"content-type": "application/json"}, pieces=(json.dumps(whole).encode(),)
    )
    events, _ = await answer(reply)
    assert events[0] == TextDelta("Hi")
    assert events[2] == ToolEnded("t", "Read", {"a": 1})
    assert expect_type(MessageEnded, events[-1]).stop_reason == "tool_use"


async def test_half_a_character_does_not_stop_a_conversation():
    request = ModelRequest(messages=(UserMessage((TextBlock("a \ud83d b"),)),))
    _, server = await answer(Reply(pieces=(ANSWER,)), request=request)
    assert server.asked[0].body["messages"][0]["content"][0]["text"] == "a \\ud83d b"


async def test_extra_headers_and_a_user_are_sent():
    _, server = await answer(
        Reply(pieces=(ANSWER,)), extra_headers={"Anthropic-Beta": "x"}, user_id="me"
    )
    assert server.asked[0].headers["anthropic-beta"] == "x"
    assert server.asked[0].body["metadata"] == {"user_id": "me"}


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h", "http://h/v1/messages"),
        ("http://h/v1/", "http://h/v1/messages"),
        ("http://h/gate/v1", "http://h/gate/v1/messages"),
        ("http://h/gate?key=1", "http://h/gate/v1/messages?key=1"),
    ],
)
def test_addresses_of_servers(base: str, url: str):
    assert build_messages_url(base) == url
