"""MCP servers in the client's own process: their messages travel on the stream."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.frontends.stream_json.control_channel import ControlChannel
from handaxe.frontends.stream_json.json_lines import can_fit_line
from handaxe.frontends.stream_json.wire_types import Json

WAIT_S = 30.0
"""How long a turn waits for servers that are still on their way."""

Opener = Callable[[], AbstractAsyncContextManager[Any]]


def build_openers(names: Iterable[str], channel: ControlChannel) -> dict[str, Opener]:
    """For each server what opens its streams."""
    return {name: _create_opener(name, channel) for name in names}


async def wait_for_servers(servers: McpServers | None, names: Iterable[str]) -> None:
    """Wait for the client's servers, so that a turn begins with their tools; not for ever.

    One that could not be reached before is tried again.
    """
    if servers is None:
        return
    failed = {row.name for row in servers.status() if row.status == "failed"}

    async def reach(name: str) -> None:
        with suppress(ToolFault):
            await (servers.reconnect(name) if name in failed else servers.settled(name))

    reaching = [asyncio.ensure_future(reach(name)) for name in names]
    if reaching:
        _, late = await asyncio.wait(reaching, timeout=WAIT_S)
        for task in late:
            task.cancel()


def _create_opener(name: str, channel: ControlChannel) -> Opener:
    async def exchange(message: Json) -> object:
        if not can_fit_line(message):
            raise ValueError("the message is too long for the client's stream")
        answer = await channel.ask("mcp_message", server_name=name, message=message)
        return answer.get("mcp_response")

    def opened() -> AbstractAsyncContextManager[Any]:
        from handaxe.mcp.request_transport import open_exchange_streams

        return open_exchange_streams(exchange)

    return opened
