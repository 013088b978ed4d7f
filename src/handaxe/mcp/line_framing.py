"""Split a server's output into lines of limited size.

A line above the limit is written to a file; only its beginning, its end and its size are kept,
which is enough to assign it to a request.
"""

import os
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from handaxe.text.redact import Redactor

MAX_LINE_BYTES = 32 << 20
MAX_KEPT_BYTES = 1 << 30
_EDGE_BYTES = 4096
# Before the result, or after it: JSON leaves the order open.
_ID_FIRST = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)')
_ID_LAST = re.compile(rb'"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class OversizedLine(msgspec.Struct, frozen=True):
    """A line that was too long, and its file."""

    request_id: int | None
    size_bytes: int
    path: str


class LineFramer:
    """Splits a stream of bytes into lines."""

    def __init__(
        self,
        spill: Callable[[], str],
        redactor: Redactor | None = None,
        *,
        limit_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        """`spill` gives a file path for a line that is too long; the file gets no secrets."""
        self._spill = spill
        self._redactor = Redactor() if redactor is None else redactor
        self._stream = self._redactor.open_stream()
        self._limit_bytes = limit_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._file: BinaryIO | None = None
        self._path = ""
        self._head = b""
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes | OversizedLine]:
        """The lines that this piece completes."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            line = self._finish()
            if line is not None:
                yield line
        self._add(rest)

    def close(self) -> None:
        """Close an unfinished file."""
        if self._file is not None:
            self._file.write(self._stream.finish())
            self._file.close()
            self._file = None

    def _add(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._size <= self._limit_bytes:
            self._pieces.append(piece)
            return
        if self._file is None:
            begun = b"".join(self._pieces)
            self._pieces = []
            self._head = (begun + piece[:_EDGE_BYTES])[:_EDGE_BYTES]
            self._path = self._spill()
            self._file = open(self._path, "wb", opener=_open_private)  # noqa: SIM115
            self._stream = self._redactor.open_stream()
            self._file.write(self._stream.feed(begun))
        self._tail = (self._tail + piece)[-_EDGE_BYTES:]
        if self._size <= MAX_KEPT_BYTES:
            self._file.write(self._stream.feed(piece))

    def _finish(self) -> bytes | OversizedLine | None:
        size, self._size = self._size, 0
        if self._file is None:
            line = b"".join(self._pieces)
            self._pieces = []
            return line if line.strip() else None
        self.close()
        found = _ID_FIRST.search(self._head) or _ID_LAST.search(self._tail)
        self._tail = b""
        return OversizedLine(int(found[1]) if found else None, size, self._path)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
