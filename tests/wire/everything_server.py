"""The server under test of the official conformance suite: our server, with the tools it calls for.

`python -m tests.wire.everything_server` prints its address and serves until it is ended.
"""

import asyncio
import base64
import sys
import tempfile
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from handaxe import Effects, Session, Tool, ToolArgs, ToolContext, ToolFault, ToolResult, tool
from handaxe.contract.content import ImageBlock
from handaxe.frontends.mcp_server.http import PATH, bind, serve
from handaxe.frontends.mcp_server.prompts_and_resources import ContentProvider
from handaxe.frontends.mcp_server.protocol import RESOURCE_NOT_FOUND, RpcError
from handaxe.frontends.mcp_server.server_session import SessionFactory
from handaxe.permission.prompts import OnAsk

PIXEL = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\x06\0\0\0\x1f\x15\xc4\x89"
    b"\0\0\0\rIDATx\xdac\xfc\xcf\xc0P\x0f\0\x04\x85\x01\x80\x84\xa9\x8c!\0\0\0\0IEND\xaeB`\x82"
).decode()


class Failed(ToolFault):
    """The tool was asked to fail."""

    code = "test.failed"


@tool(effects=Effects.pure())
async def test_simple_text() -> str:
    """Gives a text."""
    return "This is a simple text response for testing."


@tool(effects=Effects.pure())
async def test_image_content() -> ToolResult:
    """Gives a picture."""
    return ToolResult(content=(ImageBlock("image/png", PIXEL),))


@tool(effects=Effects.pure())
async def test_error_handling() -> str:
    """Fails."""
    raise Failed("This tool intentionally returns an error for testing")


@tool(effects=Effects.pure())
async def test_tool_with_progress(ctx: ToolContext) -> str:
    """Says three times how far it is."""
    for step in ("started", "half of it", "done"):
        ctx.report(step)
        await asyncio.sleep(0.05)
    return "done"


@tool(effects=Effects.pure())
async def test_tool_with_logging(ctx: ToolContext) -> str:
    """Says three times what it does."""
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.report(step)
        await asyncio.sleep(0.05)
    return "logged"


class Address(msgspec.Struct):
    """A place."""

    street: Annotated[str, "The street."] = ""
    city: Annotated[str, "The city."] = ""


class SchemaArgs(ToolArgs):
    """A name and an address."""

    name: Annotated[str, "The name."] = ""
    address: Annotated[Address | None, "The address."] = None


class SchemaTool(Tool[SchemaArgs]):
    """Has a schema with definitions."""

    name = "json_schema_2020_12_tool"
    search_hint = "a schema with definitions"
    effects = Effects.pure()

    async def call(self, args: SchemaArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult(f"{args.name}")


def _asking(name: str) -> Any:
    """A tool that changes something, so that its first call is a permission question."""

    async def ask() -> str:
        """Asks before it works."""
        return "allowed"

    return tool(name=name, effects=Effects.unknown())(ask)


OWN: Sequence[Any] = (
    *(
        _asking(f"test_input_required_result_{name}")
        for name in ("elicitation", "request_state", "tampered_state", "capabilities")
    ),
    test_simple_text,
    test_image_content,
    test_error_handling,
    test_tool_with_progress,
    test_tool_with_logging,
    SchemaTool,
)


class TestShelf(ContentProvider):
    """The prompts and resources that the suite calls for."""

    __test__: ClassVar = False
    text: ClassVar = {
        "uri": "test://static-text",
        "mimeType": "text/plain",
        "text": "A text that stays.",
    }
    binary: ClassVar = {"uri": "test://static-binary", "mimeType": "image/png", "blob": PIXEL}

    def __init__(self, session: Session) -> None:
        self.session = session

    def prompts(self) -> list[dict[str, Any]]:
        named = [
            {"name": name, "description": "A word.", "required": True} for name in ("arg1", "arg2")
        ]
        where = [{"name": "resourceUri", "description": "An address.", "required": True}]
        return [
            {"name": name, "description": f"For {name}.", "arguments": arguments}
            for name, arguments in (
                ("test_simple_prompt", []),
                ("test_prompt_with_arguments", named),
                ("test_prompt_with_embedded_resource", where),
                ("test_prompt_with_image", []),
            )
        ]

    async def prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        said: dict[str, Any] = {"type": "text", "text": "This is a simple prompt for testing."}
        contents = [said]
        if name == "test_prompt_with_arguments":
            said["text"] = f"arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
        elif name == "test_prompt_with_embedded_resource":
            inside = {**self.text, "uri": arguments["resourceUri"]}
            contents = [{"type": "resource", "resource": inside}, said]
        elif name == "test_prompt_with_image":
            contents = [{"type": "image", "data": PIXEL, "mimeType": "image/png"}, said]
        return {"messages": [{"role": "user", "content": content} for content in contents]}

    def resources(self) -> list[dict[str, Any]]:
        return [
            {"uri": one["uri"], "name": one["uri"], "mimeType": one["mimeType"]}
            for one in (self.text, self.binary)
        ]

    def templates(self) -> list[dict[str, Any]]:
        return [{"uriTemplate": "test://template/{id}/data", "name": "by number"}]

    async def read(self, uri: str) -> list[dict[str, Any]]:
        for one in (self.text, self.binary):
            if one["uri"] == uri:
                return [one]
        if uri.startswith("test://template/"):
            number = uri.removeprefix("test://template/").removesuffix("/data")
            return [{"uri": uri, "mimeType": "application/json", "text": f'{{"id": "{number}"}}'}]
        raise RpcError(RESOURCE_NOT_FOUND, "There is no such resource.", {"uri": uri})

    async def complete(self, ref: dict[str, Any], argument: str, begun: str) -> list[str]:
        words = ["paris", "park", "party"]
        return [word for word in words if word.startswith(begun)] if argument == "arg1" else []


def open_one(root: str, add_dirs: Sequence[str], on_ask: OnAsk) -> Session:
    return Session(root, add_dirs=add_dirs, on_ask=on_ask, tools=["Read", *OWN])


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        listening = bind(0)
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}\n")
        sys.stdout.flush()
        # The suite knows no tokens; the guard's other checks are part of what it looks at.
        asyncio.run(serve(SessionFactory(open_one, root, content=TestShelf), listening, None))


if __name__ == "__main__":
    main()
