"""Lines of a descriptor as they come, read in a thread of their own so that a signal ends the wait.

The thread reads past the buffered file, whose lock must not be held when the process ends.
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
    """What comes on a descriptor, waited for also where reading itself would not wait.

    Raises:
        SetupError: nothing can be read from it.
    """
    while True:
        try:
            piece = os.read(fd, _PIECE_BYTES)
        except BlockingIOError:
            # Whoever shares the descriptor with us has made it so.
            select.select([fd], [], [])
            continue
        except OSError as error:
            raise SetupError(f"The input cannot be read ({error.strerror}).") from None
        if not piece:
            return
        yield piece


def read_lines(fd: int) -> Iterator[bytes]:
    """The lines of a descriptor, each with its end; a mark in front of the first is none of it."""
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
    """Lines as they come, at most `ahead` of them read before they are wanted."""
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
            # The loop has ended before the input did; nobody waits for more.
            return

    threading.Thread(target=read, daemon=True).start()
    while line := await arrived.get():
        if isinstance(line, SetupError):
            raise line
        yield line
        room.release()
