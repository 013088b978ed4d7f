"""Calls that take long give signs of life."""

import asyncio

import pytest

from handaxe.agent.events import RunStarted, ToolAnswered, ToolCalled
from handaxe.contract.call import ToolCall
from handaxe.contract.result import ToolResult
from handaxe.frontends.stream_json.codec import StreamCodec, StreamOptions
from handaxe.frontends.stream_json.result_message import MessageLookups
from handaxe.frontends.stream_json.server import send_heartbeats


@pytest.fixture
def codec() -> StreamCodec:
    made = StreamCodec("s", lambda _: {}, StreamOptions(), MessageLookups())
    list(made.messages(RunStarted("s", "m", ())))
    return made


async def test_open_calls_are_told_again_and_again_until_they_end(codec: StreamCodec):
    list(codec.messages(ToolCalled(ToolCall("c1", "Bash", {}))))
    list(codec.messages(ToolCalled(ToolCall("c2", "Agent", {}))))
    told: list[dict] = []
    beats = asyncio.Event()

    def write(message: dict) -> None:
        told.append(message)
        if len(told) == 3:
            beats.set()

    beating = asyncio.ensure_future(send_heartbeats(codec, write, 0.01))
    await asyncio.wait_for(beats.wait(), 30)
    list(codec.messages(ToolAnswered(ToolResult("x", id="c1", tool="Bash"))))
    beating.cancel()
    assert {(message["type"], message["tool_use_id"]) for message in told} == {
        ("tool_progress", "c1")
    }
    assert told[0]["tool_name"] == "Bash"
    assert told[0]["parent_tool_use_id"] is None
    assert told[-1]["elapsed_time_seconds"] >= told[0]["elapsed_time_seconds"] >= 0
    assert list(codec.build_heartbeats(0)) == []
