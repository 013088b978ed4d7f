"""Deferred tools: found by what they are about, loaded once, appended and never inserted."""

import json

import pytest

from handaxe import Agent, Effects, Session
from handaxe.app.session import get_parts
from handaxe.catalog.deferral import format_deferred_tools
from handaxe.catalog.edit_formats import EDIT_TOOLS
from handaxe.catalog.tool_ranking import ToolEntry, rank_tools
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.models.scripted import ScriptedModel
from handaxe.models.scripted.script import ModelScript

ENTRIES = [
    ToolEntry("mcp__slack__send_message", "", "Send a message to a channel.", ("channel", "text")),
    ToolEntry("mcp__slack__list_channels", "", "List all channels.", ()),
    ToolEntry("mcp__mail__send", "", "Send an electronic letter.", ("to", "subject", "body")),
    ToolEntry("Config", "show or change settings, options", "The settings.", ("key", "value")),
    ToolEntry("mcp__github__create_issue", "", "Open an issue.", ("title", "body")),
]


@pytest.mark.proves("RG-5")
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("mcp__mail__send", ["mcp__mail__send"]),
        ("please use mcp__github__create_issue now", ["mcp__github__create_issue"]),
        ("create_issue", ["mcp__github__create_issue"]),
        ("slack message", ["mcp__slack__send_message"]),
        ("+mail send", ["mcp__mail__send"]),
        ("settings", ["Config"]),
        ("subject", ["mcp__mail__send"]),
        ("select:config, mcp__mail__send", ["Config", "mcp__mail__send"]),
        ("settings; letter", ["Config", "mcp__mail__send"]),
        ("channels", ["mcp__slack__list_channels"]),
        ("zebra", []),
        ("+zebra send", []),
        ("select:nothing", []),
        (";;", []),
    ],
)
def test_a_query_finds_what_it_means(query, best):
    assert rank_tools(query, ENTRIES, 5)[: len(best) or 5] == best


def test_no_more_is_found_than_asked_for():
    assert len(rank_tools("send", ENTRIES, 1)) == 1


def remote_tools(count: int, server: str = "big") -> list[Tool]:
    class Args(ToolArgs, kw_only=True):
        text: str

    def make(number: int) -> Tool:
        async def call(_self, args, _ctx):
            return ToolResult(args.text)

        name = f"mcp__{server}__tool_{number:03}"
        doc = f"Does thing number {number}. " + "A long description. " * 20
        cls = type(
            f"T{number}", (Tool,), {"name": name, "__doc__": doc, "args_type": Args, "call": call}
        )
        return cls()

    return [make(number) for number in range(count)]


@pytest.mark.proves("RG-5", "TC-8")
async def test_three_hundred_tools_cost_little_before_the_first_search(tmp_path):
    from handaxe.text.tokens import estimate_tokens

    async with Session(tmp_path, home=tmp_path / "home", tools=remote_tools(300)) as session:
        sent = session.tools(deferred=True)
        assert not [tool for tool in sent if tool["name"].startswith("mcp__")]
        waiting = get_parts(session).deferral.waiting()
        assert len([name for name in waiting if name.startswith("mcp__")]) == 300
        assert estimate_tokens(format_deferred_tools(waiting)) < 2_000
        found = await session.call("ToolSearch", query="select:mcp__big__tool_007")
        assert found.data["matches"] == ["mcp__big__tool_007"]
        again = session.tools(deferred=True)
        assert again[: len(sent)] == sent
        assert [tool["name"] for tool in again[len(sent) :]] == ["mcp__big__tool_007"]


@pytest.mark.proves("RG-5")
async def test_a_wrong_call_before_loading_is_answered_with_the_schema(tmp_path):
    async with Session(
        tmp_path, home=tmp_path / "home", tools=remote_tools(300), allow=["mcp__big__*"]
    ) as session:
        session.tools(deferred=True)
        early = await session.call("mcp__big__tool_001", txt="hello")
        assert early.code == "call.not_loaded"
        assert "text" in early.data["inputSchema"]["properties"]
        now = await session.call("mcp__big__tool_001", text="hello")
        assert now.text == "hello"


@pytest.mark.proves("RG-5", "RG-3", "RG-8")
async def test_what_was_loaded_survives_a_restart_in_its_order(tmp_path):
    options = {"home": tmp_path / "home", "tools": remote_tools(300)}
    async with Session(tmp_path, **options) as session:
        session.tools(deferred=True)
        await session.call("ToolSearch", query="select:mcp__big__tool_009,mcp__big__tool_001")
        before = json.dumps(session.tools("anthropic", deferred=True))
    async with Session(tmp_path, session_id=session.id, **options) as again:
        assert json.dumps(again.tools("anthropic", deferred=True)) == before


async def test_a_library_that_does_not_defer_sees_everything(tmp_path):
    async with Session(
        tmp_path, home=tmp_path / "home", tools=remote_tools(300), allow=["mcp__big__*"]
    ) as session:
        assert len([t for t in session.tools() if t["name"].startswith("mcp__")]) == 300
        assert (await session.call("mcp__big__tool_001", text="x")).ok


@pytest.mark.parametrize(("when", "is_deferred"), [("never", False), ("always", True)])
async def test_the_setting_has_the_last_word(tmp_path, when, is_deferred):
    settings = {"tool_search": {"when": when, "limit_chars": 10}}
    async with Session(tmp_path, home=tmp_path / "home", settings=settings) as session:
        names = [tool["name"] for tool in session.tools(deferred=True)]
        assert ("Config" not in names) is is_deferred


async def test_without_the_search_tool_nothing_is_deferred(tmp_path):
    settings = {"tool_search": {"limit_chars": 10}}
    async with Session(
        tmp_path, home=tmp_path / "home", settings=settings, tools="Read,Config"
    ) as session:
        assert [tool["name"] for tool in session.tools(deferred=True)] == ["Config", "Read"]


