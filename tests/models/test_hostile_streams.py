"""Whatever a server sends as JSON, what comes out is well-formed events or a failed attempt."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.contract.ports.model import ModelEvent, ToolEnded, ToolInputDelta, ToolStarted
from handaxe.models.anthropic.stream import MessageReader
from handaxe.models.failures import AttemptFailed, ModelServer
from handaxe.models.openai.stream import CompletionReader

# A busy machine is no reason to fail.

SERVER = ModelServer("V", "http://v", "m", "K", "U")

MESSAGES = [
    {"type": "message_start", "message": {"id": "m", "model": "x", "content": [], "stop_reason": None,
                                          "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "t", "signature": "s"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "b"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "c", "name": "Read", "input": {"a": 1}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_stop", "index": 2},
    {"type": "content_block_start", "index": 3, "content_block": {"type": "redacted_thinking", "data": "x"}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
    {"type": "error", "error": {"type": "overloaded_error", "message": "no"}},
    {"type": "message", "id": "m", "model": "x", "stop_reason": "end_turn",
     "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "c", "name": "R", "input": {}}]},
    {"type": "message_stop"},
]  # fmt: skip
CHUNKS = [
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}}]},
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"reasoning_content": "hm", "refusal": "no"}}]},
    {"choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": "a"}]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "Read", "arguments": "{"}}]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"id": "u", "name": "Read", "arguments": {"a": 1}}]}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [{"index": 0, "message": {"content": "a", "tool_calls": []}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2}}},
    {"error": {"message": "no", "type": "server_error", "code": 500}},
    {"type": "[DONE]"},
]  # fmt: skip

ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.just(10**30), st.floats(allow_nan=False),
    st.sampled_from(["", "tool_use", "x", "\x00", "é"]), st.just([]), st.just({}), st.just([[]]),
    st.just({"type": {}}), st.just([{"type": "tool_use", "input": 5}]), st.just([5, None, "x"]),
)  # fmt: skip


@st.composite
def spoiled(draw: st.DrawFn, templates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events in any order, some of them with one part replaced or gone."""
    events: list[dict[str, Any]] = []
    for template in draw(st.lists(st.sampled_from(templates), max_size=12)):
        event = msgspec.json.decode(msgspec.json.encode(template))
        if draw(st.booleans()):
            place: Any = event
            while True:
                keys = list(place) if isinstance(place, dict) else list(range(len(place)))
                if not keys:
                    break
                key = draw(st.sampled_from(keys))
                if isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
                    place = place[key]
                    continue
                if isinstance(place, dict) and draw(st.booleans()):
                    del place[key]
                else:
                    place[key] = draw(ODD)
                break
        events.append(event)
    return events


def heard(reader: MessageReader | CompletionReader, events: list[dict[str, Any]]) -> None:
    """Everything a reader makes of the events is what its type says, and calls begin and end."""
    found: list[ModelEvent] = []
    try:
        for event in events:
            found += reader.read(event)
            if reader.is_done:
                break
        found += reader.end()
    except AttemptFailed:
        pass
    for event in found:
        assert msgspec.convert(msgspec.to_builtins(event), ModelEvent) == event
    started: list[str] = []
    for event in found:
        if isinstance(event, ToolStarted):
            started.append(event.id)
        elif isinstance(event, ToolInputDelta | ToolEnded):
            assert event.id in started


@given(spoiled(MESSAGES))
def test_messages_with_anything_in_them(events: list[dict[str, Any]]):
    heard(MessageReader(SERVER), events)


@given(spoiled(CHUNKS))
def test_completions_with_anything_in_them(events: list[dict[str, Any]]):
    heard(CompletionReader(SERVER), events)


@pytest.mark.parametrize("index", [None, "0", [], {}, 1.5])
def test_a_call_is_heard_whatever_its_index_is(index: object):
    events = [dict(event) for event in MESSAGES[8:11]]
    for event in events:
        event["index"] = index
    reader = MessageReader(SERVER)
    found = [given for event in events for given in reader.read(event)]
    assert found[-1] == ToolEnded("c", "Read", {})
