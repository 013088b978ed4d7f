"""A LangGraph agent whose calls wait for an approval. A scripted model stands in, further down."""

import asyncio

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from handaxe import Session
from handaxe.adapters.langchain import tools_for


async def main(model: BaseChatModel) -> None:
    async def ask(state: MessagesState) -> MessagesState:
        return {"messages": [await model.ainvoke(state["messages"])]}

    asked = HumanMessage("Write a greeting to hello.txt.")
    thread: RunnableConfig = {"configurable": {"thread_id": "greeting"}}
    graph = StateGraph(MessagesState).add_node("model", ask).add_edge(START, "model")
    async with Session(".", session_id="greeting") as session:
        graph.add_node("tools", ToolNode(tools_for(session, approvals=True)))
        graph.add_edge("tools", "model").add_conditional_edges("model", tools_condition)
        app = graph.compile(checkpointer=InMemorySaver())
        state = await app.ainvoke({"messages": [asked]}, thread)
        while waiting := state.get("__interrupt__"):
            print(waiting[0].value["reason"])
            said = {waiting[0].value["call_id"]: "allow"}
            state = await app.ainvoke(Command(resume=said), thread)
        print(state["messages"][-1].content)


# Below: no key and no network, only what a model would have said.
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolCall

WRITE = ToolCall(id="1", name="Write", args={"file_path": "hello.txt", "content": "Hello!\n"})
STEPS = [AIMessage("", tool_calls=[WRITE]), AIMessage("Written.")]

if __name__ == "__main__":
    asyncio.run(main(FakeMessagesListChatModel(responses=list(STEPS))))
