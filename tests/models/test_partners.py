"""Our clients beside the vendors' own, against one server: the same requests, events, retries."""

import asyncio
import warnings
from collections.abc import AsyncGenerator
from itertools import pairwise

import pytest
from tests.expected_types import expect_type
from tests.models.serving import Reply, error, model_server, named, plain, sliced
from tests.models.talk import HELLO, LONG, READ, events_of
from tests.models.test_anthropic import ANSWER, START, STOP, block, call, ended, text
from tests.models.test_openai import ODD_STREAMS, USAGE, calls, chunk, part
from tests.waiting import HANG_S

from handaxe.contract.ports.model import Model, ModelFailed, ModelRequest, Retrying
from handaxe.models.anthropic import API_VERSION, AnthropicModel
from handaxe.models.http.asyncio_transport import DirectTransport
from handaxe.models.openai import OpenAIModel
from handaxe.models.sdk_clients import from_client

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import anthropic
    import openai

VENDORS = ("anthropic", "openai")
GOOD = {"anthropic": ANSWER, "openai": plain(chunk({"content": "Hi"}), chunk({}, "stop"), USAGE)}


def ours(vendor: str, url: str, max_retries: int = 2) -> Model:
    if vendor == "anthropic":
        return AnthropicModel(
            "claude-x", DirectTransport({}), base_url=url, token="k", max_retries=max_retries
        )
    model = OpenAIModel(
        "m", DirectTransport({}), base_url=f"{url}/v1", token="k", max_retries=max_retries
    )
    # Which name the limit has depends on the server; here only the rest is compared.
    model._quirks.token_field = "max_completion_tokens"
    return model


def client_of(vendor: str, url: str, max_retries: int = 2):
    if vendor == "anthropic":
        return anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=max_retries)
    return openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=max_retries)


def theirs(vendor: str, client) -> Model:
    return from_client(client, "claude-x" if vendor == "anthropic" else "m")


async def both(vendor: str, *replies: Reply, request: ModelRequest = HELLO, max_retries: int = 2):
    """What each of us heard or failed with, and what the server was asked by each."""
    outcomes = []
    for which in ("ours", "theirs"):
        async with model_server(*replies) as server:
            if which == "ours":
                model = ours(vendor, server.url, max_retries)
                outcomes.append((await outcome(model, request), server.asked))
                await model.close()
            else:
                async with client_of(vendor, server.url, max_retries) as client:
                    outcomes.append((await outcome(theirs(vendor, client), request), server.asked))
    return outcomes


async def outcome(model: Model, request: ModelRequest):
    try:
        return [e for e in await events_of(model, request) if not isinstance(e, Retrying)]
    except ModelFailed as failed:
        return failed.failure, failed.status


REQUESTS = {
    "hello": HELLO,
    "a long conversation with tools": LONG,
    "thinking": ModelRequest(messages=HELLO.messages, thinking_tokens=2000),
    "an output schema": ModelRequest(messages=HELLO.messages, output_schema=READ.input_schema),
    "one tool by name": ModelRequest(messages=HELLO.messages, tools=(READ,), tool_choice="Read"),
}


@pytest.mark.proves("AR-3")
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("name", REQUESTS)
async def test_the_same_conversation_makes_the_same_request(vendor: str, name: str):
    (_, mine), (_, official) = await both(
        vendor, Reply(pieces=(GOOD[vendor],)), request=REQUESTS[name]
    )
    assert mine[0].body == official[0].body
    assert mine[0].path == official[0].path
    for header in ("authorization", "content-type", "accept", "anthropic-version"):
        assert mine[0].headers.get(header) == official[0].headers.get(header)


def test_the_version_is_the_one_the_official_client_asks_for():
    assert anthropic._constants.ANTHROPIC_API_VERSION == API_VERSION


