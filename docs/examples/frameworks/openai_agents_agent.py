"""handaxe's tools in an OpenAI Agents SDK agent. A scripted model stands in, further down."""

import asyncio

from agents import Agent, Model, RunConfig, Runner

from handaxe import Session
from handaxe.adapters.openai_agents import tools_for


async def main(model: Model) -> None:
    async with Session(".", permission_mode="acceptEdits") as session:
        agent = Agent(name="Writer", model=model, tools=tools_for(session))
        untraced = RunConfig(tracing_disabled=True)
        answer = await Runner.run(agent, "Write a greeting to hello.txt.", run_config=untraced)
        print(answer.final_output)


# Below: no key and no network, only what a model would have said.
from agents.testing import ScriptedModel, assistant_message, function_call

STEPS = [
    [function_call("Write", {"file_path": "hello.txt", "content": "Hello!\n"}, call_id="1")],
    [function_call("Read", {"file_path": "/etc/hosts"}, call_id="2")],
    [assistant_message("Written; I may not read elsewhere.")],
]

if __name__ == "__main__":
    asyncio.run(main(ScriptedModel(STEPS)))
