"""ToolSearch: find deferred tools and load their schemas."""

import re
from typing import Annotated, Any, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.display import Items
from handaxe.contract.effects import Effects
from handaxe.contract.faults.mcp import UnknownServer
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.contract.ports.tools import FoundTool, ToolIndex
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.text.escape import format_count

DEFAULT_RESULTS = 5
MAX_RESULTS = 50
NAMES_SHOWN = 60
RECONNECT = "reconnect:"
SELECT = "select:"
FOREIGN = "mcp__"


class ToolSearchArgs(ToolArgs, kw_only=True):
    query: Annotated[
        str,
        msgspec.Meta(min_length=1),
        "What to search for, in one of the forms above.",
    ]
    max_results: Annotated[
        int, msgspec.Meta(ge=1, le=MAX_RESULTS), "Maximum number of tools to load."
    ] = DEFAULT_RESULTS


class FoundToolData(TypedDict):
    """A tool that can be called now."""

    name: str
    description: str
    input_schema: Annotated[dict[str, Any], "The JSON Schema of its input."]
    was_loaded: Annotated[bool, "Whether it was loaded before."]


class ToolSearchData(TypedDict):
    """The tools that ToolSearch found."""

    matches: Annotated[list[str], "The names, best first."]
    query: str
    totalDeferredTools: Annotated[int, "Number of tools that are not loaded."]
    tools: list[FoundToolData]


class ToolSearch(Tool[ToolSearchArgs]):
    aliases = ("MCPSearch",)
    search_hint = "find and load deferred tools by keyword"
    output_type = ToolSearchData
    uses = (ToolIndex,)
    may_use = (McpServers,)
    effects = Effects.on_state("loaded tools")
    always_load = True

    async def call(self, args: ToolSearchArgs, ctx: ToolContext) -> ToolResult:
        index, servers = ctx[ToolIndex], ctx.find(McpServers)
        if args.query.startswith(RECONNECT):
            return await _reconnect_server(args.query, servers, index)
        if servers is not None and _can_mean_server(args.query):
            # Tools of a server that is still connecting should be found too.
            await servers.settled()
        found = await index.find(args.query, args.max_results)
        waiting = index.waiting()
        data: ToolSearchData = {
            "matches": [tool.name for tool in found],
            "query": args.query,
            "totalDeferredTools": len(waiting),
            "tools": msgspec.to_builtins(list(found)),
        }
        text = _format_found(found) if found else _describe_nothing_found(args.query, waiting)
        if unknown := index.explain_unknown(args.query):
            text = "\n".join((*unknown, text))
        notes = _describe_troubles(servers) if servers is not None and not found else ()
        return ToolResult(
            text, data=data, display=(Items(tuple(tool.name for tool in found)),), notes=notes
        )

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"ToolSearch({partial_input.get('query', '')})"


def _can_mean_server(query: str) -> bool:
    """Whether the query may mean an MCP server; not if it names built-in tools."""
    parts = [part.strip().casefold() for part in re.split(r"[;\n]", query)]
    return any(part and (not part.startswith(SELECT) or FOREIGN in part) for part in parts)


async def _reconnect_server(query: str, servers: McpServers | None, index: ToolIndex) -> ToolResult:
    name = query.removeprefix(RECONNECT).strip()
    if servers is None:
        raise UnknownServer(name, ())
    await servers.reconnect(name)
    tools = next((one.tools for one in servers.status() if one.name == name), ())
    data: ToolSearchData = {
        "matches": [],
        "query": query,
        "totalDeferredTools": len(index.waiting()),
        "tools": [],
    }
    return ToolResult(
        f"The MCP server {name!r} is connected, with {format_count(len(tools), 'tool')}.", data=data
    )


def _describe_troubles(servers: McpServers) -> tuple[str, ...]:
    """One sentence for each server whose tools cannot be searched now."""
    told: list[str] = []
    for one in servers.status():
        if one.status == "pending":
            told.append(f"The MCP server {one.name!r} is not connected yet; search again soon.")
        elif one.status == "failed":
            why = f" ({one.error})" if one.error else ""
            told.append(
                f"The MCP server {one.name!r} is not connected{why}. To try again, search for "
                f"'{RECONNECT}{one.name}'."
            )
        elif one.status == "needs-auth":
            told.append(
                f"The MCP server {one.name!r} is not connected ({one.error or 'no login'})."
            )
    return tuple(told)


def _format_found(found: tuple[FoundTool, ...]) -> str:
    lines = [
        msgspec.json.encode(
            {"name": tool.name, "description": tool.description, "input": tool.input_schema}
        ).decode()
        for tool in found
    ]
    return "These tools can be called now:\n" + "\n".join(lines)


def _describe_nothing_found(query: str, waiting: tuple[str, ...]) -> str:
    text = f"No tool matches {query!r}."
    if not waiting:
        return f"{text} Every tool is loaded already."
    listed = ", ".join(waiting[:NAMES_SHOWN])
    more = len(waiting) - NAMES_SHOWN
    return f"{text} Not loaded: {listed}" + (f" and {more} more." if more > 0 else ".")
