"""What a program may hand to a session, and what it is told where it hands over something else."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.agent.players import Player, says

from handaxe import Agent, Effects, Session, SetupError, ToolResult, tool
from handaxe.rules.tool_families import resolve_tool_alias
from handaxe.tools import build_loaders

pytestmark = pytest.mark.proves("AR-1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"add_dirs": 5}, "`add_dirs` takes directories"),
        ({"add_dirs": None}, "`add_dirs` takes directories"),
        ({"add_dirs": {"a": 1}}, "`add_dirs` takes directories"),
        ({"add_dirs": b"/tmp"}, "`add_dirs` takes directories"),
        ({"add_dirs": [5]}, "5 cannot be a directory"),
        ({"add_dirs": ""}, "an empty text"),
        ({"add_dirs": [""]}, "an empty text"),
        ({"permission_mode": ["plan"]}, "is not a permission mode"),
        ({"permission_mode": ""}, "is not a permission mode"),
        ({"trusted": "no"}, "`trusted` is True, False or None"),
        ({"on_question": 5}, "`on_question` must be an async function"),
        ({"classifier": 5}, "`classifier` must be an async function"),
        ({"setting_sources": 5}, "`setting_sources` takes names"),
        ({"setting_sources": [5]}, "`setting_sources` takes names"),
        ({"mcp_servers": 5}, "`mcp_servers` takes a table"),
        ({"mcp_servers": [5]}, "5 is not a table of servers"),
        ({"home": ""}, "cannot be an empty text"),
        ({"home": 5}, "cannot be the data directory"),
        ({"home": False}, "cannot be the data directory"),
        ({"home": "a\0b"}, "cannot be the data directory"),
        ({"home": "a\ud800"}, "cannot be the data directory"),
        ({"tools": ["Read, Nope"]}, "'Nope'"),
    ],
    ids=str,
)
def test_an_argument_of_another_kind_is_refused_in_a_sentence(project, arguments, words):
    with pytest.raises(SetupError) as refused:
        Session(project, **arguments)
    assert words in str(refused.value)


@pytest.mark.parametrize("given", [5, None, "x", [5], ToolResult("x"), {"a": 1}], ids=repr)
async def test_a_turn_that_cannot_be_made_takes_no_news(project, given):
    async with Session(project, allow=["Bash"]) as session:
        started = await session.call("Bash", command="echo over", run_in_background=True)
        while not session.jobs.list_notices():
            await asyncio.sleep(0.01)
        with pytest.raises(SetupError, match="list with the results"):
            session.user_turn(given, "anthropic")
        with pytest.raises(SetupError, match="no provider"):
            session.user_turn([started], "nope")
        assert "completed" in str(session.user_turn([], "anthropic"))


@pytest.mark.parametrize("prompt", [5, True, b"x", {"a": 1}, ["x"], [None], {5}], ids=str)
async def test_a_prompt_of_another_kind_is_refused_in_a_sentence(project, prompt):
    async with Session(project) as session, Agent(Player(says("Hi.")), session) as agent:
        with pytest.raises(SetupError, match="A prompt must be a text or a list"):
            await agent.ask(prompt)
        with pytest.raises(SetupError, match="A prompt must be a text or a list"):
            agent.send(prompt)
        assert (await agent.ask("Hello")).result == "Hi."


def test_an_empty_root_is_not_the_current_directory():
    with pytest.raises(SetupError, match="an empty text"):
        Session("")


@pytest.mark.parametrize("as_given", [str, Path, lambda path: [path], lambda path: iter([path])])
async def test_one_more_directory_needs_no_list_around_it(project, tmp_path, as_given):
    more = tmp_path / "more"
    more.mkdir()
    (more / "a.txt").write_text("x\n")
    async with Session(project, add_dirs=as_given(more)) as session:
        assert session.workdir.roots == (str(project), str(more))
        assert (await session.call("Read", file_path=str(more / "a.txt"))).ok


@pytest.mark.proves("RG-4")
@pytest.mark.parametrize(
    "wanted", ["Read,KillShell", "KillBash Read", ["Read", "KillShell"], ["Read, TaskStop"]]
)
async def test_tools_may_be_chosen_by_their_old_names(project, wanted):
    async with Session(project, tools=wanted) as session:
        assert [known["name"] for known in session.tools()] == ["Read", "TaskStop"]


@pytest.mark.proves("RG-2")
async def test_a_blanket_deny_by_any_of_its_names_hides_a_tool(project):
    servers: dict[str, Any] = {"some": {"command": "false"}}
    for name, load in build_loaders().items():
        for alias in load().aliases:
            # Other formats of an edit go by the rules of Edit.
            assert resolve_tool_alias(alias) in {name, resolve_tool_alias(name)}
    denied = ["ListMcpResourcesTool", "ReadMcpResourceTool", "KillBash"]
    async with Session(project, mcp_servers=servers, deny=denied) as session:
        shown = {known["name"] for known in session.tools()}
        result = await session.call("ListMcpResources")
        assert session.warnings == ()
    assert shown.isdisjoint({"ListMcpResources", "ReadMcpResource", "TaskStop"})
    assert result.code == "permission.denied"


@pytest.mark.proves("RG-2")
async def test_a_rule_that_hides_an_own_tool_is_no_slip_of_the_pen(project):
    @tool(effects=Effects.pure())
    async def measure() -> str:
        """Measure it now."""
        return "1"

    async with Session(project, tools=[measure], deny=["measure", "mesure"]) as session:
        assert "measure" not in {known["name"] for known in session.tools()}
        (doubt,) = session.warnings
    assert doubt.startswith("The deny rule 'mesure' has no effect: there is no tool 'mesure'")


@pytest.mark.proves("PL-2")
@pytest.mark.parametrize(
    ("name", "tools", "words"),
    [
        ("Agent", None, "It is offered where an agent runs"),
        ("Task", None, "It is offered where an agent runs"),
        ("ListMcpResourcesTool", None, "It is offered where a session has MCP servers."),
        ("Grep", "simple", "The selection of tools (`--tools`, `--bare`, `tools=`) excludes it."),
        ("Gerp", None, "Did you mean 'Grep'?"),
    ],
)
async def test_a_call_of_a_tool_that_is_not_there_is_told_why(project, name, tools, words):
    async with Session(project, tools=tools) as session:
        result = await session.call(name)
    assert result.code == "call.unknown_tool"
    assert result.text.startswith(f"There is no tool named {name!r} here. {words}")


@pytest.mark.proves("RG-4")
@pytest.mark.parametrize("said", ["1", "true"])
@pytest.mark.parametrize("variable", ["HANDAXE_SIMPLE", "CLAUDE_CODE_SIMPLE"])
async def test_the_variable_for_simple_holds_beside_own_tools(project, monkeypatch, variable, said):
    @tool(effects=Effects.pure())
    async def measure() -> str:
        """Measure it now."""
        return "1"

    monkeypatch.setenv(variable, said)
    async with Session(project, tools=[measure]) as session:
        assert [known["name"] for known in session.tools()] == ["Bash", "Edit", "Read", "measure"]
    async with Session(project, tools=[measure, "Glob"]) as session:
        assert [known["name"] for known in session.tools()] == ["Glob", "measure"]
