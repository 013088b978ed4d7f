"""handaxe's tools in a pydantic-ai agent. A scripted model stands in, further down."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models import Model

from handaxe import Session
from handaxe.adapters.pydantic_ai import tools_for


async def main(model: Model) -> None:
    async with Session(".", permission_mode="acceptEdits") as session:
        agent = Agent(model, tools=tools_for(session))
        answer = await agent.run("Write a greeting to hello.txt.")
        print(answer.output)


# Below: no key and no network, only what a model would have said.
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

STEPS = [
    ToolCallPart("Write", {"file_path": "hello.txt", "content": "Hello!\n"}, "1"),
    ToolCallPart("Read", {"file_path": "/etc/hosts"}, "2"),
    TextPart("Written; I may not read elsewhere."),
]


def scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    return ModelResponse([STEPS[len(messages) // 2]])


if __name__ == "__main__":
    asyncio.run(main(FunctionModel(scripted)))
