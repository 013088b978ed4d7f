"""handaxe's tools in an AutoGen agent. A scripted model stands in, further down."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ChatCompletionClient

from handaxe import Session
from handaxe.adapters.autogen import tools_for


async def main(client: ChatCompletionClient) -> None:
    async with Session(".", permission_mode="acceptEdits") as session:
        agent = AssistantAgent("writer", client, tools=tools_for(session), max_tool_iterations=9)
        answer = await agent.run(task="Write a greeting to hello.txt.")
        print(answer.messages[-1].to_text())


# Below: no key and no network, only what a model would have said.
from collections.abc import Sequence
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, LLMMessage, ModelFamily, ModelInfo, RequestUsage


class Scripted(ChatCompletionClient):
    def __init__(self, steps: Sequence[str | list[FunctionCall]]) -> None:
        self.steps = list(steps)
        self.heard: list[LLMMessage] = []

    async def create(self, messages: Sequence[LLMMessage], **_: Any) -> CreateResult:
        self.heard = list(messages)
        step = self.steps.pop(0)
        reason = "stop" if isinstance(step, str) else "function_calls"
        usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
        return CreateResult(finish_reason=reason, content=step, usage=usage, cached=False)

    def create_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 0

    remaining_tokens = count_tokens

    @property
    def model_info(self) -> ModelInfo:
        able = {"function_calling": True, "vision": False, "json_output": False}
        return ModelInfo(
            **able,
            family=ModelFamily.UNKNOWN,
            structured_output=False,
            multiple_system_messages=True,
        )

    @property
    def capabilities(self) -> Any:
        return self.model_info


def says(id: str, name: str, arguments: str) -> list[FunctionCall]:
    return [FunctionCall(id=id, name=name, arguments=arguments)]


STEPS = [
    says("1", "Write", '{"file_path": "hello.txt", "content": "Hello!\\n"}'),
    says("2", "Read", '{"file_path": "/etc/hosts"}'),
    "Written; I may not read elsewhere.",
]

if __name__ == "__main__":
    asyncio.run(main(Scripted(STEPS)))
