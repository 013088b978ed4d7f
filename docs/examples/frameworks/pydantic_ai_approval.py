"""A pydantic-ai agent whose calls wait for an approval. A scripted model stands in."""

import asyncio

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models import Model

from handaxe import Session
from handaxe.adapters.pydantic_ai import tools_for


async def main(model: Model) -> None:
    async with Session(".", session_id="greeting") as session:
        tools = tools_for(session, approvals=True)
        agent = Agent(model, tools=tools, output_type=[str, DeferredToolRequests])
        run = await agent.run("Write a greeting to hello.txt.")
        while isinstance(asked := run.output, DeferredToolRequests):
            print(*(request["reason"] for request in asked.metadata.values()))
            answers, past = asked.build_results(approve_all=True), run.all_messages()
            run = await agent.run(message_history=past, deferred_tool_results=answers)
        print(run.output)


# Below: no key and no network, only what a model would have said.
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

STEPS = [
    ToolCallPart("Write", {"file_path": "hello.txt", "content": "Hello!\n"}, "1"),
    TextPart("Written."),
]


def scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    return ModelResponse([STEPS[len(messages) // 2]])


if __name__ == "__main__":
    asyncio.run(main(FunctionModel(scripted)))