def own_tools(count, chars=100):
    """Tools of a program, each with a name that looks like its neighbours'."""

    class Args(ToolArgs):
        text: str

    def make(number):
        async def call(self, args, ctx):
            return ToolResult(f"{number}: {args.text}")

        cls = type(f"Own{number}", (Tool,), {"name": f"Own{number}", "__doc__": "x" * chars})
        cls.args_type, cls.call = Args, call
        cls.effects = Effects.pure()
        return cls

    return [make(number) for number in range(count)]


@pytest.mark.proves("RG-5", "RG-8")
async def test_many_own_tools_wait_and_few_do_not(tmp_path):
    for count, waits in ((3, False), (200, True)):
        async with Session(tmp_path, tools=own_tools(count)) as session:
            names = {tool["name"] for tool in session.tools(deferred=True)}
            assert ("Own1" not in names) is waits
            assert {"Read", "ToolSearch"} <= names


@pytest.mark.proves("RG-5", "RG-8")
async def test_a_valid_call_before_loading_runs_and_loads_its_schema(tmp_path):
    async with Session(tmp_path, tools=own_tools(200)) as session:
        before = session.tools(deferred=True)
        result = await session.call("Own17", text="hi")
        assert (result.ok, result.text) == (True, "17: hi")
        after = session.tools(deferred=True)
        assert after[: len(before)] == before
        assert [tool["name"] for tool in after[len(before) :]] == ["Own17"]


@pytest.mark.proves("RG-5")
@pytest.mark.parametrize("query", ["Own1", "select:Own1", " Own1 ", "select: Own1"])
async def test_an_exact_name_loads_that_tool_and_no_other(tmp_path, query):
    async with Session(tmp_path, tools=own_tools(200)) as session:
        session.tools(deferred=True)
        found = await session.call("ToolSearch", query=query)
        assert found.data["matches"] == ["Own1"]


@pytest.mark.parametrize("limit", [0, 10**9], ids=["deferred", "all sent"])
@pytest.mark.parametrize("query", ["select:Read,Own3", "select:own3,read", "Read", "select:Read"])
async def test_a_named_tool_that_needs_no_loading_is_found_and_not_sent_twice(
    tmp_path, query, limit
):
    settings = {"tool_search": {"limit_chars": limit}}
    async with Session(
        tmp_path, tools=["ToolSearch", "Read", *own_tools(9)], settings=settings
    ) as s:
        s.tools(deferred=True)
        found = await s.call("ToolSearch", query=query)
        assert "Read" in found.data["matches"]
        assert "No tool matches" not in found.text
        assert all(one["was_loaded"] for one in found.data["tools"] if one["name"] == "Read")
        names = [schema["name"] for schema in s.tools(deferred=True)]
        assert len(names) == len(set(names))


@pytest.mark.proves("RG-5")
async def test_all_selected_tools_are_loaded_and_wrong_names_are_reported(tmp_path):
    async with Session(tmp_path, tools=own_tools(200)) as session:
        session.tools(deferred=True)
        names = [f"Own{number}" for number in range(9)]
        found = await session.call("ToolSearch", query=f"select:{','.join(names)},Owm12,zzzz")
        assert found.data["matches"] == names
        assert "There is no tool 'Owm12'. Did you mean 'Own" in found.text
        assert "There is no tool 'zzzz'." in found.text
        lost = await session.call("ToolSearch", query="select:Onw5")
        assert lost.data["matches"] == []
        assert "There is no tool 'Onw5'. Did you mean 'Own5'?" in lost.text


MAX_FIRST_CHARS = 16_000
"""What the tools of an agent's first request may cost its model."""
ALWAYS_SENT = {"Agent", "Bash", "Glob", "Grep", "Read", "Skill", "TodoWrite", "ToolSearch", "Write"}


@pytest.mark.proves("RG-5")
@pytest.mark.parametrize("edit_format", EDIT_TOOLS)
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_the_tools_of_a_first_request_are_short_and_the_others_are_named(
    tmp_path, edit_format, provider
):
    settings = {"edit": {"format": edit_format}}
    async with Agent(ScriptedModel(ModelScript()), root=tmp_path, settings=settings) as agent:
        sent = agent.session.tools(provider, deferred=True)
        chars = len(json.dumps(sent, ensure_ascii=False, separators=(",", ":")))
        assert chars <= MAX_FIRST_CHARS
        names = {tool.get("function", tool)["name"] for tool in sent}
        assert {*ALWAYS_SENT, EDIT_TOOLS[edit_format]} <= names
        everything = {tool["name"] for tool in agent.session.tools("anthropic")}
        waiting = set(get_parts(agent.session).deferral.waiting())
        assert names | waiting == everything
        found = await agent.session.call("ToolSearch", query="select:TaskOutput,Undo")
        assert found.ok
        more = agent.session.tools(provider, deferred=True)
        assert more[: len(sent)] == sent
        later = {tool.get("function", tool)["name"] for tool in more[len(sent) :]}
        assert later == {"TaskOutput", "Undo"}


async def test_a_session_that_defers_nothing_sends_every_definition(tmp_path):
    settings = {"tool_search": {"when": "never"}}
    async with Agent(ScriptedModel(ModelScript()), root=tmp_path, settings=settings) as agent:
        session = agent.session
        assert session.tools("anthropic", deferred=True) == session.tools("anthropic")


async def test_without_tool_search_every_definition_is_sent(tmp_path):
    async with Agent(ScriptedModel(ModelScript()), root=tmp_path, deny=["ToolSearch"]) as agent:
        session = agent.session
        assert session.tools("anthropic", deferred=True) == session.tools("anthropic")
