"""LangChain tools and a LangGraph graph with a session's tools and a scripted model."""

import json

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed (group frameworks)")
pytest.importorskip("langgraph", reason="langgraph is not installed (group frameworks)")

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send
from tests.expected_types import expect_type

from handaxe import Session
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
    messages = (await graph.compile().ainvoke({"messages": [HumanMessage("go")]}))["messages"]
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


class Thread:
    """A graph with a checkpointer, gone on with in a session object of its own each time."""

    def __init__(self, project, steps, *, one_by_one=False):
        self.project = project
        self.asked = [{"id": one, "name": tool, "args": sent} for one, tool, sent in steps]
        self.saver = InMemorySaver()
        self.one_by_one = one_by_one

    async def go_on(self, given):
        """The ids that the graph waits for, and its answers by the ids of the calls."""

        async def ask(state: MessagesState):
            is_new = not any(isinstance(each, ToolMessage) for each in state["messages"])
            return {"messages": [AIMessage("", tool_calls=self.asked if is_new else [])]}

        def route(state: MessagesState):
            last = expect_type(AIMessage, state["messages"][-1])
            return [Send("tools", [call]) for call in last.tool_calls] or "__end__"

        async with Session(self.project, session_id="s") as session:
            tools = ToolNode(tools_for(session, approvals=True))
            graph = StateGraph(MessagesState).add_node("model", ask).add_edge(START, "model")
            graph.add_node("tools", tools).add_edge("tools", "model")
            if self.one_by_one:
                graph.add_conditional_edges("model", route, ["tools", "__end__"])
            else:
                graph.add_conditional_edges("model", tools_condition)
            thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
            state = await graph.compile(checkpointer=self.saver).ainvoke(given, thread)
            self.interrupts = state.get("__interrupt__", ())
            self.pending = [request.call_id for request in session.pending]
        answers = {
            each.tool_call_id: each for each in state["messages"] if isinstance(each, ToolMessage)
        }
        return [one.value["call_id"] for one in self.interrupts], answers


ORDERS = [
    [{"a": "allow"}, {"b": "deny"}, {"c": "allow"}],
    [{"c": "allow"}, {"b": "deny"}, {"a": "allow"}],
    [{"b": "deny", "c": "allow"}, {"a": "allow"}],
    [{"a": "allow", "b": "deny", "c": "allow"}],
    ["allow", True, {"a": "perhaps"}, {"a": {"verdict": "allow", "inptu": {}}}, {"nobody": "deny"},
     {"a": {"verdict": "allow"}, "c": "allow"}, {"b": {"verdict": "deny", "reason": "No."}}],
]  # fmt: skip


@pytest.mark.proves("AR-1")
@pytest.mark.parametrize("given", ORDERS)
async def test_a_call_that_needs_a_yes_interrupts_the_graph_and_is_made_once(
    project, writes, given
):
    thread = Thread(project, writes)
    waiting, _ = await thread.go_on({"messages": ["go"]})
    shown = json.loads(json.dumps(thread.interrupts[0].value))
    assert (shown["tool"], shown["input"]["content"]) == ("Write", f"{waiting[0]}\n")
    made, answers = set(), {}
    for answer in given:
        assert waiting
        waiting, answers = await thread.go_on(Command(resume=answer))
        found = {path.stem for path in project.glob("*.txt")}
        assert not made & found
        made |= found
        for path in project.glob("*.txt"):
            path.unlink()
    assert (waiting, thread.pending, made) == ([], [], {"a", "c"})
    assert [answers[one].status for one in "abc"] == ["success", "error", "success"]
    assert answers["b"].artifact["code"] == "permission.denied"


async def test_a_wrong_answer_interrupts_again_and_says_what_is_wrong(project, writes):
    thread = Thread(project, writes[:1])
    await thread.go_on({"messages": ["go"]})
    for wrong in ("allow", {"a": "perhaps"}, {"a": 7}):
        waiting, _ = await thread.go_on(Command(resume=wrong))
        assert waiting == ["a"]
        assert "answer" in thread.interrupts[0].value["problem"].lower()


async def test_calls_in_nodes_of_their_own_are_answered_side_by_side(project, writes):
    thread = Thread(project, writes, one_by_one=True)
    assert (await thread.go_on({"messages": ["go"]}))[0] == ["a", "b", "c"]
    given = {
        one.id: {one.value["call_id"]: "deny" if one.value["call_id"] == "b" else "allow"}
        for one in thread.interrupts
    }
    waiting, answers = await thread.go_on(Command(resume=given))
    assert (waiting, sorted(answers)) == ([], ["a", "b", "c"])
    assert sorted(path.name for path in project.glob("*.txt")) == ["a.txt", "c.txt"]


async def test_an_allowed_call_that_has_changed_is_refused(project, moving_link):
    step, move, has_arrived = moving_link
    thread = Thread(project, [step])
    assert (await thread.go_on({"messages": ["go"]}))[0] == ["moved"]
    move()
    waiting, answers = await thread.go_on(Command(resume={"moved": "allow"}))
    assert (waiting, thread.pending) == ([], [])
    assert "changed after the approval" in answers["moved"].content
    assert not has_arrived()


async def test_outside_of_a_graph_nobody_can_be_asked(project, writes):
    (call_id, name, sent), *_ = writes
    async with Session(project) as session:
        tool = next(tool for tool in tools_for(session, approvals=True) if tool.name == name)
        without_id = await tool.ainvoke(sent)
        call = {"type": "tool_call", "id": call_id, "name": name, "args": sent}
        with_id = await tool.ainvoke(call)
        assert session.pending == ()
    assert "cannot be requested here" in without_id
    assert "cannot be requested here" in with_id.content


def test_the_example_of_approvals_shows_the_reason_and_writes_its_file(run_example, capsys):
    assert run_example("langgraph_approval") == "Hello!\n"
    said = capsys.readouterr().out
    assert "needs permission in default mode" in said
    assert said.endswith("\nWritten.\n")
