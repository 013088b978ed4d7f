"""Chat Completions: requests, the streams of many servers, refusals."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest
from tests.expected_types import expect_type
from tests.models.serving import Reply, error, model_server, plain, sliced
from tests.models.talk import HELLO, LONG, READ, events_of
from tests.waiting import HANG_S

from handaxe.contract.messages import TokenUsage
from handaxe.contract.ports.model import (
    MessageEnded,
    ModelFailed,
    ModelRequest,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolInputDelta,
    ToolSpec,
    ToolStarted,
)
from handaxe.models.http.asyncio_transport import DirectTransport
from handaxe.models.openai import OpenAIModel, build_completions_url
from handaxe.models.openai.request import ServerQuirks, build_request


def chunk(delta: dict | None = None, finish: str | None = None, **more) -> dict:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": choices,
        **more,
    }


def part(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments=None
) -> dict:
    function = {"name": name, "arguments": arguments}
    fields = {"index": index, "id": id, "type": "function" if id else None}
    fields = {key: value for key, value in fields.items() if value is not None}
    return {**fields, "function": {k: v for k, v in function.items() if v is not None}}


def calls(*parts: dict, finish: str | None = None) -> dict:
    return chunk({"tool_calls": list(parts)}, finish)


USAGE = chunk(usage={"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107,
                     "prompt_tokens_details": {"cached_tokens": 80}})  # fmt: skip


def made(url: str, **options) -> OpenAIModel:
    return OpenAIModel(
        "m", DirectTransport({}, idle_timeout_s=5), base_url=url, **{"max_retries": 2, **options}
    )


async def answer(*replies: Reply, request: ModelRequest = HELLO, **options):
    async with model_server(*replies) as server:
        model = made(server.url, **options)
        try:
            return await events_of(model, request), server
        finally:
            await model.close()


async def heard(*chunks: dict, done: bool = True):
    events, _ = await answer(Reply(pieces=(plain(*chunks, done=done),)))
    return events


@pytest.mark.proves("AR-3")
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_text_thinking_and_calls_are_streamed(size: int):
    body = plain(
        chunk({"role": "assistant", "content": None}), chunk({"reasoning_content": "hm"}),
        chunk({"content": "Hel"}), chunk({"content": "lo ä😀"}),
        calls(part(0, "t1", "Read", "")), calls(part(0, arguments='{"file_')),
        calls(part(0, arguments='path": "a"}')), calls(part(1, "t2", "Read", "")),
        calls(part(1, arguments="{}")), chunk({}, "tool_calls"), USAGE,
    )  # fmt: skip
    events, server = await answer(Reply(pieces=sliced(body, size)), token="k")
    assert events == [
        ThinkingDelta("hm"),
        TextDelta("Hel"),
        TextDelta("lo ä😀"),
        ToolStarted("t1", "Read"),
        ToolInputDelta("t1", '{"file_'),
        ToolInputDelta("t1", 'path": "a"}'),
        ToolEnded("t1", "Read", {"file_path": "a"}),
        ToolStarted("t2", "Read"),
        ToolInputDelta("t2", "{}"),
        ToolEnded("t2", "Read", {}),
        MessageEnded(
            "tool_use",
            TokenUsage(input_tokens=20, output_tokens=7, cache_read_tokens=80),
            "m",
            "c1",
        ),
    ]
    assert server.asked[0].path == "/v1/chat/completions"
    assert server.asked[0].headers["authorization"] == "Bearer k"


def ended_calls(events) -> list[tuple]:
    return [(e.id, e.name, e.input) for e in events if isinstance(e, ToolEnded)]


A, B = {"file_path": "a"}, {"file_path": "b"}
ODD_STREAMS = {
    "the whole call in one chunk": [calls(part(0, "t1", "Read", json.dumps(A)), finish="tool_calls")],
    "two whole calls in one chunk": [
        calls(part(0, "t1", "Read", json.dumps(A)), part(1, "t2", "Read", json.dumps(B)), finish="tool_calls")
    ],
    "the id repeated in every chunk": [
        calls(part(0, "t1", "Read", '{"file_')), calls(part(0, "t1", "Read", 'path": "a"}')), chunk({}, "tool_calls"),
    ],
    "no index": [
        calls(part(None, "t1", "Read", '{"file_')), calls(part(arguments='path": "a"}')),
        calls(part(None, "t2", "Read", json.dumps(B))), chunk({}, "tool_calls"),
    ],
    "every call numbered zero": [
        calls(part(0, "t1", "Read", json.dumps(A))), calls(part(0, "t2", "Read", json.dumps(B))), chunk({}, "stop"),
    ],
    "the input as an object": [calls(part(0, "t1", "Read", A)), chunk({}, "tool_calls")],
    "the input before the name": [
        calls(part(0, "t1", None, '{"file_')), calls(part(0, None, "Read", 'path": "a"}')), chunk({}, "tool_calls"),
    ],
    "interleaved calls": [
        calls(part(0, "t1", "Read", '{"file_')), calls(part(1, "t2", "Read", '{"file_')),
        calls(part(0, None, None, 'path": "a"}')), calls(part(1, None, None, 'path": "b"}')), chunk({}, "tool_calls"),
    ],
    "a finish with every chunk": [
        calls(part(0, "t1", "Read", '{"file_'), finish="tool_calls"),
        calls(part(0, None, None, 'path": "a"}'), finish="tool_calls"),
    ],
    "stop as the reason": [calls(part(0, "t1", "Read", json.dumps(A))), chunk({}, "stop")],
}  # fmt: skip


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("name", ODD_STREAMS)
async def test_the_ways_servers_write_calls(name: str, done: bool):
    events = await heard(*ODD_STREAMS[name], done=done)
    found = ended_calls(events)
    wanted = [("t1", "Read", A), ("t2", "Read", B)]
    assert found == wanted[: len(found)]
    assert len(found) == (2 if "t2" in json.dumps(ODD_STREAMS[name]) else 1)
    assert expect_type(MessageEnded, events[-1]).stop_reason == "tool_use"
    # Every call starts before its input and ends after it.
    for each in {e.id for e in events if isinstance(e, ToolEnded)}:
        kinds = [type(e) for e in events if getattr(e, "id", None) == each]
        assert kinds[0] is ToolStarted
        assert kinds[-1] is ToolEnded
        pieces = "".join(e.json for e in events if isinstance(e, ToolInputDelta) and e.id == each)
        assert json.loads(pieces) == (A if each == "t1" else B)


async def test_calls_without_ids_get_ids_of_their_own():
    events = await heard(
        calls(part(0, None, "Read", "{}")), calls(part(1, None, "Read", "{}")), chunk({}, "stop")
    )
    ids = [call[0] for call in ended_calls(events)]
    assert len(set(ids)) == 2
    assert all(each.startswith("call_") for each in ids)


async def test_a_call_of_the_time_before_lists_of_calls_is_heard():
    old = [{"name": "Read", "arguments": '{"file_'}, {"arguments": 'path": "a"}'}]
    events = await heard(
        *(chunk({"function_call": each}) for each in old), chunk({}, "function_call")
    )
    assert [call[1:] for call in ended_calls(events)] == [("Read", A)]
    assert expect_type(MessageEnded, events[-1]).stop_reason == "tool_use"


async def test_a_call_cut_off_by_the_limit_is_broken():
    events = await heard(calls(part(0, "t1", "Read", '{"file_path": "a')), chunk({}, "length"))
    assert events[-2] == ToolEnded("t1", "Read", {}, '{"file_path": "a')
    assert expect_type(MessageEnded, events[-1]).stop_reason == "max_tokens"


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ([chunk({"content": "x"}, "stop")], "end_turn"),
        ([chunk({"content": "x"}, "length")], "max_tokens"),
        ([chunk({"content": "x"}, "content_filter")], "refusal"),
        ([chunk({"refusal": "no"}, "stop")], "refusal"),
        ([chunk({"content": "x"}, "eos")], "end_turn"),
        ([chunk({"content": "x"}, "tool_calls")], "end_turn"),
        ([chunk({"content": "x"})], "end_turn"),
        ([chunk({"content": [{"type": "text", "text": "x"}]}, "stop")], "end_turn"),
    ],
)  # fmt: skip
async def test_stop_reasons(chunks: list[dict], reason: str):
    events = await heard(*chunks)
    assert expect_type(MessageEnded, events[-1]).stop_reason == reason
    assert expect_type(MessageEnded, events[-1]).usage == TokenUsage()


async def test_a_server_that_does_not_stream_is_understood():
    message = {
        "role": "assistant",
        "content": "Hi",
        "tool_calls": [part(None, "t1", "Read", json.dumps(A))],
    }
    whole = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
             "usage": {"prompt_tokens": 3, "completion_tokens": 2}}  # fmt: skip
    reply = Reply(
        headers={"content-type": "application/json"}, pieces=(json.dumps(whole).encode(),)
    )
    events, _ = await answer(reply)
    assert events[0] == TextDelta("Hi")
    assert ended_calls(events) == [("t1", "Read", A)]
    assert expect_type(MessageEnded, events[-1]).usage == TokenUsage(
        input_tokens=3, output_tokens=2
    )


async def test_a_stream_that_breaks_off_is_a_failure():
    for reply in (
        Reply(pieces=(plain(chunk({"content": "x"}), done=False),)),
        Reply(pieces=(plain(chunk({"content": "x"}), done=False)[:-9],)),
        Reply(pieces=(plain(chunk({"content": "x"}), done=False),), cut=True),
    ):
        with pytest.raises(ModelFailed) as caught:
            await answer(reply, max_retries=0)
        assert caught.value.failure == "broken_stream"


def test_the_conversation_is_told_in_this_dialect():
    body = build_request("m", LONG, ServerQuirks())
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    system, _, assistant, good, bad, after = body["messages"]
    assert system["content"] == "You are careful.\n\nToday is Monday."
    assert assistant["tool_calls"][0]["function"]["arguments"] == '{"file_path":"a.txt"}'
    # Broken input is not sent back: templates of local models decode it.
    assert assistant["tool_calls"][1]["function"]["arguments"] == "{}"
    assert good["content"].endswith("(1 image: see the next message)")
    assert bad["content"] == "Error: not JSON"
    assert [part["type"] for part in after["content"]] == ["text", "image_url"]
    assert body["tool_choice"] == "required"
    assert body["max_completion_tokens"] == 1000


def test_an_answer_can_be_held_to_a_schema():
    strict = ModelRequest(messages=HELLO.messages, output_schema=READ.input_schema)
    sent = build_request("m", strict, ServerQuirks())["response_format"]["json_schema"]
    assert (sent["schema"], sent["strict"]) == (READ.input_schema, True)
    loose = ModelRequest(messages=HELLO.messages, output_schema={"type": "object"})
    assert (
        build_request("m", loose, ServerQuirks())["response_format"]["json_schema"]["strict"]
        is False
    )


@pytest.mark.parametrize(
    ("message", "gone", "there"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens", "max_completion_tokens"),
        ("unknown field stream_options", "stream_options", "max_tokens"),
        ("response_format is not supported", "response_format", "max_tokens"),
    ],
)  # fmt: skip
async def test_what_a_server_does_not_know_is_left_out_the_next_time(
    message: str, gone: str, there: str
):
    request = ModelRequest(messages=HELLO.messages, output_schema=READ.input_schema)
    good = Reply(pieces=(plain(chunk({"content": "x"}, "stop")),))
    async with model_server(error(400, {"error": {"message": message}}), good) as server:
        model = made(server.url)
        await events_of(model, request)
        await events_of(model, request)
        await model.close()
    first, second, third = (asked.body for asked in server.asked)
    assert gone in first
    for later in (second, third):
        assert gone not in later
        assert there in later


async def test_strict_tools_are_given_up_when_refused():
    strict = ToolSpec(name="Read", description="", input_schema=READ.input_schema, strict=True)
    request = ModelRequest(messages=HELLO.messages, tools=(strict,))
    refused = error(
        422, {"detail": [{"loc": ["tools", 0, "function", "strict"], "msg": "Extra inputs"}]}
    )
    _, server = await answer(
        refused, Reply(pieces=(plain(chunk({"content": "x"}, "stop")),)), request=request
    )
    assert "strict" in server.asked[0].body["tools"][0]["function"]
    assert "strict" not in server.asked[1].body["tools"][0]["function"]


@pytest.mark.parametrize(
    ("reply", "failure", "word"),
    [
        (error(401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}), "authentication", "OPENAI_API_KEY"),
        (error(404, {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}), "not_found", "--model"),
        (error(404, {"error": "model 'm' not found, try pulling it first"}), "not_found", "pulling"),
        (error(400, {"error": {"message": "too much", "code": "context_length_exceeded"}}), "too_long", "too long"),
        (error(400, {"error": {"message": "request (5031 tokens) exceeds the available context size (2048 tokens)", "type": "exceed_context_size_error"}}), "too_long", "5031"),
        (error(400, {"object": "error", "message": "This model's maximum context length is 4096 tokens."}), "too_long", "4096"),
        (error(429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}), "rate_limited", "quota"),
        (error(422, {"detail": [{"loc": ["body", "x"], "msg": "bad"}]}), "bad_request", "bad"),
        (error(429, {"error": {"message": "later"}}, retry_after="3600"), "rate_limited", "3600 s"),
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


async def test_an_error_in_the_stream_is_one():
    body = plain({"error": {"message": "CUDA out of memory", "type": "server_error", "code": 500}})
    events, _ = await answer(
        Reply(pieces=(body,)), Reply(pieces=(plain(chunk({"content": "x"}, "stop")),))
    )
    assert isinstance(events[0], Retrying)
    assert "CUDA" in events[0].sentence


async def test_closing_the_stream_leaves_the_server_at_once():
    body = plain(chunk({"content": "x"}), done=False)
    async with model_server(Reply(pieces=(body,), hang=True)) as server:
        model = made(server.url)
        stream = expect_type(AsyncGenerator, model.stream(HELLO))
        assert await anext(stream) == TextDelta("x")
        await stream.aclose()
        await asyncio.wait_for(server.gone.wait(), HANG_S)
        await model.close()


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/", "http://h:1/v1/chat/completions"),
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/api/openai", "http://h/api/openai/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/chat/completions", "http://h/chat/completions"),
        ("http://h/v1/?version=1", "http://h/v1/chat/completions?version=1"),
        ("http://h/d/chat/completions?v=1", "http://h/d/chat/completions?v=1"),
    ],
)
def test_addresses_of_servers(base: str, url: str):
    assert build_completions_url(base) == url
