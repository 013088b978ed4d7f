"""The server on standard input and output: one client, one session, until the input ends."""

import asyncio
import os
import signal

from handaxe.frontends.mcp_server.conversation import Conversation
from handaxe.frontends.mcp_server.desk import Blueprint, Desk
from handaxe.frontends.mcp_server.lines import LinePipes
from handaxe.frontends.mcp_server.peer import Peer

GRACE_S = 1.5
"""How long calls may still take when the client has closed its side."""
LOOK_EVERY_S = 2.0
"""How often changed settings are noticed while nobody calls."""


async def serve(blueprint: Blueprint, source: int, sink: int) -> bool:
    """Answer until the client goes or a signal comes; whether it was the client."""
    ended = asyncio.Event()
    terminated = asyncio.Event()

    def terminate() -> None:
        terminated.set()
        ended.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, terminate)
    pipes = LinePipes(source, sink)
    peer = Peer(pipes.send)
    desk = Desk(blueprint)
    conversation = Conversation(peer, desk)
    pipes.open(peer.receive, ended.set)
    looking = asyncio.ensure_future(_look(desk, conversation))
    await ended.wait()
    looking.cancel()
    peer.leave()
    await conversation.close()
    gone = pipes.is_broken or terminated.is_set()
    await peer.finish(0 if gone else GRACE_S)
    await desk.close()
    if not gone:
        await asyncio.wait([asyncio.ensure_future(pipes.drain())], timeout=GRACE_S)
    pipes.close()
    return not terminated.is_set()


async def _look(desk: Desk, conversation: Conversation) -> None:
    """Notice settings that change while nobody calls, so that the client hears of it."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(LOOK_EVERY_S)
        if conversation.is_listening:
            desk.look()
