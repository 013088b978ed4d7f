"""Anthropic searches for tools itself: what it found stays found, whoever answers next."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.test_deferral import remote_tools
from tests.models.searching_server import (
    SearchingReplies,
    find_refusal,
    say,
    search,
    stream,
    use,
)
from tests.models.serving import error, model_server

from handaxe import Agent, Session, SetupError
from handaxe.app.session import get_parts
from handaxe.contract.content import TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    ToolUseBlock,
    UserMessage,
    VendorBlock,
)
from handaxe.contract.ports.model import ModelRequest, ToolSpec
from handaxe.models.anthropic import AnthropicModel
from handaxe.models.anthropic.request import build_request
from handaxe.models.factory import FallbackModel
from handaxe.models.http.asyncio_transport import DirectTransport
from handaxe.models.recording import RecordingModel, ReplayModel
from handaxe.schema.user_turn import build_result_block

sys.path.insert(0, str(Path(__file__).parent))
from players import Player, calls, says

TOOL = "mcp__big__tool_007"
OTHER = "mcp__big__tool_009"
FIND_AND_CALL = [say("Looking."), *search(1, TOOL, OTHER), use("t1", TOOL, text="hello")]


@asynccontextmanager
async def searching(*answers):
    """The server, its replies, and a model that speaks with it."""
    async with model_server() as server:
        server.replies = replies = SearchingReplies(server, *answers)
        try:
            yield server, replies, open_claude(server)
        finally:
            for model in replies.models:
                await model.close()
        assert replies.refusals == []


def open_claude(server, name="claude-sonnet-4-5"):
    wire = DirectTransport({}, idle_timeout_s=5)
    model = AnthropicModel(name, wire, base_url=server.url, token="k", max_retries=0)
    server.replies.models.append(model)
    return model


def make_options(project, **more):
    return {
        "root": project,
        "home": project.parent / "home",
        "tools": [*remote_tools(60), "ToolSearch", "Read"],
        "settings": {"tool_search": {"native": True}},
        "allow": ["mcp__big__*"],
        **more,
    }


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def by_name(body):
    return {tool["name"]: tool for tool in body["tools"]}


def without_mark(blocks):
    return [{k: v for k, v in b.items() if k != "cache_control"} for b in blocks]


@pytest.mark.proves("RG-8")
async def test_the_provider_finds_a_tool_and_the_model_calls_it_in_the_same_answer(project):
    async with searching(FIND_AND_CALL, [say("Done.")]) as (server, _, model):
        async with Agent(model, **make_options(project)) as agent:
            assert (await agent.ask("go")).result == "Done."
            assert get_parts(agent.session).deferral.loaded == (TOOL, OTHER)
        first, second = (asked.body for asked in server.asked)
    tools = by_name(first)
    assert "ToolSearch" not in tools
    assert first["tools"][0]["type"].startswith("tool_search_tool_")
    assert [name for name, tool in tools.items() if not tool.get("defer_loading")] == [
        "tool_search_tool_bm25",
        "Read",
    ]
    assert len(tools) == 62
    # What was found changes nothing of what was sent before, so the cache holds.
    assert second["tools"] == first["tools"]
    assert second["messages"][1]["content"] == FIND_AND_CALL
    assert second["messages"][2]["content"][0]["content"][0]["text"] == "hello"


@pytest.mark.proves("RG-8")
async def test_another_process_goes_on_with_what_was_found(project):
    answers = FIND_AND_CALL, [say("Done.")], [use("t2", OTHER, text="again")], [say("Bye.")]
    async with searching(*answers) as (server, _, model):
        async with Agent(model, **make_options(project)) as agent:
            await agent.ask("go")
        options = make_options(project, session_id=agent.session.id)
        async with Agent(open_claude(server), **options) as agent:
            assert (await agent.ask("and?")).result == "Bye."
            assert get_parts(agent.session).deferral.loaded == (TOOL, OTHER)
        before, after = server.asked[1].body, server.asked[2].body
    assert after["tools"] == before["tools"]
    assert without_mark(after["messages"][1]["content"]) == FIND_AND_CALL


async def test_a_tool_that_is_gone_is_no_longer_referred_to(project):
    async with searching(FIND_AND_CALL, [say("Done.")], [say("Bye.")]) as (server, _, model):
        async with Agent(model, **make_options(project)) as agent:
            await agent.ask("go")
        options = make_options(project, session_id=agent.session.id)
        options["tools"] = [*remote_tools(60)[:8], "ToolSearch", "Read"]
        options["settings"]["tool_search"] |= {"when": "always"}
        async with Agent(open_claude(server), **options) as agent:
            assert (await agent.ask("and?")).result == "Bye."
        sent = server.asked[-1].body["messages"][1]["content"][2]["content"]
    assert [one["tool_name"] for one in sent["tool_references"]] == [TOOL]


@pytest.mark.proves("RG-8")
async def test_a_summary_leaves_what_was_found_with_the_model(project):
    answers = FIND_AND_CALL, [say("Done.")], [say("Yes.")], [say("A summary.")], [say("Bye.")]
    async with searching(*answers) as (server, _, model):
        async with Agent(model, **make_options(project)) as agent:
            await agent.ask("go")
            await agent.ask("Is it so?")
            assert await agent.compact() is not None
            await agent.ask("and?")
        asked, after = server.asked[3].body, server.asked[4].body
    assert asked["tools"] == server.asked[0].body["tools"]
    # Nothing refers to them any more, so they are sent as tools that do not wait.
    assert "tool_search_tool_result" not in str(after["messages"])
    assert not by_name(after)[TOOL].get("defer_loading")
    assert not by_name(after)[OTHER].get("defer_loading")
    assert by_name(after)["mcp__big__tool_001"]["defer_loading"]


@pytest.mark.proves("RG-8")
async def test_another_provider_takes_over_in_the_middle_and_gives_back(project):
    busy = error(529, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    other = Player(calls(("p1", OTHER, {"text": "there"})), says("Done."), name="other")
    async with searching(FIND_AND_CALL, busy, busy, [say("Bye.")]) as (server, _, model):
        both = FallbackModel(model, [lambda: other])
        async with Agent(both, **make_options(project)) as agent:
            assert (await agent.ask("go")).result == "Done."
            assert (await agent.ask("and?")).result == "Bye."
        last = server.asked[-1].body
    names = [spec.name for spec in other.requests[0].tools]
    assert {"ToolSearch", TOOL, OTHER} <= set(names)
    assert "mcp__big__tool_001" not in names
    assert last["messages"][1]["content"] == FIND_AND_CALL
    assert last["tools"] == server.asked[0].body["tools"]


async def test_a_search_that_was_cut_off_is_not_sent_back(project):
    broken = stream([say("Looking."), search(1, TOOL)[0]], is_cut=True)
    async with searching(broken, [say("Done.")]) as (server, _, model):
        async with Agent(model, **make_options(project)) as agent:
            assert (await agent.ask("go")).result == "Looking.Done."
        assert "server_tool_use" not in str(server.asked[1].body["messages"])


@pytest.mark.parametrize(
    ("name", "can"),
    [("claude-opus-4-1", False), ("claude-sonnet-4-20250514", False), ("claude-opus-4", False),
     ("claude-3-5-haiku-latest", False), ("my-model", False), ("claude-opus-4-5", True),
     ("claude-haiku-4-5-20251001", True), ("us.anthropic.claude-sonnet-4-6", True)],
)  # fmt: skip
async def test_models_that_cannot_search_are_sent_tool_search(project, name, can):
    async with searching([say("Done.")]) as (server, _, _):
        async with Agent(open_claude(server, name), **make_options(project)) as agent:
            await agent.ask("go")
        tools = by_name(server.asked[0].body)
    assert ("ToolSearch" in tools) is not can
    assert (TOOL in tools) is can


async def test_nothing_changes_unless_it_is_asked_for(project):
    async with searching([say("Done.")]) as (server, _, model):
        async with Agent(model, **make_options(project, settings={})) as agent:
            await agent.ask("go")
        assert "defer_loading" not in str(server.asked[0].body)


@pytest.mark.proves("RG-8")
async def test_a_loop_of_ones_own_sends_a_list_that_stays_the_same(project):
    options = make_options(project)
    async with Session(options.pop("root"), **options) as session:
        tools = session.tools("anthropic", deferred="native")
        asked = [{"role": "user", "content": [say("go")]}]
        assert find_refusal({"tools": tools, "messages": asked}) is None
        assert (await session.call(TOOL, text="x")).ok
        assert session.tools("anthropic", deferred="native") == tools
        assert "ToolSearch" not in [tool["name"] for tool in tools]
        with pytest.raises(SetupError, match="openai"):
            session.tools("openai", deferred="native")
    async with Session(project, tools="Read") as session:
        assert session.tools("anthropic", deferred="native") == session.tools("anthropic")


async def test_a_recording_holds_what_the_provider_found(project):
    path = project.parent / "recording.jsonl"
    async with (
        searching(FIND_AND_CALL, [say("Done.")]) as (_, _, model),
        Agent(RecordingModel(model, path), **make_options(project)) as agent,
    ):
        await agent.ask("go")
    async with Agent(ReplayModel(path, strict=True), **make_options(project)) as agent:
        assert (await agent.ask("go")).result == "Done."
        assert get_parts(agent.session).deferral.loaded == (TOOL, OTHER)


def make_spec(name):
    schema = {"type": "object", "properties": {}}
    return ToolSpec(name=name, description=name, input_schema=schema, examples=({},),
                    finds_tools=name == "ToolSearch")  # fmt: skip


def make_block(kind, number, names):
    found, text = search(number, *names), TextBlock("x")
    return {
        "search": (VendorBlock("anthropic", found[0]), VendorBlock("anthropic", found[1])),
        "cut": (VendorBlock("anthropic", found[0]),),
        "lost": (VendorBlock("anthropic", found[1]),),
        "foreign": (VendorBlock("somebody", {"type": "wish", "id": "1"}),),
        "odd": (VendorBlock("anthropic", {"type": "tool_search_tool_result", "content": 3}),),
        "text": (text,),
        "call": (ToolUseBlock(f"t{number}", "Read", {}),),
    }[kind]


KINDS = st.sampled_from(["search", "cut", "lost", "foreign", "odd", "text", "call"])
NAMES = st.sampled_from(["a", "b", "c", "d"])


@settings(max_examples=150, deadline=None)
@given(
    answers=st.lists(
        st.lists(st.tuples(KINDS, st.lists(NAMES, max_size=3)), max_size=4), max_size=3
    ),
    loaded=st.sets(NAMES),
    waiting=st.none() | st.sets(NAMES),
    name=st.sampled_from(["claude-opus-4-5", "claude-opus-4-1"]),
)
def test_any_conversation_with_any_tools_is_one_that_the_api_takes(answers, loaded, waiting, name):
    messages: list[Message] = [UserMessage((TextBlock("go"),))]
    number = 0
    for answer in answers:
        blocks = []
        for kind, names in answer:
            number += 1
            blocks += make_block(kind, number, names)
        results = [build_result_block(b.id, None) for b in blocks if isinstance(b, ToolUseBlock)]
        messages.append(AssistantMessage(tuple(blocks)))
        messages.append(UserMessage((*results, TextBlock("and?"))))
    unloaded = None if waiting is None else tuple(map(make_spec, sorted(waiting - loaded)))
    specs = tuple(map(make_spec, ["Read", "ToolSearch", *sorted(loaded)]))
    request = ModelRequest(messages=tuple(messages), tools=specs, waiting_tools=unloaded)
    assert find_refusal(build_request(name, request)) is None
