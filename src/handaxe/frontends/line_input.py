"""Lines of a descriptor as they come, read in a thread of their own so that a signal ends the wait.

The thread reads past the buffered file, whose lock must not be held when the process ends.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator

_PIECE_BYTES = 1 << 16


def split(fd: int) -> Iterator[bytes]:
    """The lines of a descriptor, each with its end."""
    rest = bytearray()
    while piece := os.read(fd, _PIECE_BYTES):
        rest += piece
        if b"\n" in piece:
            *lines, last = bytes(rest).split(b"\n")
            yield from (line + b"\n" for line in lines)
            rest = bytearray(last)
    if rest:
        yield bytes(rest)


async def lines_of(fd: int, *, ahead: int = 2) -> AsyncIterator[bytes]:
    """Lines as they come, at most `ahead` of them read before they are wanted."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(ahead)

    def read() -> None:
        try:
            for line in split(fd):
                room.acquire()
                loop.call_soon_threadsafe(arrived.put_nowait, line)
            loop.call_soon_threadsafe(arrived.put_nowait, b"")
        except RuntimeError:
            # The loop has ended before the input did; nobody waits for more.
            return

    threading.Thread(target=read, daemon=True).start()
    while line := await arrived.get():
        yield line
        room.release()
