import asyncio
from pathlib import Path

from handaxe import Agent


async def main() -> None:
    script = Path(__file__).with_name("two_turns.toml")  # it plays the model, so no key is needed
    async with Agent(f"scripted:{script}", root=".") as agent:
        final = await agent.ask("Look at notes.txt")
        print(final.subtype, "-", final.result)


asyncio.run(main())
