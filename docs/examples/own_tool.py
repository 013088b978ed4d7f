"""Two tools of your own: one by decorator, one by class."""

from asyncio import run
from typing import Annotated

from handaxe import Effects, Session, Tool, ToolArgs, ToolContext, ToolResult, tool


@tool(effects=Effects.pure())
async def add(a: int, b: Annotated[int, "What to add."]) -> str:
    """Add two whole numbers."""
    return str(a + b)


class Shout(Tool[ToolArgs]):
    """Shout, as loud as the text allows."""

    async def call(self, args: ToolArgs, ctx: ToolContext) -> ToolResult:  # noqa: ARG002
        return ToolResult(f"HELLO FROM {ctx.call_id.upper()}")


async def main() -> None:
    async with Session(".", tools=[add, Shout()], allow=["add", "Shout"]) as session:
        print((await session.call("add", a=1, b="2")).text)
        print((await session.call("Shout")).text)


run(main())
