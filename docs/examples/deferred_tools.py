"""200 own tools in a loop of your own: the model reads names, and schemas once it needs them."""

import asyncio
from typing import Any

from handaxe import Effects, Session, Tool, ToolCall, tool


def make_tool(number: int) -> Tool[Any]:
    @tool(name=f"Report{number}", effects=Effects.pure())
    async def report(year: int) -> str:
        """Print one of the reports of the shop."""
        return f"Report {number} of {year}: all is well."

    return report


async def main() -> None:
    find = ToolCall("1", "ToolSearch", {"query": "Report7"})
    async with Session(".", tools=["ToolSearch", *map(make_tool, range(200))]) as session:
        system, messages = session.deferred_tools(), list[dict[str, Any]]()
        for call in (find, ToolCall("2", "Report7", {"year": 2025})):  # what a model answers with
            print(f"{len(session.tools('anthropic', deferred=True))} tools, {len(system)} chars")
            messages.append(session.user_turn(await session.run_many([call]), "anthropic"))
        print(messages[-1]["content"][0]["content"][0]["text"])


asyncio.run(main())
