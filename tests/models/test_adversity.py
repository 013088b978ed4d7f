"""Servers that misbehave: the same for both wire formats, over a real connection."""

import asyncio
import copy
import gzip
import json
import time
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from email.utils import formatdate
from typing import Any

import pytest
from tests.expected_types import expect_type
from tests.models.serving import Reply, error, model_server, named, sliced
from tests.models.talk import HELLO, PIXEL, events_of, heard_until_failure
from tests.models.vendors import VENDORS, Vendor

from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    TokenUsage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelFailed,
    ModelRequest,
    Retrying,
    TextDelta,
    ToolEnded,
    ToolStarted,
)
from handaxe.models.failures import read_retry_after_s

QUICK = {"retry_after_ms": "5"}


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return VENDORS[request.param]


def whole(vendor: Vendor) -> bytes:
    return vendor.encode(*vendor.text)


HEARD = [TextDelta("Hel"), TextDelta("lo"), MessageEnded("end_turn", TokenUsage())]


async def heard(vendor: Vendor, *replies: Reply, **limits: float) -> list[Any]:
    async with model_server(*replies) as server:
        model = vendor.model(server.url, **limits)
        try:
            return await events_of(model)
        finally:
            await model.close()


async def failed(vendor: Vendor, *replies: Reply, **limits: float):
    async with model_server(*replies) as server:
        model = vendor.model(server.url, **limits)
        try:
            events, failure = await heard_until_failure(model, HELLO)
        finally:
            await model.close()
        return events, failure, len(server.asked)


async def first_attempt(model: Model) -> tuple[list[Any], str | None]:
    """What is heard without any repetition, and how it failed."""
    events: list[Any] = []
    async with aclosing(expect_type(AsyncGenerator, model.stream(HELLO))) as stream:
        try:
            async for event in stream:
                if isinstance(event, Retrying):
                    break
                events.append(event)
        except ModelFailed as failure:
            return events, failure.failure
    return events, None


@pytest.mark.proves("AR-3")
async def test_an_answer_is_the_same_however_it_was_cut(vendor: Vendor):
    body = whole(vendor)
    for size in (1, 2, 3, 17, len(body)):
        assert await heard(vendor, Reply(pieces=sliced(body, size))) == HEARD


async def test_an_answer_cut_at_any_byte_is_whole_or_a_failure(vendor: Vendor):
    """Nothing that breaks off is taken for an end, and nothing is heard that was not said."""
    body = whole(vendor)
    first_word = body.index(b"Hel")
    async with model_server(Reply()) as server:
        model = vendor.model(server.url)
        for at in range(0, len(body), 7):
            server.replies = [Reply(pieces=(body[:at],) if at else (), cut=True)]
            server.asked.clear()
            events, failure = await first_attempt(model)
            assert events in ([], HEARD[:1], HEARD[:2], HEARD)
            assert bool(events) <= (at > first_word)
            assert failure == ("broken_stream" if events and events != HEARD else None)
        await model.close()


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
@pytest.mark.parametrize("size", [1, 9, 10_000])
async def test_a_gateway_may_compress_unasked(vendor: Vendor, pack, size: int):
    encoding = "gzip" if pack is gzip.compress else "deflate"
    reply = Reply(headers={"content-encoding": encoding}, pieces=sliced(pack(whole(vendor)), size))
    assert await heard(vendor, reply) == HEARD


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("br", b"\x0b\x02\x80"), ("zstd", b"x"), ("gzip", b"data: {}\n\n"), ("gzip", gzip.compress(b": x\n\n" * 99, mtime=0)[:-12])],
)  # fmt: skip
async def test_what_cannot_be_unpacked_is_a_failure(vendor: Vendor, encoding: str, body: bytes):
    reply = Reply(headers={"content-encoding": encoding}, pieces=(body,))
    good = Reply(pieces=(whole(vendor),))
    events = await heard(vendor, reply, good)
    assert isinstance(events[0], Retrying)
    assert events[1:] == HEARD


