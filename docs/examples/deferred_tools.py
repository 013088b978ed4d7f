"""200 own tools in a loop of one's own: the model reads names, and schemas once it needs them."""

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
    # A real model answers with these calls; it is sent `system`, the tools and `messages`.
    script: list[tuple[str, dict[str, Any]]]
    script = [("ToolSearch", {"query": "Report7"}), ("Report7", {"year": 2025})]
    async with Session(".", tools=["ToolSearch", *map(make_tool, range(200))]) as session:
        messages: list[dict[str, Any]] = []
        system = session.deferred_tools()
        for number, (name, given) in enumerate(script):
            print(f"{len(session.tools('anthropic', deferred=True))} tools, {len(system)} chars")
            results = await session.run_many([ToolCall(f"toolu_{number}", name, given)])
            messages.append(session.user_turn(results, "anthropic"))
        print(messages[-1]["content"][0]["content"][0]["text"])


asyncio.run(main())
