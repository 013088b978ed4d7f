"""ToolSearch: find tools whose schemas are not loaded yet, and load them."""

from typing import Annotated, Any

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.display import Items
from handaxe.contract.effects import Effects
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.contract.ports.tool_index import FoundTool, ToolIndex
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs

DEFAULT_RESULTS = 5
MAX_RESULTS = 50
NAMES_SHOWN = 60


class ToolSearchArgs(ToolArgs, kw_only=True):
    query: Annotated[
        str,
        msgspec.Meta(min_length=1),
        "Words, `+word` for one that has to occur, or `select:NameA,NameB`; several queries are "
        "separated by `;`.",
    ]
    max_results: Annotated[
        int, msgspec.Meta(ge=1, le=MAX_RESULTS), "How many tools to load at most."
    ] = DEFAULT_RESULTS


class ToolSearch(Tool[ToolSearchArgs]):
    aliases = ("MCPSearch",)
    search_hint = "find and load deferred tools by keyword"
    uses = (ToolIndex,)
    may_use = (McpServers,)
    effects = Effects.on_state("loaded tools")
    always_load = True

    async def call(self, args: ToolSearchArgs, ctx: ToolContext) -> ToolResult:
        index, servers = ctx[ToolIndex], ctx.find(McpServers)
        if servers is not None:
            # What a server brings that is still on its way should be found, too.
            await servers.settled()
        found = await index.find(args.query, args.max_results)
        waiting = index.waiting()
        data = {
            "matches": [tool.name for tool in found],
            "query": args.query,
            "totalDeferredTools": len(waiting),
            "tools": found,
        }
        text = _told(found) if found else _nothing(args.query, waiting)
        notes = _troubles(servers) if servers is not None and not found else ()
        return ToolResult(
            text, data=data, display=(Items(tuple(tool.name for tool in found)),), notes=notes
        )

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"ToolSearch({partial_input.get('query', '')})"


def _troubles(servers: McpServers) -> tuple[str, ...]:
    """Which servers could not bring their tools, and why."""
    return tuple(
        f"The MCP server {row.name!r} has no tools here: {row.error or row.status}"
        for row in servers.status()
        if row.status in {"failed", "needs-auth", "pending"}
    )


def _told(found: tuple[FoundTool, ...]) -> str:
    lines = [
        msgspec.json.encode(
            {"name": tool.name, "description": tool.description, "input": tool.input_schema}
        ).decode()
        for tool in found
    ]
    return "These tools can be called now:\n" + "\n".join(lines)


def _nothing(query: str, waiting: tuple[str, ...]) -> str:
    text = f"No tool fits {query!r}."
    if not waiting:
        return f"{text} Every tool is loaded already."
    listed = ", ".join(waiting[:NAMES_SHOWN])
    more = len(waiting) - NAMES_SHOWN
    return f"{text} Not loaded: {listed}" + (f" and {more} more." if more > 0 else ".")
