"""The server on standard input and output: one client, one session, until the input ends."""

import asyncio

from handaxe.frontends.mcp_server.handlers import RequestHandlers
from handaxe.frontends.mcp_server.jsonrpc import JsonRpcPeer
from handaxe.frontends.mcp_server.server_session import ServerSession, SessionFactory
from handaxe.frontends.mcp_server.stdio_transport import StdioTransport
from handaxe.frontends.signals import SignalListener

GRACE_S = 1.5
"""How long calls may still take when the client has closed its side."""
LOOK_EVERY_S = 2.0
"""How often changed settings are noticed while nobody calls."""


async def serve(
    blueprint: SessionFactory, source: int, sink: int, signals: SignalListener | None = None
) -> int | None:
    """Answer until the client goes or a signal comes; which signal it was."""
    ended = asyncio.Event()
    caught: list[int] = []

    def end_by(number: int) -> None:
        caught.append(number)
        ended.set()

    if signals is not None:
        signals.tell(end_by)
    pipes = StdioTransport(source, sink)
    peer = JsonRpcPeer(pipes.send)
    desk = ServerSession(blueprint)
    conversation = RequestHandlers(peer, desk)
    pipes.open(peer.receive, ended.set)
    looking = asyncio.ensure_future(_watch_settings(desk, conversation))
    await ended.wait()
    looking.cancel()
    peer.leave()
    conversation.close()
    is_heard = not pipes.is_broken and not caught
    await peer.finish(GRACE_S if is_heard else 0)
    await desk.close()
    if is_heard:
        await asyncio.wait([asyncio.ensure_future(pipes.drain())], timeout=GRACE_S)
    pipes.close()
    return caught[0] if caught else None


async def _watch_settings(desk: ServerSession, conversation: RequestHandlers) -> None:
    """Notice settings that change while nobody calls, so that the client hears of it."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if conversation.is_listening:
            desk.look()
