"""The client under test of the official conformance suite: a session with one MCP server.

`python -m tests.wire.everything_client URL` connects to a scenario's server, calls every tool it
offers, says yes to what is asked, and ends; the suite looks at what arrived.
"""

import asyncio
import json
import os
import sys
import tempfile
from typing import Any

from handaxe import Allow, Session

_EXAMPLES = {
    "string": "text",
    "integer": 3,
    "number": 5,
    "boolean": True,
    "array": [],
    "object": {},
}


def example_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Input that fits a schema."""
    properties: dict[str, Any] = schema.get("properties", {})
    return {
        name: part.get("default", _EXAMPLES.get(part.get("type"), "text"))
        for name, part in properties.items()
    }


def wanted_calls(session: Session) -> list[tuple[str, dict[str, Any]]]:
    """The calls that the scenario names, or one of each tool."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    if "toolCalls" in context:
        return [(f"mcp__test__{one['name']}", one["arguments"]) for one in context["toolCalls"]]
    remote = [tool for tool in session.catalog.offered() if tool.name.startswith("mcp__test__")]
    schemas = [session.schema_of(tool, "json-schema")["inputSchema"] for tool in remote]
    return [(t.name, example_of(s)) for t, s in zip(remote, schemas, strict=True)]


async def yes(_: object) -> Allow:
    return Allow("yes", by="user")


async def main(url: str) -> int:
    servers = {"test": {"type": "http", "url": url}}
    with tempfile.TemporaryDirectory() as root:
        async with Session(
            root, mcp_servers=servers, strict_mcp=True, on_ask=yes, allow=["mcp__test"]
        ) as session:
            session.follow()
            assert session.mcp is not None
            await session.mcp.settled()
            (state,) = session.mcp.status()
            if state.status != "connected":
                sys.stderr.write(f"{state.status}: {state.error}\n")
                return 1
            for name, arguments in wanted_calls(session):
                result = await session.call(name, arguments)
                sys.stdout.write(f"{name} {arguments} -> {result.text[:300]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
