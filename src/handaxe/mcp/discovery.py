"""List what a server offers, page by page and entry by entry.

The SDK refuses a whole list because of one invalid entry. This reads the list from the wire, and
skips only invalid entries.
"""

from typing import Any, Literal, cast

from mcp.client.session import ClientSession
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import CallToolResult

from handaxe.contract.ports.mcp_servers import McpPrompt, McpResource
from handaxe.schema.repair import MAX_DOC_CHARS
from handaxe.text.escape import strip_hidden

MAX_PAGES = 200
MAX_LISTED = 10_000

Listed = Literal["tools", "resources", "prompts"]
Entry = dict[str, Any]


class McpClientSession(ClientSession):
    """The SDK's session with access to raw messages."""

    def __init__(self, wire: JSONRPCDispatcher[Any], **callbacks: Any) -> None:  # noqa: ANN401
        super().__init__(dispatcher=wire, **callbacks)
        self._wire = wire

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Do nothing: results are shown even if they do not match the schema."""

    def has_capability(self, what: Listed) -> bool:
        """Whether the server offers such entries."""
        return getattr(self.server_capabilities, what, None) is not None

    async def listed(self, what: Listed) -> list[Entry]:
        """All entries that are objects with a name, up to a limit."""
        found: list[Entry] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES if self.has_capability(what) else 0):
            page = await self._page(what, {"cursor": cursor} if cursor else None)
            entries = page.get(what)
            if isinstance(entries, list):
                found += [entry for entry in cast("list[Any]", entries) if _is_named(entry)]
            following: object = page.get("nextCursor")
            cursor = following if isinstance(following, str) else None
            if not cursor or len(found) >= MAX_LISTED:
                break
        return found[:MAX_LISTED]

    async def _page(self, what: Listed, params: dict[str, Any] | None) -> dict[str, Any]:
        if self.initialize_result is not None:
            return await self._wire.send_raw_request(f"{what}/list", params)
        # The newer protocol puts more around a request, which only the SDK knows how to.
        import mcp_types as sdk

        wanted = sdk.PaginatedRequestParams.model_validate(params) if params else None
        ask = {"tools": self.list_tools, "resources": self.list_resources}.get(
            what, self.list_prompts
        )
        page = await ask(params=wanted)
        return page.model_dump(by_alias=True, mode="json", exclude_none=True)


def parse_resource(server: str, entry: Entry) -> McpResource | None:
    """A resource, if the entry has a URI."""
    if not isinstance(entry.get("uri"), str):
        return None
    return McpResource(
        uri=strip_hidden(entry["uri"], 4096),
        name=strip_hidden(entry["name"], 200),
        mime_type=_get_text(entry, "mimeType", 200) or None,
        description=_get_text(entry, "description", MAX_DOC_CHARS) or None,
        server=server,
    )


def parse_prompt(server: str, name: str, entry: Entry) -> McpPrompt:
    """A prompt under its command name."""
    given = entry.get("arguments")
    listed = cast("list[Any]", given) if isinstance(given, list) else []
    arguments = [cast("Entry", one) for one in listed if _is_named(one)]
    return McpPrompt(
        name=name,
        server=server,
        description=_get_text(entry, "description", MAX_DOC_CHARS),
        arguments=tuple(one["name"] for one in arguments),
        required=tuple(one["name"] for one in arguments if one.get("required") is True),
    )


def _is_named(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    name = cast("Entry", entry).get("name")
    return isinstance(name, str) and bool(name)


def _get_text(entry: Entry, key: str, limit_chars: int) -> str:
    value = entry.get(key)
    return strip_hidden(value, limit_chars) if isinstance(value, str) else ""
