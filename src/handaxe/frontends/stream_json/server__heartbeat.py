"""A sign of life for calls that take long, so that nobody takes a slow one for a dead one."""

import asyncio
from collections.abc import Callable

from handaxe.frontends.stream_json.codec import StreamCodec
from handaxe.frontends.stream_json.wire_types import Json

HEARTBEAT_S = 30.0


async def send_heartbeats(
    codec: StreamCodec, write: Callable[[Json], None], interval_s: float = HEARTBEAT_S
) -> None:
    """Tell of every open call, until somebody cancels this."""
    while True:
        await asyncio.sleep(interval_s)
        for message in codec.build_heartbeats(interval_s):
            write(message)
