"""An AutoGen agent and workbench with a session's tools and a scripted model."""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("autogen_core", reason="autogen-core is not installed (group frameworks)")
pytest.importorskip("autogen_agentchat", reason="autogen-agentchat is not installed")

from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.models import FunctionExecutionResult, FunctionExecutionResultMessage
from autogen_core.tools import StaticWorkbench

from handaxe import Session, ToolContext, tool
from handaxe.adapters.autogen import CallFailed, tools_for
from handaxe.contract.events import CallFinished


@pytest.fixture
def results_of(load_example):
    example = load_example("autogen_agent")

    async def run(session, steps, **options) -> list[FunctionExecutionResult]:
        calls = [example["says"](each, name, json.dumps(sent)) for each, name, sent in steps]
        client = example["Scripted"]([*calls, "done"])
        tools = tools_for(session, **options)
        agent = AssistantAgent("tester", client, tools=tools, max_tool_iterations=9)
        assert (await agent.run(task="go")).messages[-1].to_text() == "done"
        heard = [each for each in client.heard if isinstance(each, FunctionExecutionResultMessage)]
        return [result for message in heard for result in message.content]

    return run


@pytest.mark.proves("AR-1")
async def test_an_agent_reads_edits_and_survives_refusals(session, project, script, results_of):
    results = await results_of(session, script)
    assert (project / "a.py").read_text() == "x = 2\n"
    assert [result.is_error for result in results] == [False, False, True, True, True]
    assert [result.call_id for result in results] == ["one", "two", "three", "four", "five"]
    assert results[0].content == "     1→x = 1"
    assert "outside" in results[2].content


@pytest.mark.proves("AR-1")
async def test_a_conversation_that_is_run_again_changes_nothing_twice(
    session, project, script, results_of, started, settled
):
    first = await results_of(session, script)
    (project / "a.py").write_text("x = 1\n")
    again = await results_of(session, script)
    await settled()
    assert started == ["one", "two", "three", "four", "five"]
    assert again == first
    assert (project / "a.py").read_text() == "x = 1\n"


async def test_a_workbench_tells_errors_and_that_there_is_a_picture(session, script, picture):
    bench = StaticWorkbench(tools_for(session))
    shown = await bench.call_tool("Read", {"file_path": picture})
    missing = await bench.call_tool("Read", {"file_path": "missing.py"})
    assert "not its images" in shown.to_text()
    assert not shown.is_error
    assert missing.is_error


async def test_a_cancelled_token_stops_the_call(project, settled):
    token = CancellationToken()
    codes = []

    @tool
    async def wait(ctx: ToolContext) -> str:
        """Wait for what never comes."""
        token.cancel()
        await asyncio.sleep(60)
        return "too late"

    def listen(event):
        if isinstance(event, CallFinished):
            codes.append(event.result.code)

    async with Session(project, tools=[wait], allow="wait") as session:
        session.subscribe(listen)
        with pytest.raises(asyncio.CancelledError):
            await StaticWorkbench(tools_for(session)).call_tool("wait", {}, token)
        await settled()
    assert codes == ["call.cancelled"]


async def test_a_failed_call_without_a_workbench_raises_its_text(session):
    (read,) = [each for each in tools_for(session) if each.name == "Read"]
    with pytest.raises(CallFailed, match="does not exist"):
        await read.run_json({"file_path": "missing.py"}, CancellationToken())


async def test_the_model_is_offered_our_schemas_as_they_are(session, offered):
    schemas: list[dict[str, Any]] = [dict(each.schema) for each in tools_for(session)]
    assert [
        (each["name"], each["description"], json.dumps(each["parameters"], sort_keys=True))
        for each in schemas
    ] == offered
    assert not any(each["strict"] for each in schemas)


def test_the_example_writes_its_file(run_example, capsys):
    assert run_example("autogen_agent") == "Hello!\n"
    assert capsys.readouterr().out == "Written; I may not read elsewhere.\n"