def _later(seconds: float) -> str:
    return formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529, 599])
@pytest.mark.parametrize("asked", [{"retry_after": "0.005"}, QUICK], ids=["seconds", "ms"])
async def test_a_busy_server_is_asked_again_when_it_says(vendor: Vendor, status: int, asked: dict):
    reply = error(status, {"error": {"message": "busy"}}, **asked)
    again, *rest = await heard(vendor, reply, Reply(pieces=(whole(vendor),)))
    assert isinstance(again, Retrying)
    assert (again.status, again.delay_s) == (status, 0.005)
    assert rest == HEARD


async def test_a_date_far_away_is_not_waited_for(vendor: Vendor):
    reply = error(429, {"error": {"message": "later"}}, retry_after=_later(3600))
    _, failure, requests = await failed(vendor, reply)
    assert failure.failure == "rate_limited"
    assert requests == 1


@pytest.mark.parametrize(
    "asked", ["Mon, 99 Foo 99999 99:99:99 GMT", "Fri, 31 Dec 9999999999 23:59:59 GMT", "1e999", "٣", "", "-1", "x" * 9999]
)  # fmt: skip
def test_no_wish_for_a_pause_breaks_anything(asked: str):
    pause = read_retry_after_s({"retry-after": asked})
    assert pause is None or isinstance(pause, float | int)


async def test_a_server_too_slow_to_begin_is_asked_again(vendor: Vendor):
    """The first attempt gets no head at all; the second one is answered."""
    body = whole(vendor)
    seen = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        if seen > 1:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        await reader.read()
        writer.transport.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        model = vendor.model(url, answer_timeout_s=0.2)
        again, *rest = await events_of(model)
        await model.close()
        await asyncio.sleep(0.01)
    assert isinstance(again, Retrying)
    assert rest == HEARD


async def test_a_stall_before_a_word_is_tried_again_after_one_it_is_not(vendor: Vendor):
    body = whole(vendor)
    silent = Reply(pieces=(body[:10],), hang=True)
    again, *rest = await heard(vendor, silent, Reply(pieces=(body,)), idle_timeout_s=0.2)
    assert isinstance(again, Retrying)
    assert rest == HEARD
    spoken = Reply(pieces=(body[: body.index(b'"lo"')],), hang=True)
    events, failure, requests = await failed(vendor, spoken, idle_timeout_s=0.2)
    assert events == [TextDelta("Hel")]
    assert failure.failure == "timed_out"
    assert requests == 1


