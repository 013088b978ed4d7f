"""A real HTTP server on loopback that answers with prepared bytes."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol


class Asked(NamedTuple):
    """A request as it arrived."""

    at_s: float
    path: str
    headers: dict[str, str]
    body: Any
    connection: int


class Reply(NamedTuple):
    """What to answer: a status, headers, and pieces of a body that are sent one by one."""

    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    pieces: tuple[bytes, ...] = ()
    pause_s: float = 0.0
    cut: bool = False
    """Break the connection off after the pieces."""
    hang: bool = False
    """Keep the stream open after the pieces, for ever."""


class Replies(Protocol):
    """A list of replies, or something that makes each one when it is wanted."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> Reply: ...


class ModelServer:
    """Answers requests with replies in order; the last one is used again."""

    def __init__(self, replies: list[Reply]):
        self.replies: Replies = replies
        self.asked: list[Asked] = []
        self.connections = 0
        self.gone = asyncio.Event()
        """Set when a client left in the middle of an answer."""
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while await self._exchange(reader, writer, number):
                pass
        except (OSError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            writer.transport.abort()

    async def _exchange(self, reader, writer, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        path = head[0].split(" ")[1]
        now_s = asyncio.get_running_loop().time()
        self.asked.append(Asked(now_s, path, headers, json.loads(raw), number))
        at = min(len(self.asked), len(self.replies)) - 1
        reply = self.replies[at]
        fields = {
            "content-type": "text/event-stream",
            "transfer-encoding": "chunked",
            **reply.headers,
        }
        lines = [f"HTTP/1.1 {reply.status} X", *(f"{k}: {v}" for k, v in fields.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for piece in reply.pieces:
            if reply.pause_s:
                await asyncio.sleep(reply.pause_s)
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if reply.hang:
            await reader.read(1)
            self.gone.set()
            return False
        if reply.cut:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def model_server(*replies: Reply):
    """A server on a free port of loopback, gone at the end."""
    server = ModelServer(list(replies))
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader, writer):
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        try:
            await server.serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)


def error(status: int, body: Any = None, **headers: str) -> Reply:
    """An error answer; `_` in a header's name stands for `-`."""
    fields = {"content-type": "application/json"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    return Reply(status=status, headers=fields, pieces=(raw,))


def named(*events: dict[str, Any]) -> bytes:
    """Events as the Messages API writes them."""
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in events
    )


def plain(*chunks: Any, done: bool = True) -> bytes:
    """Chunks as Chat Completions writes them."""
    lines = [b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks]
    return b"".join([*lines, b"data: [DONE]\n\n" if done else b""])


def sliced(body: bytes, size: int) -> tuple[bytes, ...]:
    """The body in pieces of `size` bytes."""
    return tuple(body[at : at + size] for at in range(0, len(body), size))
