"""Answers that come compressed although nobody asked for it, as some gateways send them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from handaxe.models.http.transport import TransportFailed

_EITHER_HEAD = 32 + 15
"""zlib's word for: a head of gzip or of zlib, whichever comes."""


async def decompress_stream(
    pieces: AsyncGenerator[bytes, None], encoding: str
) -> AsyncGenerator[bytes, None]:
    """What `pieces` hold, as soon as it can be told.

    Raises:
        WireFailed: packed in a way nobody asked for, or broken.
    """
    import zlib

    async with aclosing(pieces):
        if encoding not in ("gzip", "x-gzip", "deflate"):
            sentence = f"The server packed its answer with {encoding[:40]!r}, unasked."
            raise TransportFailed("broken_stream", sentence)
        unpacker = zlib.decompressobj(_EITHER_HEAD)
        try:
            async for piece in pieces:
                if plain := unpacker.decompress(piece):
                    yield plain
        except zlib.error as error:
            raise TransportFailed(
                "broken_stream", f"The answer is packed badly ({error})."
            ) from error
        if not unpacker.eof:
            raise TransportFailed("broken_stream", "The packed answer broke off.")
