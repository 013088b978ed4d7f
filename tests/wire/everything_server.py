"""The server under test of the official conformance suite: our server, with the tools it calls for.

`python -m tests.wire.everything_server` prints its address and serves until it is ended.
"""

import asyncio
import base64
import sys
import tempfile
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from handaxe import Effects, Session, Tool, ToolArgs, ToolContext, ToolFault, ToolResult, tool
from handaxe.app.asking import OnAsk
from handaxe.contract.content import ImageBlock
from handaxe.frontends.mcp_server.desk import Blueprint
from handaxe.frontends.mcp_server.http import PATH, bind, serve

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
    SchemaTool,
)


def open_one(root: str, add_dirs: Sequence[str], on_ask: OnAsk) -> Session:
    return Session(root, add_dirs=add_dirs, on_ask=on_ask, tools=["Read", *OWN])


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        listening = bind(0)
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}\n")
        sys.stdout.flush()
        # The suite knows no tokens; the guard's other checks are part of what it looks at.
        asyncio.run(serve(Blueprint(open_one, root), listening, None))


if __name__ == "__main__":
    main()
