"""The part of HTTP/1.1 that a client of model servers needs: one POST, and answers from bytes.

Nothing is read or sent here. The bytes of a connection go in as they come, and the head and the
body of each answer come out, however they were cut.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Literal, NamedTuple

from handaxe.models.http.transport import TransportFailed

MAX_HEAD_BYTES = 128 * 1024
_MAX_LINE_BYTES = 64 * 1024
_NO_BODY = (204, 304)
_HEX = frozenset(b"0123456789abcdefABCDEF")


class BadResponse(Exception):
    """What came is not HTTP, or it ended too early."""


class ResponseHead(NamedTuple):
    """The beginning of an answer."""

    status: int
    headers: dict[str, str]
    """By lower-case name; what was said twice stands with a comma between."""
    is_old: bool = False
    """HTTP/1.0, where a connection ends with its answer."""


def post_request(target: str, fields: Iterable[tuple[str, str]], body: bytes) -> bytes:
    """A whole request as bytes.

    Raises:
        ValueError: the target or a field holds what would end it early.
    """
    lines = [f"POST {_check_characters('address', target, ' ')} HTTP/1.1"]
    for name, value in fields:
        _check_characters("header's name", name, " :")
        lines.append(f"{name}: {_check_characters(f'header {name}', value)}")
    return "\r\n".join((*lines, "", "")).encode("latin-1") + body


def _check_characters(what: str, text: str, also_refused: str = "") -> str:
    is_fine = all(" " <= char <= "~" or char == "\t" or "\xa0" <= char <= "\xff" for char in text)
    if not is_fine or any(char in text for char in also_refused):
        raise ValueError(f"The {what} holds characters that cannot be sent: {text[:80]!r}")
    return text


class ResponseParser:
    """One answer after the other from the bytes of a connection."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self.is_over = False
        """Whether the whole answer has been taken out."""
        self._head: ResponseHead | None = None
        self._is_chunked = False
        self._phase: Literal["data", "break", "size", "trailer"] = "data"
        self._left: int | None = None
        """Bytes of the body, or of its chunk, that are still to come; None until the end."""

    def feed(self, data: bytes) -> None:
        """Take bytes that came; none at all says that the other side has closed."""
        self._held += data
        self._is_closed = self._is_closed or not data

    def head(self) -> ResponseHead | None:
        """The head, None if it has not come whole yet; notes that come before it are skipped.

        Raises:
            BadResponse: this is not a head of HTTP/1.
        """
        while self._head is None:
            raw = self._take_head()
            if raw is None:
                return None
            head = _read_head(raw)
            if head.status >= 200:
                self._head = head
                self._expect_body(head)
            elif head.status == 101:
                raise BadResponse("it wants to speak another protocol")
        return self._head

    def body(self) -> bytes:
        """What has come of the body since the last time.

        Raises:
            BadResponse: it broke off, or is not cut into chunks as it should be.
        """
        pieces: list[bytes] = []
        while not self.is_over and self._go_on(pieces):
            pass
        if self._is_closed and not self.is_over and not pieces:
            raise BadResponse("the connection was closed in the middle of it")
        return b"".join(pieces)

    def start_next_response(self) -> bool:
        """Get ready for another answer; False if this connection can carry none."""
        head = self._head
        if head is None or not self.is_over or self._is_closed or self._held:
            return False
        wishes = {word.strip().lower() for word in head.headers.get("connection", "").split(",")}
        if head.is_old or "close" in wishes:
            return False
        self._begin()
        return True

    def _take_head(self) -> bytes | None:
        # Empty lines before an answer are left over from the one before.
        self._held = self._held.lstrip(b"\r\n")
        ends = [at for at in map(self._held.find, (b"\n\r\n", b"\n\n")) if at >= 0]
        if not ends and self._is_closed:
            raise BadResponse("the connection was closed before it")
        if min(ends, default=len(self._held)) > MAX_HEAD_BYTES:
            raise BadResponse("its head has no end")
        if not ends:
            return None
        raw = bytes(self._held[: min(ends)])
        del self._held[: len(raw) + 1]
        self._take_line()
        return raw

    def _expect_body(self, head: ResponseHead) -> None:
        coding = head.headers.get("transfer-encoding", "").strip().lower()
        given = head.headers.get("content-length", "")
        lengths = {part.strip() for part in given.split(",")} - {""}
        if head.status in _NO_BODY:
            self.is_over = True
        elif coding == "chunked":
            self._is_chunked, self._phase = True, "size"
        elif coding:
            raise BadResponse(f"its transfer encoding is {coding[:40]!r}")
        elif lengths:
            text = lengths.pop()
            if lengths or not (text.isascii() and text.isdecimal() and len(text) < 20):
                raise BadResponse(f"its length is {given[:40]!r}")
            self._left = int(text)
            self.is_over = not self._left

    def _go_on(self, pieces: list[bytes]) -> bool:
        """One step further into the body; False if more bytes are needed for it."""
        if self._phase == "data":
            return self._take_data(pieces)
        line = self._take_line()
        if line is None:
            return False
        if self._phase == "size":
            self._left = _parse_chunk_size(line)
            self._phase = "data" if self._left else "trailer"
        elif self._phase == "trailer":
            self.is_over = not line
        elif line:
            raise BadResponse("a chunk of it is longer than it says")
        else:
            self._phase = "size"
        return True

    def _take_data(self, pieces: list[bytes]) -> bool:
        taken = bytes(self._held if self._left is None else self._held[: self._left])
        del self._held[: len(taken)]
        if taken:
            pieces.append(taken)
        if self._left is None:
            self.is_over = self._is_closed
            return False
        self._left -= len(taken)
        if self._left:
            return False
        self._phase = "break"
        self.is_over = not self._is_chunked
        return True

    def _take_line(self) -> bytes | None:
        end = self._held.find(b"\n")
        if end > _MAX_LINE_BYTES or (end < 0 and len(self._held) > _MAX_LINE_BYTES):
            raise BadResponse("it is not cut into chunks")
        if end < 0:
            return None
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        return line.removesuffix(b"\r")


def _parse_chunk_size(line: bytes) -> int:
    size = line.partition(b";")[0].strip()
    if not 0 < len(size) <= 16 or not _HEX.issuperset(size):
        raise BadResponse(f"it is not cut into chunks: {line[:40]!r}")
    return int(size, 16)


def _read_head(raw: bytes) -> ResponseHead:
    first, *lines = raw.decode("latin-1").split("\n")
    version, _, rest = first.rstrip("\r").partition(" ")
    status = rest[:3]
    is_status = status.isascii() and status.isdecimal() and rest[3:4] in ("", " ")
    if version not in ("HTTP/1.1", "HTTP/1.0") or not is_status or len(status) < 3:
        raise BadResponse(f"it begins with {first[:40]!r}")
    headers: dict[str, str] = {}
    name = ""
    for line in lines:
        line = line.rstrip("\r")  # noqa: PLW2901 - the same line
        if line[:1] in (" ", "\t") and name:
            headers[name] = f"{headers[name]} {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadResponse(f"its head holds {line[:40]!r}")
        name = name.lower()
        value = value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return ResponseHead(int(status), headers, version == "HTTP/1.0")


_EITHER_HEAD = 32 + 15
"""zlib's word for: a head of gzip or of zlib, whichever comes."""


async def decompress_stream(
    pieces: AsyncGenerator[bytes, None], encoding: str
) -> AsyncGenerator[bytes, None]:
    """What `pieces` hold, as soon as it can be told.

    Raises:
        TransportFailed: packed in a way nobody asked for, or broken.
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