ANTHROPIC_STREAMS = {
    "text": ANSWER,
    "calls": named(START, *text(0, "x"), *call(1, "t1", '{"a"', ": 1}"), *call(2, "t2"), ended("tool_use"), STOP),
    "a call cut off": named(START, *call(0, "t1", '{"a": '), ended("max_tokens"), STOP),
    "thinking": named(
        START, *block(0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "a"}, {"type": "signature_delta", "signature": "s"}),
        *block(1, {"type": "redacted_thinking", "data": "x"}), *text(2, "y"), ended(), STOP,
    ),
    "a refusal": named(START, ended("refusal"), STOP),
    "usage at the end": named(START, *text(0, "x"), ended(input_tokens=3, cache_read_input_tokens=4), STOP),
    "pings and comments": b": hi\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n" + ANSWER.replace(b"\n", b"\r\n"),
    "an overload after a word": named(START, *text(0, "x"), {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
    "cut off": named(START, *text(0, "x")),
}  # fmt: skip
OPENAI_STREAMS = {
    "text": GOOD["openai"],
    "a filter": plain(chunk({"content": "x"}, "content_filter")),
    "a refusal": plain(chunk({"refusal": "no"}, "stop")),
    "a call cut off": plain(calls(part(0, "t1", "Read", '{"a": ')), chunk({}, "length")),
    "an error after a word": plain(chunk({"content": "x"}), {"error": {"message": "m", "code": 500}}),
    **{name: plain(*ODD_STREAMS[name]) for name in ODD_STREAMS if name != "the input as an object"},
}  # fmt: skip


@pytest.mark.parametrize("size", [5, 100_000])
@pytest.mark.parametrize(
    ("vendor", "name"),
    [*(("anthropic", name) for name in ANTHROPIC_STREAMS), *(("openai", name) for name in OPENAI_STREAMS)],
)  # fmt: skip
async def test_the_same_stream_gives_the_same_events(vendor: str, name: str, size: int):
    stream = (ANTHROPIC_STREAMS if vendor == "anthropic" else OPENAI_STREAMS)[name]
    reply = Reply(pieces=sliced(stream, size))
    (mine, _), (official, _) = await both(vendor, reply, max_retries=0)
    assert mine == official


ERRORS = {
    "no key": error(401, {"error": {"type": "authentication_error", "message": "m"}}),
    "forbidden": error(403, {"error": {"type": "permission_error", "message": "m"}}),
    "no such model": error(404, {"error": {"type": "not_found_error", "message": "m"}}),
    "a bad request": error(400, {"error": {"type": "invalid_request_error", "message": "m"}}),
    "too long": error(400, {"error": {"message": "prompt is too long: 3 tokens > 2 maximum"}}),
    "too large": error(413, {"error": {"type": "request_too_large", "message": "m"}}),
    "limited": error(429, {"error": {"type": "rate_limit_error", "message": "m"}}, retry_after_ms="10"),
    "a long limit": error(429, {"error": {"message": "m"}}, retry_after="0.05"),
    "a conflict": error(409, {"error": {"message": "m"}}, retry_after_ms="10"),
    "broken": error(500, {"error": {"type": "api_error", "message": "m"}}, retry_after_ms="10"),
    "overloaded": error(529, {"error": {"type": "overloaded_error", "message": "m"}}, retry_after_ms="10"),
    "a gateway": error(502, b"<html>Bad Gateway</html>", retry_after_ms="10"),
    "told not to": error(500, {"error": {"message": "m"}}, x_should_retry="false"),
    "told to": error(400, {"error": {"message": "m"}}, x_should_retry="true", retry_after_ms="10"),
}  # fmt: skip


@pytest.mark.proves("AR-3")
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("name", ERRORS)
async def test_the_same_error_is_the_same_failure_after_as_many_attempts(vendor: str, name: str):
    (mine, my_asks), (official, official_asks) = await both(vendor, ERRORS[name])
    assert mine == official
    assert len(my_asks) == len(official_asks)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_pauses_are_as_long_as_theirs(vendor: str):
    busy = error(429, {"error": {"message": "m"}}, retry_after="0.3")
    (mine, my_asks), (official, official_asks) = await both(
        vendor, busy, busy, Reply(pieces=(GOOD[vendor],))
    )
    assert mine == official
    for asks in (my_asks, official_asks):
        pauses = [b.at_s - a.at_s for a, b in pairwise(asks)]
        assert len(pauses) == 2
        assert all(0.29 < pause < 2 for pause in pauses)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_nobody_there_is_the_same_failure(vendor: str):
    client = client_of(vendor, "http://127.0.0.1:1", 0)
    async with client:
        official = await outcome(theirs(vendor, client), HELLO)
    model = ours(vendor, "http://127.0.0.1:1", 0)
    assert await outcome(model, HELLO) == official == ("unreachable", None)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_closing_the_stream_of_their_client_leaves_the_server(vendor: str):
    half = {
        "anthropic": named(START, *text(0, "x")),
        "openai": plain(chunk({"content": "x"}), done=False),
    }
    reply = Reply(pieces=(half[vendor],), hang=True)
    async with model_server(reply) as server, client_of(vendor, server.url) as client:
        stream = expect_type(AsyncGenerator, theirs(vendor, client).stream(HELLO))
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(server.gone.wait(), HANG_S)
