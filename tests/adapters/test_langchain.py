"""LangChain tools and a LangGraph graph with a session's tools and a scripted model."""

import json

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed (group frameworks)")
pytest.importorskip("langgraph", reason="langgraph is not installed (group frameworks)")

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from handaxe.adapters.langchain import tools_for


async def answers_in_a_graph(session, steps, **options) -> list[ToolMessage]:
    asked = [{"id": call_id, "name": tool, "args": sent} for call_id, tool, sent in steps]
    spoken = [AIMessage("", tool_calls=[call]) for call in asked]
    model = FakeMessagesListChatModel(responses=[*spoken, AIMessage("done")])

    async def ask(state: MessagesState):
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("model", ask).add_edge(START, "model")
    graph.add_node("tools", ToolNode(tools_for(session, **options))).add_edge("tools", "model")
    graph.add_conditional_edges("model", tools_condition)
    messages = (await graph.compile().ainvoke({"messages": ["go"]}))["messages"]
    assert messages[-1].content == "done"
    return [message for message in messages if isinstance(message, ToolMessage)]


def tool_named(session, name):
    return next(tool for tool in tools_for(session) if tool.name == name)


@pytest.mark.proves("AR-1")
async def test_a_graph_reads_edits_and_survives_refusals(session, project, script):
    answers = await answers_in_a_graph(session, script)
    assert (project / "a.py").read_text() == "x = 2\n"
    assert [each.status for each in answers] == ["success", "success", "error", "error", "error"]
    assert [each.tool_call_id for each in answers] == ["one", "two", "three", "four", "five"]
    assert answers[0].content == "     1→x = 1"
    assert [each.artifact["code"] for each in answers[2:]] == [
        "permission.asked",
        "file.not_read",
        "file.not_found",
    ]


@pytest.mark.proves("AR-1")
async def test_a_graph_that_is_run_again_changes_nothing_twice(
    session, project, script, started, settled
):
    first = await answers_in_a_graph(session, script)
    (project / "a.py").write_text("x = 1\n")
    again = await answers_in_a_graph(session, script)
    await settled()
    assert started == ["one", "two", "three", "four", "five"]
    assert [each.content for each in again] == [each.content for each in first]
    assert (project / "a.py").read_text() == "x = 1\n"


async def test_the_model_gets_a_picture(session, picture):
    (answer,) = await answers_in_a_graph(session, [("one", "Read", {"file_path": picture})])
    kinds = [block["type"] for block in answer.content_blocks]
    assert kinds == ["text", "image"]


async def test_a_tool_can_be_called_without_an_id(session, script):
    read = tool_named(session, "Read")
    assert await read.ainvoke({"file_path": "a.py"}) == "     1→x = 1"
    assert "does not exist" in await read.ainvoke({"file_path": "missing.py"})
    assert "file_path" in await read.ainvoke({})


async def test_a_synchronous_call_says_what_to_do(session):
    with pytest.raises(NotImplementedError, match="Use ainvoke"):
        tool_named(session, "Read").invoke({"file_path": "a.py"})


async def test_the_model_is_offered_our_schemas_as_they_are(session, offered):
    shown = [convert_to_openai_tool(tool)["function"] for tool in tools_for(session)]
    assert [
        (each["name"], each["description"], json.dumps(each["parameters"], sort_keys=True))
        for each in shown
    ] == offered


def test_the_example_writes_its_file(run_example, capsys):
    assert run_example("langgraph_agent") == "Hello!\n"
    assert capsys.readouterr().out == "Written; I may not read elsewhere.\n"