@pytest.mark.parametrize(
    "raw", [b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\ncontent-", b"\x15\x03\x01\x00\x02\x02F"]
)
async def test_somebody_else_behind_the_address_is_a_failure(vendor: Vendor, raw: bytes):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        stream = expect_type(AsyncGenerator, vendor.model(url).stream(HELLO))
        again = await anext(stream)
        await stream.aclose()
    assert isinstance(again, Retrying)


async def test_a_conversation_too_long_says_so_and_is_not_repeated(vendor: Vendor):
    _, failure, requests = await failed(vendor, vendor.too_long)
    assert failure.failure == "too_long"
    assert requests == 1


async def _calls(vendor: Vendor, *calls: tuple[Any, Any, str], **more: str) -> list[Any]:
    body = vendor.encode(*vendor.calls(*calls, **more))
    return await heard(vendor, Reply(pieces=(body,)))


@pytest.mark.parametrize(
    "text", ["{", '{"a": }', "[1]", '"x"', "nonsense", '{"a": 1}}', "{'a': 1}", "\ud800"]
)
async def test_input_that_is_no_object_reaches_the_caller_as_it_is(vendor: Vendor, text: str):
    if text == "\ud800":
        text = "{\\ud800"
    events = await _calls(vendor, ("t", "Read", text))
    (ended,) = [event for event in events if isinstance(event, ToolEnded)]
    assert ended.broken == text or ended.input == ([1] if text == "[1]" else "x")
    assert events[-1].stop_reason == "tool_use"


async def test_calls_of_one_id_are_two_calls(vendor: Vendor):
    events = await _calls(vendor, ("t", "Read", '{"a": 1}'), ("t", "Read", '{"a": 2}'))
    ended = [event.input for event in events if isinstance(event, ToolEnded)]
    assert ended == [{"a": 1}, {"a": 2}]
    assert sum(isinstance(event, ToolStarted) for event in events) == 2


@pytest.mark.parametrize("name", [None, "", 5])
async def test_a_call_without_a_name_is_a_call(vendor: Vendor, name: object):
    events = await _calls(vendor, ("t", name, "{}"))
    (ended,) = [event for event in events if isinstance(event, ToolEnded)]
    assert isinstance(ended.name, str)
    assert events[-1].stop_reason == "tool_use"


async def test_the_limit_in_the_middle_of_a_call_leaves_a_broken_call(vendor: Vendor):
    reason = "max_tokens" if vendor.encode is named else "length"
    events = await _calls(vendor, ("t", "Write", '{"content": "abc'), reason=reason)
    assert events[-2] == ToolEnded("t", "Write", {}, '{"content": "abc')
    assert events[-1].stop_reason == "max_tokens"


async def test_a_refusal_is_told_apart(vendor: Vendor):
    text = copy.deepcopy(vendor.text)
    if vendor.encode is named:
        text[5]["delta"]["stop_reason"] = "refusal"
    else:
        text[2]["choices"][0]["finish_reason"] = "content_filter"
    events = await heard(vendor, Reply(pieces=(vendor.encode(*text),)))
    assert events[-1].stop_reason == "refusal"


async def test_turns_share_a_connection_even_without_a_pause_between_them(vendor: Vendor):
    """What a server sends after the last event does not cost the next turn a new connection."""
    body = whole(vendor)
    replies = [
        Reply(pieces=(body,)),
        Reply(pieces=(body, b": the end comes later\n\n"), pause_s=0.01),
        Reply(headers={"content-encoding": "gzip"}, pieces=(gzip.compress(body, mtime=0),)),
        Reply(pieces=(body,)),
    ]
    async with model_server(*replies) as server:
        model = vendor.model(server.url)
        for _ in replies:
            assert await events_of(model) == HEARD
        await model.close()
    assert [asked.connection for asked in server.asked] == [1] * len(replies)


async def test_an_answer_that_never_ends_after_its_end_is_not_waited_for(vendor: Vendor):
    reply = Reply(pieces=(whole(vendor),), hang=True)
    async with model_server(reply) as server:
        model = vendor.model(server.url)
        assert await events_of(model) == HEARD
        assert await events_of(model) == HEARD
        await model.close()
    assert server.connections == 2


@pytest.mark.parametrize("where", ["the prompt", "a result"])
async def test_a_picture_that_is_too_large_is_a_sentence_in_every_request(
    vendor: Vendor, where: str
):
    """It stays in the history, so one that was sent as it is would make every later turn fail."""
    huge = ImageBlock("image/png", PIXEL + "A" * (21 * 1024 * 1024))
    small = ImageBlock("image/png", PIXEL)
    if where == "the prompt":
        messages: tuple[Message, ...] = (UserMessage((TextBlock("Look"), huge, small)),)
    else:
        messages = (
            UserMessage((TextBlock("Look"),)),
            AssistantMessage((ToolUseBlock("t", "Read", {}),)),
            UserMessage((ToolResultBlock("t", (TextBlock("two"), huge, small)),)),
        )
    later = (*messages, AssistantMessage((TextBlock("Well."),)), UserMessage((TextBlock("Go on"),)))
    async with model_server(Reply(pieces=(whole(vendor),))) as server:
        model = vendor.model(server.url)
        for sent in (messages, later):
            assert await events_of(model, ModelRequest(messages=sent)) == HEARD
        await model.close()
    for asked in server.asked:
        body = json.dumps(asked.body)
        assert "A picture was left out here" in body
        assert len(body) < 10_000
        assert PIXEL in body
