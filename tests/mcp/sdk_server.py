"""A server on the official SDK: over standard input and output, or over HTTP on a port."""

import asyncio
import sys
from typing import Any, cast

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("official", instructions="Use echo.")


class Confirm(BaseModel):
    sure: bool


@server.tool()
def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


@server.tool()
async def slow(seconds: float, ctx: Context[Any, Any]) -> str:
    await ctx.report_progress(0, 1, "at work")
    await asyncio.sleep(seconds)
    return "slept"


@server.tool()
async def confirm(ctx: Context[Any, Any]) -> str:
    answer = await ctx.elicit("Shall I?", Confirm)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    server.add_tool(grown, name="grown")
    await ctx.session.send_tool_list_changed()
    return "grew"


@server.tool()
def huge(megabytes: int) -> str:
    return "x" * (megabytes << 20)


def grown() -> str:
    return "I am new"


@server.resource("note://{name}")
def note(name: str) -> str:
    return f"the note {name}"


@server.resource("fixed://one", mime_type="application/octet-stream")
def fixed() -> bytes:
    return b"\x00\x01\x02"


@server.prompt()
def greet(who: str) -> str:
    return f"Greet {who}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport=cast("Any", sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run()
