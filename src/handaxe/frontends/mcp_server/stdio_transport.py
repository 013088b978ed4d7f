"""JSON lines over two descriptors, without blocking and with a maximum length.

The protocol owns standard input and output. Libraries and child processes print to standard error,
and no child inherits the two pipes.
"""

import asyncio
import fcntl
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from handaxe.contract.faults import SetupError
from handaxe.text.sanitize import escape_line_ends, scrub

MAX_LINE_BYTES = 32 << 20
_PIECE_BYTES = 1 << 16
_PIPE_BYTES = 1 << 20
_FULL_BYTES = 8 << 20
"""Maximum unsent bytes before reading stops."""

_encoder = msgspec.json.Encoder(enc_hook=str)


def encode(message: object) -> bytes:
    """One message on one line."""
    try:
        return escape_line_ends(_encoder.encode_lines((message,)))
    except (UnicodeEncodeError, ValueError, RecursionError, OverflowError):
        # Slower, but it accepts lone surrogates and numbers beyond 64 bits.
        return json.dumps(scrub(message), default=str, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a line; ValueError describes what is wrong."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        # The standard library also reads lone surrogates.
        try:
            return json.loads(line)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


def take_stdio() -> tuple[int, int]:
    """Take standard input and output for the protocol; private copies of them."""
    sys.stdout.flush()
    try:
        source, sink = os.dup(0), os.dup(1)
    except OSError:
        raise SetupError("An MCP server on stdio needs standard input and output.") from None
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.fstat(2)
    except OSError:
        os.dup2(null, 2)
    os.dup2(2, 1)
    os.close(null)
    return source, sink


def _set_pipe_size(sink: int) -> None:
    """Enlarge a pipe so that it holds a long result."""
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class LineSplitter:
    """Joins chunks to lines; drops lines that are too long."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._is_skipping = False

    def feed(self, piece: bytes) -> Iterator[bytes | None]:
        """The lines that a chunk completes; None for one that was too long."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._hold(end)
            yield self._taken()
        self._hold(rest)

    def end(self) -> bytes | None:
        """The text after the last line break."""
        return self._taken()

    def _hold(self, piece: bytes) -> None:
        self._held_bytes += len(piece)
        if self._held_bytes > self._max_bytes:
            self._is_skipping = True
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def _taken(self) -> bytes | None:
        line = None if self._is_skipping else b"".join(self._pieces)
        self._pieces.clear()
        self._held_bytes = 0
        self._is_skipping = False
        return line


class StdioTransport:
    """Two descriptors as a stream of lines in each direction."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._splitter = LineSplitter()
        self._on_line: Callable[[bytes | None], None] = lambda _: None
        self._on_end: Callable[[], None] = lambda: None
        self._unsent = bytearray()
        self._sent = asyncio.Event()
        self._sent.set()
        self._is_reading = False
        self._is_ended = False
        self._in_thread = False
        self.is_broken = False
        """Whether the reader is gone."""
        self._was_blocking = os.get_blocking(sink)
        os.set_blocking(sink, False)
        _set_pipe_size(sink)

    def open(self, on_line: Callable[[bytes | None], None], on_end: Callable[[], None]) -> None:
        """Pass on every line, None for one that is too long, and the end."""
        self._on_line, self._on_end = on_line, on_end
        try:
            self._resume()
        except PermissionError:
            # The loop cannot wait for a plain file, which is always ready.
            self._is_reading, self._in_thread = False, True
            threading.Thread(target=self._read_file, daemon=True).start()

    def send(self, line: bytes) -> None:
        """Write a line now, or when the reader is ready."""
        if self.is_broken:
            return
        if self._unsent:
            self._unsent += line
        else:
            written = self._write(line)
            if written == len(line) or self.is_broken:
                return
            self._unsent += memoryview(line)[written:]
            self._sent.clear()
            self._loop.add_writer(self._sink, self._flush)
        if len(self._unsent) > _FULL_BYTES:
            self._pause()

    async def drain(self) -> None:
        """Wait until everything is written or the reader is gone."""
        await self._sent.wait()

    def close(self) -> None:
        """Close both descriptors."""
        self._pause()
        self._loop.remove_writer(self._sink)
        if not self.is_broken:
            os.set_blocking(self._sink, self._was_blocking)
        os.close(self._sink)
        if not self._in_thread:
            os.close(self._source)

    def _resume(self) -> None:
        if not self._is_reading and not self._in_thread and not self._is_ended:
            self._is_reading = True
            self._loop.add_reader(self._source, self._read)

    def _pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._source)

    def _read(self) -> None:
        try:
            piece = os.read(self._source, _PIECE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            piece = b""
        self._take(piece)

    def _read_file(self) -> None:
        # A read error ends the input, as a broken pipe does.
        with suppress(OSError):
            while piece := os.read(self._source, _PIECE_BYTES):
                self._loop.call_soon_threadsafe(self._take, piece)
        self._loop.call_soon_threadsafe(self._take, b"")

    def _take(self, piece: bytes) -> None:
        if piece:
            for line in self._splitter.feed(piece):
                self._on_line(line)
            return
        self._is_ended = True
        self._pause()
        last = self._splitter.end()
        if last != b"":
            self._on_line(last)
        self._on_end()

    def _write(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._sink, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self.is_broken = True
            self._on_end()
            return 0

    def _flush(self) -> None:
        written = self._write(self._unsent)
        del self._unsent[:written]
        if len(self._unsent) <= _FULL_BYTES:
            self._resume()
        if not self._unsent or self.is_broken:
            self._unsent.clear()
            self._loop.remove_writer(self._sink)
            self._sent.set()
