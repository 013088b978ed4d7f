"""The client under test of the official conformance suite: a session with one MCP server.

`python -m tests.wire.everything_client URL` connects to a scenario's server, calls every tool it
offers, says yes to what is asked, and ends; the suite looks at what arrived. Where a login is
wanted, it logs in as `handaxe mcp login` does; the suite's authorisation server says yes at once.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from typing import Any

import httpx2

from handaxe import Allow, Session
from handaxe.app.session import get_parts
from handaxe.app.tool_listing import get_tool_schema
from handaxe.contract.faults.mcp import LoginFailed, NotConnected

CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The client that the suite's authorisation servers know by its address."""
MAX_LOGINS = 3

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
    remote = [
        tool
        for tool in get_parts(session).catalog.list_offered()
        if tool.name.startswith("mcp__test__")
    ]
    schemas = [get_tool_schema(tool, "json-schema")["inputSchema"] for tool in remote]
    return [(t.name, example_of(s)) for t, s in zip(remote, schemas, strict=True)]


async def yes(_: object) -> Allow:
    return Allow("yes", by="user")


async def browser(address: str) -> None:
    """Goes where it is sent, as a person's would."""
    async with httpx2.AsyncClient(follow_redirects=True) as http:
        await http.get(address)


def oauth_table(context: dict[str, Any]) -> dict[str, str]:
    """What an entry would say about the client, if the scenario has registered one."""
    if "client_id" in context:
        return {"clientId": context["client_id"]}
    if os.environ.get("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd":
        return {"clientId": CLIENT_DOCUMENT}
    return {}


class Client:
    """A session, and logins for as long as the server wants them."""

    def __init__(self, session: Session, secret: str | None) -> None:
        self._session = session
        self._secret = secret
        self._logins = 0

    async def connected(self) -> bool:
        assert self._session.mcp is not None
        await self._session.mcp.settled()
        while (state := self._session.mcp.status()[0]).status == "needs-auth":
            if not await self._log_in():
                return False
        if state.status != "connected":
            sys.stderr.write(f"{state.status}: {state.error}\n")
        return state.status == "connected"

    async def call(self, name: str, arguments: dict[str, Any]) -> None:
        result = await self._session.call(name, arguments)
        while "handaxe mcp login" in result.text and await self._log_in():
            result = await self._session.call(name, arguments)
        sys.stdout.write(f"{name} {arguments} -> {result.text[:300]}\n")

    async def _log_in(self) -> bool:
        assert self._session.mcp is not None
        self._logins += 1
        if self._logins > MAX_LOGINS:
            return False
        try:
            await self._session.mcp.login("test", browser, client_secret=self._secret, wait_s=20)
        except LoginFailed as why:
            sys.stderr.write(f"{why}\n")
            return False
        # The server may want yet another login, which is seen from its status.
        with contextlib.suppress(NotConnected):
            await self._session.mcp.reconnect("test")
        return True


async def main(url: str) -> int:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    entry = {"type": "http", "url": url, "oauth": oauth_table(context)}
    with tempfile.TemporaryDirectory() as root:
        async with Session(
            root,
            home=f"{root}/home",
            mcp_servers={"test": entry},
            strict_mcp=True,
            on_ask=yes,
            allow=["mcp__test"],
        ) as session:
            get_parts(session).follow()
            client = Client(session, context.get("client_secret"))
            if not await client.connected():
                return 1
            for name, arguments in wanted_calls(session):
                await client.call(name, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
