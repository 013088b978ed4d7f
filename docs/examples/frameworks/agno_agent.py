"""handaxe's tools in an Agno agent. A scripted model stands in, further down."""

import asyncio

from agno.agent import Agent
from agno.models.base import Model

from handaxe import Session
from handaxe.adapters.agno import tools_for


async def main(model: Model) -> None:
    async with Session(".", permission_mode="acceptEdits") as session:
        agent = Agent(model=model, tools=tools_for(session), telemetry=False)
        answer = await agent.arun("Write a greeting to hello.txt.")
        print(answer.content)


# Below: no key and no network, only what a model would have said.
from typing import Any

from agno.models.response import ModelResponse


class Scripted(Model):
    def __init__(self, steps: list[ModelResponse]) -> None:
        super().__init__(id="scripted")
        self.steps = list(steps)
        self.heard: list[Any] = []

    async def ainvoke(self, messages: list[Any], *_: Any, **__: Any) -> ModelResponse:
        self.heard = list(messages)
        return self.steps.pop(0)

    def unused(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    invoke = invoke_stream = ainvoke_stream = unused
    _parse_provider_response = _parse_provider_response_delta = unused


def says(id: str, name: str, arguments: str) -> ModelResponse:
    function = {"name": name, "arguments": arguments}
    return ModelResponse(
        role="assistant", tool_calls=[{"id": id, "type": "function", "function": function}]
    )


STEPS = [
    says("1", "Write", '{"file_path": "hello.txt", "content": "Hello!\\n"}'),
    says("2", "Read", '{"file_path": "/etc/hosts"}'),
    ModelResponse(role="assistant", content="Written; I may not read elsewhere."),
]

if __name__ == "__main__":
    asyncio.run(main(Scripted(STEPS)))
