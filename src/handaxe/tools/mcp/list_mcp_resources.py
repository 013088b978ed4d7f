"""ListMcpResources: list the resources of connected servers."""

from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.permission_subjects import Subject
from handaxe.contract.ports.mcp_servers import McpResource, McpServers
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs

_SHOWN = 500


class ListMcpResourcesArgs(ToolArgs, kw_only=True):
    server: Annotated[str | None, "Only the resources of this server."] = None


class McpResourceData(TypedDict):
    """A resource of a server."""

    uri: str
    name: str
    mimeType: NotRequired[str]
    description: NotRequired[str]
    server: str


class ListMcpResourcesData(TypedDict):
    """The resources of the servers."""

    resources: list[McpResourceData]


class ListMcpResources(Tool[ListMcpResourcesArgs]):
    """The resources of MCP servers."""

    aliases = ("ListMcpResourcesTool",)
    search_hint = "resources that MCP servers offer, by URI"
    uses = (McpServers,)
    effects = Effects.none()
    defer = True
    interrupt = "cancel"
    output_type = ListMcpResourcesData
    input_examples = ({}, {"server": "docs"})

    def subjects(self, args: ListMcpResourcesArgs) -> tuple[Subject, ...]:
        return ()

    async def call(self, args: ListMcpResourcesArgs, ctx: ToolContext) -> ToolResult:
        found = await ctx[McpServers].resources(args.server)
        lines = [_format_line(resource) for resource in found[:_SHOWN]]
        if len(found) > _SHOWN:
            lines.append(f"... and {len(found) - _SHOWN} more; name a `server` to see fewer.")
        text = "\n".join(lines) or "No server offers resources. Servers may still offer tools."
        data: ListMcpResourcesData = {"resources": msgspec.to_builtins(list(found))}
        return ToolResult(text, data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        server = partial_input.get("server")
        return f"ListMcpResources({server})" if server else "ListMcpResources"


def _format_line(resource: McpResource) -> str:
    kind = f" [{resource.mime_type}]" if resource.mime_type else ""
    about = f": {resource.description}" if resource.description else ""
    return f"{resource.server} {resource.uri} ({resource.name}){kind}{about}"
