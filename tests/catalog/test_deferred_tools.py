"""Which tools wait to be loaded: the ecosystem's variable, and the settings."""

import pytest

from handaxe import Session, Tool, ToolArgs, ToolContext, ToolResult
from handaxe.app.session import get_parts


class FarAway(Tool[ToolArgs]):
    """Lies far away."""

    name = "mcp__far__away"

    async def call(self, args: ToolArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult("here")


@pytest.mark.proves("RG-5", "TC-8")
@pytest.mark.parametrize(
    ("said", "when", "waits"),
    [
        ("true", "never", True),
        ("false", "always", False),
        ("auto", "never", True),
        ("auto:0", "never", True),
        ("auto:50", "always", False),
        ("nonsense", "always", True),
        ("nonsense", "never", False),
        ("", "always", True),
    ],
)
async def test_a_variable_chooses_when_tools_wait(project, monkeypatch, said, when, waits):
    settings = {"tool_search": {"when": when, "limit_chars": 0}}
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", said)
    async with Session(project, tools=["Read", "ToolSearch", FarAway], settings=settings) as one:
        sent = {tool.name for tool in get_parts(one).deferral.sent()}
        assert (FarAway.name not in sent) is waits
        assert (FarAway.name in get_parts(one).deferral.waiting()) is waits


async def test_where_there_are_no_servers_none_is_connected_anew(project):
    async with Session(project) as session:
        answer = await session.call("ToolSearch", query="reconnect:a")
    assert (answer.code, answer.data) == ("mcp.unknown_server", {})
