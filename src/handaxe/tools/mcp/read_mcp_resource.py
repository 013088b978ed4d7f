"""ReadMcpResource: read one resource of a server."""

from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.permission_subjects import Subject, TextSubject
from handaxe.contract.ports.mcp_servers import McpContent, McpServers
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs


class ReadMcpResourceArgs(ToolArgs, kw_only=True):
    server: Annotated[str, "The server's name, as ListMcpResources shows it."]
    uri: Annotated[str, "The resource's URI."]


class McpContentData(TypedDict):
    """A part of a resource: text, or the file with its bytes."""

    uri: str
    mimeType: NotRequired[str]
    text: NotRequired[str]
    blobSavedTo: NotRequired[str]


class ReadMcpResourceData(TypedDict):
    """The parts of the resource."""

    contents: list[McpContentData]


class ReadMcpResource(Tool[ReadMcpResourceArgs]):
    """The contents of a resource."""

    aliases = ("ReadMcpResourceTool",)
    search_hint = "read documents or records from MCP servers"
    uses = (McpServers,)
    effects = Effects.none()
    defer = True
    interrupt = "cancel"
    output_type = ReadMcpResourceData
    input_examples = ({"server": "docs", "uri": "docs://guide/start"},)

    def subjects(self, args: ReadMcpResourceArgs) -> tuple[Subject, ...]:
        return (TextSubject(f"{args.server} {args.uri}"),)

    async def call(self, args: ReadMcpResourceArgs, ctx: ToolContext) -> ToolResult:
        parts = await ctx[McpServers].read(args.server, args.uri, ctx.call_id)
        text = "\n\n".join(_format_part(part, is_only=len(parts) == 1) for part in parts)
        data: ReadMcpResourceData = {"contents": msgspec.to_builtins(list(parts))}
        return ToolResult(text or "(the resource is empty)", data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"ReadMcpResource({partial_input.get('uri', '')})"


def _format_part(part: McpContent, *, is_only: bool) -> str:
    if part.blob_saved_to is not None:
        return f"[{part.uri} ({part.mime_type or 'unknown type'}) saved to {part.blob_saved_to}]"
    text = part.text or ""
    return text if is_only else f"[{part.uri}]\n{text}"
