"""handaxe's tools in a LangGraph agent. A scripted model stands in, further down."""

import asyncio

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from handaxe import Session
from handaxe.adapters.langchain import tools_for


async def main(model: BaseChatModel) -> None:
    async with Session(".", permission_mode="acceptEdits") as session:
        tools = tools_for(session)

        async def ask(state: MessagesState) -> MessagesState:
            return {"messages": [await model.bind_tools(tools).ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState).add_node("model", ask).add_edge(START, "model")
        graph.add_node("tools", ToolNode(tools)).add_edge("tools", "model")
        graph.add_conditional_edges("model", tools_condition)
        asked = HumanMessage("Write a greeting to hello.txt.")
        answer = await graph.compile().ainvoke({"messages": [asked]})
        print(answer["messages"][-1].content)


# Below: no key and no network, only what a model would have said.
from typing import Any, Self

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolCall


def says(id: str, name: str, **arguments: str) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(id=id, name=name, args=arguments)])


class Scripted(FakeMessagesListChatModel):
    def bind_tools(self, *_: Any, **__: Any) -> Self:
        return self


STEPS = [
    says("1", "Write", file_path="hello.txt", content="Hello!\n"),
    says("2", "Read", file_path="/etc/hosts"),
    AIMessage("Written; I may not read elsewhere."),
]

if __name__ == "__main__":
    asyncio.run(main(Scripted(responses=list(STEPS))))
