"""A whole agent and a server that misbehaves: the work goes on, and history stays valid."""

import json
from pathlib import Path

import pytest
from pairing import complaints
from tests.expected_types import expect_type
from tests.models.serving import Reply, error, model_server, named
from tests.models.vendors import VENDORS, Vendor

from handaxe import Agent, Session
from handaxe.agent.events import RunFinished
from handaxe.contract.events import Compacted
from handaxe.contract.ports.model import Retrying


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return VENDORS[request.param]


def stream(vendor: Vendor, *events: dict) -> Reply:
    return Reply(pieces=(vendor.encode(*events),))


async def test_every_mishap_is_survived_in_one_run(vendor: Vendor, tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n")
    read = json.dumps({"file_path": "a.txt"})
    cut_reason = "max_tokens" if vendor.encode is named else "length"
    spoken = vendor.encode(*vendor.text)
    replies = [
        error(529, {"error": {"type": "overloaded_error", "message": "busy"}}, retry_after_ms="1"),
        stream(vendor, *vendor.calls(("same", "Read", read), ("same", "Read", read[:-3]))),
        stream(vendor, *vendor.calls(("same", None, "{}"))),
        stream(vendor, *vendor.calls(("cut", "Write", '{"content": "abc'), reason=cut_reason)),
        Reply(pieces=(spoken[: spoken.index(b'"lo"')],), cut=True),
        stream(vendor, *vendor.calls(("odd id!", "Read", read))),
        vendor.too_long,
        stream(vendor, *vendor.text),
        stream(vendor, *vendor.text),
    ]
    seen: list[object] = []
    async with model_server(*replies) as server, Session(tmp_path) as session:
        model = vendor.model(server.url)
        async with Agent(model, session) as agent:
            async for event in agent.run("Go."):
                seen.append(event)
            messages = agent.messages
        await model.close()
    final = expect_type(RunFinished, seen[-1])
    assert (final.result, final.is_error) == ("Hello", False)
    assert len(server.asked) == len(replies)
    assert any(isinstance(event, Retrying) for event in seen)
    assert any(isinstance(event, Compacted) for event in seen)
    assert complaints(messages) == []
    # The last request before the summary still held everything, each call with its answer.
    assert _unanswered(server.asked[6].body["messages"]) == []


def _unanswered(messages: list[dict]) -> list[str]:
    """Ids of calls without exactly one answer, in either format."""
    asked: list[str] = []
    answered: list[str] = []
    for message in messages:
        asked += [call["id"] for call in message.get("tool_calls", ())]
        if message["role"] == "tool":
            answered.append(message["tool_call_id"])
        content = message["content"] if isinstance(message["content"], list) else []
        asked += [block["id"] for block in content if block["type"] == "tool_use"]
        answered += [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    assert len(asked) == 5
    return [] if asked == answered and len(set(asked)) == len(asked) else asked
