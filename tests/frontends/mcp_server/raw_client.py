"""A client that speaks the protocol line by line, so that it can also speak it wrongly."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.waiting import HANG_S

from handaxe import Effects, Session, ToolContext, serve_mcp, tool
from handaxe.frontends.mcp_server.handlers import serve
from handaxe.frontends.mcp_server.server_session import SessionFactory
from handaxe.permission.prompts import OnAsk

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
FORMS = {"elicitation": {"form": {}}}


class RawClient:
    """One end of a connection to a server that runs in this process."""

    def __init__(self, served: SessionFactory | Session) -> None:
        source, self._to_server = os.pipe()
        self._from_server, sink = os.pipe()
        self.server = asyncio.ensure_future(
            serve_mcp(served, source=source, sink=sink)
            if isinstance(served, Session)
            else serve(served, source, sink)
        )
        self.told: list[dict[str, Any]] = []
        """Notifications, as they came."""
        self.strays: list[Any] = []
        """Whatever answers to no request of ours."""
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {}
        """How to answer the server's requests, by method."""
        self._waiting: dict[Any, asyncio.Future[Any]] = {}
        self._changed = asyncio.Event()
        self._number = 0
        self._reading = asyncio.ensure_future(self._read())

    def send(self, message: object) -> None:
        """Send a message, or bytes as they are."""
        raw = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        os.write(self._to_server, raw)

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, method: str, **params: Any) -> tuple[int, asyncio.Future[Any]]:
        """Send a request; its id, and the answer to come."""
        self._number += 1
        self._waiting[self._number] = asyncio.get_running_loop().create_future()
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number, self._waiting[self._number]

    async def ask(self, method: str, **params: Any) -> Any:
        """The whole answer to a request."""
        return await asyncio.wait_for(self.start(method, **params)[1], HANG_S)

    async def call(self, name: str, **arguments: Any) -> Any:
        """A tool's result."""
        return (await self.ask("tools/call", name=name, arguments=arguments))["result"]

    async def open(self, revision: str = "2025-11-25", **capabilities: Any) -> Any:
        """Shake hands."""
        about = {"name": "raw", "version": "1"}
        answer = await self.ask(
            "initialize", protocolVersion=revision, capabilities=capabilities, clientInfo=about
        )
        self.notify("notifications/initialized")
        return answer["result"]

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until what came from the server is enough."""
        async with asyncio.timeout(HANG_S):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def close(self) -> int | None:
        """Close the server's input and wait until it has ended."""
        if self._to_server >= 0:
            os.close(self._to_server)
            self._to_server = -1
        ended = await asyncio.wait_for(self.server, HANG_S)
        await self._reading
        return ended

    async def _read(self) -> None:
        reader = asyncio.StreamReader(limit=1 << 28)
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(self._from_server, "rb")
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        while line := await reader.readline():
            self._take(json.loads(line))
            self._changed.set()
        transport.close()

    def _take(self, message: Any) -> None:
        if isinstance(message, list):
            self.strays.append(message)
        elif "method" in message and "id" in message:
            answer = self.answers.get(message["method"])
            self.told.append(message)
            if answer is not None:
                result = answer(message.get("params", {}))
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        elif "method" in message:
            self.told.append(message)
        elif message["id"] in self._waiting:
            self._waiting.pop(message["id"]).set_result(message)
        else:
            self.strays.append(message)


stopped: list[str] = []


@tool(effects=Effects.none())
async def wait_long(ctx: ToolContext) -> str:
    """Waits until somebody stops it."""
    ctx.report("waiting")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        stopped.append("wait_long")
        raise
    return "nobody stopped me"


@tool(effects=Effects.none())
async def count_up(to: int, ctx: ToolContext) -> str:
    """Counts, and says how far it is."""
    for number in range(1, to + 1):
        ctx.report(f"{number} of {to}")
    return f"counted to {to}"


@tool(effects=Effects.none())
async def print_loudly(text: str) -> str:
    """Prints where nobody should."""
    print(text, flush=True)  # noqa: T201 - that is the point
    subprocess.run(f"echo {text} from a child", shell=True, check=True)
    return "printed"


OWN_TOOLS = ("Read", "Write", "Edit", "Glob", "Grep", "Undo", wait_long, count_up, print_loudly)


def blueprint_of(root: Path | None = None, **options: Any) -> SessionFactory:
    """Sessions with our own tools beside the built-in ones."""
    options.setdefault("tools", OWN_TOOLS)
    output_schemas = options.pop("output_schemas", False)

    def open_one(project: str, add_dirs: Sequence[str], on_ask: OnAsk) -> Session:
        return Session(project, add_dirs=add_dirs, on_ask=on_ask, **options)

    named = str(root) if root is not None else None
    return SessionFactory(open_one, named, output_schemas=output_schemas)
