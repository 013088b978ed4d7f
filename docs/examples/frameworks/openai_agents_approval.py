"""An OpenAI Agents SDK agent whose calls wait for an approval. A scripted model stands in."""

import asyncio

from agents import Agent, Model, RunConfig, Runner

from handaxe import Session
from handaxe.adapters.openai_agents import tools_for


async def main(model: Model) -> None:
    untraced = RunConfig(tracing_disabled=True)
    async with Session(".", session_id="greeting") as session:
        agent = Agent(name="Writer", model=model, tools=tools_for(session, approvals=True))
        run = await Runner.run(agent, "Write a greeting to hello.txt.", run_config=untraced)
        while run.interruptions:
            print(*(request.reason for request in session.pending))
            state = run.to_state()
            for item in run.interruptions:
                state.approve(item)
            run = await Runner.run(agent, state, run_config=untraced)
        print(run.final_output)


# Below: no key and no network, only what a model would have said.
from agents.testing import ScriptedModel, assistant_message, function_call

STEPS = [
    [function_call("Write", {"file_path": "hello.txt", "content": "Hello!\n"}, call_id="1")],
    [assistant_message("Written.")],
]

if __name__ == "__main__":
    asyncio.run(main(ScriptedModel(STEPS)))
