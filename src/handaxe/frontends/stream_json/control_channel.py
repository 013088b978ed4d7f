"""Requests to the client, and their answers."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, cast
from uuid import uuid4

from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.frontends.stream_json.json_lines import can_fit_line
from handaxe.frontends.stream_json.wire_types import Json


class ClientRequestFailed(Exception):
    """The client could not answer, or disconnected."""


class ControlChannel:
    """Sends requests to the client and waits for their answers."""

    def __init__(self, write: Callable[[Json], None]) -> None:
        self._write = write
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._is_closed = False

    async def ask(self, subtype: str, **fields: Any) -> Json:  # noqa: ANN401 - any JSON value
        """The answer to one request.

        Raises:
            ClientRequestFailed: there is no answer.
        """
        if self._is_closed:
            raise ClientRequestFailed("The client disconnected.")
        request_id = str(uuid4())
        answer = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        request = {"subtype": subtype, **fields}
        self._write({"type": "control_request", "request_id": request_id, "request": request})
        try:
            return await answer
        except asyncio.CancelledError:
            self._write({"type": "control_cancel_request", "request_id": request_id})
            raise
        finally:
            self._waiting.pop(request_id, None)

    def take(self, response: Json) -> None:
        """Handle an answer; drop it if its request is gone."""
        waiting = self._waiting.get(str(response.get("request_id")))
        if waiting is None or waiting.done():
            return
        if response.get("subtype") == "success":
            given = response.get("response")
            waiting.set_result(cast("Json", given) if isinstance(given, dict) else {})
        else:
            waiting.set_exception(ClientRequestFailed(str(response.get("error") or "It failed.")))

    def close(self) -> None:
        """Fail all requests: no more answers will come."""
        self._is_closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ClientRequestFailed("The client disconnected."))


WAIT_S = 30.0
"""Seconds that a turn waits for servers that are still starting."""

Opener = Callable[[], AbstractAsyncContextManager[Any]]


def build_openers(names: Iterable[str], channel: ControlChannel) -> dict[str, Opener]:
    """The function that opens the streams of each server."""
    return {name: _create_opener(name, channel) for name in names}


def read_own_servers(request: Json) -> list[str]:
    """The names of SDK servers from `initialize`.

    Raises:
        SetupError: they are not a list of names.
    """
    given: object = request.get("sdkMcpServers")
    names = cast("list[object]", given) if isinstance(given, list) else []
    if (given is not None and not isinstance(given, list)) or not all(
        isinstance(name, str) and name for name in names
    ):
        raise SetupError("`sdkMcpServers` must be a list of names.")
    return cast("list[str]", names)


async def wait_for_servers(servers: McpServers | None, names: Iterable[str]) -> None:
    """Wait some time for the client's servers, so that a turn has their tools.

    Servers that failed before are tried again.
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
