"""Lines of a descriptor, read in a thread so that a signal ends the wait.

The thread does not use the buffered file, whose lock must be free when the process ends.
"""

import asyncio
import os
import select
import threading
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Iterator

from handaxe.contract.faults import SetupError

_PIECE_BYTES = 1 << 16


def read_chunks(fd: int) -> Iterator[bytes]:
    """The input of a descriptor, also a non-blocking one.

    Raises:
        SetupError: it cannot be read.
    """
    while True:
        try:
            piece = os.read(fd, _PIECE_BYTES)
        except BlockingIOError:
            # Another process that shares the descriptor made it non-blocking.
            select.select([fd], [], [])
            continue
        except OSError as error:
            raise SetupError(f"Cannot read the input ({error.strerror}).") from None
        if not piece:
            return
        yield piece


def read_lines(fd: int) -> Iterator[bytes]:
    """The lines of a descriptor with their ends, without a byte order mark."""
    rest = bytearray()
    mark = BOM_UTF8
    for piece in read_chunks(fd):
        rest += piece
        if b"\n" in piece:
            *lines, last = bytes(rest).removeprefix(mark).split(b"\n")
            yield from (line + b"\n" for line in lines)
            rest, mark = bytearray(last), b""
    if rest := rest.removeprefix(mark):
        yield bytes(rest)


async def stream_lines(fd: int, *, ahead: int = 2) -> AsyncIterator[bytes]:
    """Lines as they arrive; at most `ahead` of them are read in advance."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes | SetupError] = asyncio.Queue()
    room = threading.Semaphore(ahead)

    def tell(news: bytes | SetupError) -> None:
        loop.call_soon_threadsafe(arrived.put_nowait, news)

    def read() -> None:
        try:
            try:
                for line in read_lines(fd):
                    room.acquire()
                    tell(line)
                tell(b"")
            except SetupError as error:
                tell(error)
        except RuntimeError:
            # The loop ended before the input.
            return

    threading.Thread(target=read, daemon=True).start()
    while line := await arrived.get():
        if isinstance(line, SetupError):
            raise line
        yield line
        room.release()
