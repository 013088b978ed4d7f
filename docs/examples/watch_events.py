"""Watch what happens: every event of a session, as it happens."""

import asyncio

from handaxe import Effects, Session, ToolContext, tool
from handaxe.events import CallFinished, CallProgress, Event


@tool(effects=Effects.pure())
async def count(to: int, ctx: ToolContext) -> str:
    """Count slowly."""
    for number in range(1, to + 1):
        ctx.report(f"{number} of {to}")
        await asyncio.sleep(0)
    return "done"


def watch(event: Event) -> None:
    match event:
        case CallProgress():
            print(f"  {event.text}")
        case CallFinished():
            print(f"{event.result.tool}: {event.result.text}")
        case _:
            print(type(event).__name__)


async def main() -> None:
    async with Session(".", tools=[count]) as session:
        stop = session.subscribe(watch)
        await session.call("count", to=3)
        await asyncio.sleep(0)
        stop()


asyncio.run(main())
