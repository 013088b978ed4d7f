"""A log file that never grows beyond its bounds: the newest half and the one before it are kept."""

import os
from contextlib import suppress
from pathlib import Path

from handaxe.text.redact import RedactedStream, Redactor
from handaxe.text.secrets__secret_values import MIN_CHARS

MAX_BYTES = 1 << 20
TAIL_BYTES = 8 << 10


class BoundedLog:
    """Takes whatever somebody writes; at most twice `max_bytes` lie on disk."""

    def __init__(
        self, path: str, *, max_bytes: int = MAX_BYTES, redactor: Redactor | None = None
    ) -> None:
        """`redactor` takes secrets out before anything is kept."""
        self.path = path
        self._redactor = redactor
        self._stream: RedactedStream | None = None
        self._max_bytes = max_bytes
        self._size = 0
        self._fd: int | None = None
        self._tail = b""

    def write(self, data: bytes) -> None:
        """Add to the log; a disk that cannot take it is no reason to stop anybody."""
        if self._stream is None and self._redactor:
            self._stream = self._redactor.open_stream()
        self._keep(data if self._stream is None else self._stream.feed(data))

    def _keep(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        with suppress(OSError):
            for at in range(0, len(data), self._max_bytes):
                self._append(data[at : at + self._max_bytes])

    def read_stderr_tail(self, limit_chars: int) -> str:
        """The end of what was written, from the start of a line where that is possible."""
        held = b"" if self._stream is None else self._stream.held
        # A longer piece may be most of a secret.
        tail = self._tail + held if len(held) < MIN_CHARS else self._tail
        text = tail.decode("utf-8", "replace").strip()
        if len(text) <= limit_chars:
            return text
        return text[-limit_chars:].partition("\n")[2] or text[-limit_chars:]

    def close(self) -> None:
        """Let go of the file."""
        if self._stream is not None and (rest := self._stream.finish()):
            self._keep(rest)
        self._let_go()

    def _let_go(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _append(self, data: bytes) -> None:
        if self._fd is not None and self._size + len(data) > self._max_bytes:
            self._let_go()
            Path(self.path).replace(f"{self.path}.1")
        if self._fd is None:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._fd = os.open(self.path, flags, 0o600)
            self._size = 0
        self._size += os.write(self._fd, data)
