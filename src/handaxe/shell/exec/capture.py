"""Capture a command's output: both ends in memory, all of it in a file, exact totals."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from handaxe.contract.ports.shell import CommandOutput
from handaxe.disk import locks
from handaxe.disk.errors import DiskFault
from handaxe.shell.exec.output_quota import OutputQuota
from handaxe.text.ansi import is_binary, to_plain_text
from handaxe.text.redact import RedactedStream, Redactor
from handaxe.text.secrets import MIN_CHARS

END_BYTES = 1 << 17
"""The size of each end in memory."""
FILE_FROM_BYTES = 1 << 14
"""Shorter output needs no file, unless the command moves to the background."""

_SAMPLE_BYTES = 1 << 13
_EARLY_BYTES = 1 << 20


class OutputCapture:
    """The output of one command."""

    def __init__(
        self,
        path: str,
        max_file_bytes: int,
        *,
        file_from_bytes: int = FILE_FROM_BYTES,
        room: OutputQuota | None = None,
        is_heard_from_start: bool = False,
        redactor: Redactor | None = None,
    ) -> None:
        """Without a `path` there is no file.

        `is_heard_from_start`: the first listener also gets earlier output. `redactor` removes
        secrets before anything is stored or passed on.
        """
        self._path = path
        self._file_from = file_from_bytes
        self._room = room
        self._early = bytearray() if is_heard_from_start else None
        self._most = max(max_file_bytes - END_BYTES - 256, 0)
        self._head = bytearray()
        self._tail = bytearray()
        self._newlines = 0
        self._last = b"\n"
        self._file: int | None = None
        self._in_file = 0
        self._has_failed = not path
        self._is_binary = False
        self._is_closed = False
        self._listeners: list[Callable[[bytes], None]] = []
        self._redactor = redactor
        self._streams: dict[bool, RedactedStream] = {}
        """Standard error may be separate from standard output, so each has its own stream."""
        self.received_bytes = 0
        """All received bytes, including those held back because a secret may begin there."""
        self.total_bytes = 0
        self.has_file = False

    def take(self, piece: bytes | bytearray, size: int, *, is_heard: bool = True) -> None:
        """Add the first `size` bytes of `piece`; listeners get them if `is_heard`."""
        self.received_bytes += size
        stream = self._streams.get(is_heard)
        if stream is None and self._redactor and not self._is_closed:
            stream = self._streams[is_heard] = self._redactor.open_stream()
        if stream is None:
            self._keep(piece, size, is_heard=is_heard)
        elif known := stream.feed(bytes(memoryview(piece)[:size])):
            self._keep(known, len(known), is_heard=is_heard)

    def _keep(self, piece: bytes | bytearray, size: int, *, is_heard: bool) -> None:
        self.total_bytes += size
        self._newlines += piece.count(b"\n", 0, size)
        self._last = piece[size - 1 : size]
        room = END_BYTES - len(self._head)
        if room > 0:
            self._head += piece[: min(room, size)]
            if self.total_bytes - size < _SAMPLE_BYTES:
                self._is_binary = is_binary(bytes(self._head[:_SAMPLE_BYTES]))
        if size > room:
            self._keep_end(piece, max(room, 0), size)
        if self._file is not None:
            self._write(memoryview(piece)[:size])
        elif self.total_bytes > self._file_from or self._is_binary:
            self.open_file(memoryview(piece)[:size])
        if is_heard and self._early is not None:
            self._early += piece[: min(size, _EARLY_BYTES - len(self._early))]
        if is_heard and self._listeners:
            heard = bytes(piece[:size])
            for listener in tuple(self._listeners):
                listener(heard)

    def follow(self, listener: Callable[[bytes], None]) -> Callable[[], None]:
        """Receive every further piece, or all from the start."""
        self._listeners.append(listener)
        if self._early is not None:
            early, self._early = bytes(self._early), None
            listener(early)

        def leave() -> None:
            with suppress(ValueError):
                self._listeners.remove(listener)

        return leave

    def open_file(self, newest: memoryview | None = None) -> None:
        """Start the file; `newest` is already counted and may exceed the head."""
        if self.has_file or self._has_failed:
            return
        try:
            Path(self._path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self._path, flags, 0o600)
        except OSError:
            # A full disk or a missing directory must not cost the command its result.
            self._has_failed = True
            return
        with suppress(OSError, DiskFault):
            # `retention` sees by this time that the command is still running.
            locks.hold(self._file, shared=True, wait_s=0)
        self.has_file = True
        if self._room is not None:
            self._room.enter(self._path)
        before = self.total_bytes - (0 if newest is None else len(newest))
        self._write(memoryview(bytes(self._head[:before])))
        if newest is not None:
            self._write(newest)

    def close(self) -> None:
        """Finish: write the end to the file if the middle was left out."""
        for is_heard, stream in self._streams.items():
            if rest := stream.finish():
                self._keep(rest, len(rest), is_heard=is_heard)
        self._listeners.clear()
        self._is_closed = True
        if self._file is None:
            return
        missing = self.total_bytes - self._in_file
        if missing and not self._has_failed:
            end = bytes(self._tail[-min(missing, END_BYTES) :])
            if missing > len(end):
                left_out = missing - len(end)
                note = f"\n[... {left_out:,} bytes of output were left out here ...]\n"
                self._put(memoryview(note.encode()))
            self._in_file += self._put(memoryview(end))
        os.close(self._file)
        self._file = None
        if self._room is not None:
            self._room.leave(self._path)

    @property
    def is_cut(self) -> bool:
        """Whether its file is incomplete, at least until it ends."""
        return self.has_file and self._in_file < self.total_bytes

    def output(self, limit_chars: int) -> CommandOutput:
        """Both ends as text, at most this long."""
        head, tail = self._ends(limit_chars)
        return CommandOutput(
            head=head,
            tail=tail,
            total_bytes=self.total_bytes,
            total_lines=self._newlines + (self._last != b"\n"),
            kept_bytes=self._in_file,
            is_binary=self._is_binary,
        )

    def whole(self) -> bytes | None:
        """The exact bytes, if all of them are in memory."""
        is_all = self.total_bytes == len(self._head) + len(self._tail)
        return bytes(self._head + self._tail) if is_all else None

    def tail(self, limit_chars: int) -> str:
        """The end as text."""
        wanted = limit_chars * 4
        raw = bytes(self._tail[-wanted:])
        if len(raw) < wanted:
            raw = self._head[max(len(self._head) - (wanted - len(raw)), 0) :] + raw
        is_all = len(raw) == self.total_bytes
        text = to_plain_text(bytes(raw), begins_whole=is_all, ends_whole=self._is_closed)
        return text[-limit_chars:] if limit_chars > 0 else ""

    def last_line(self) -> str | None:
        """The text after the last line break, if any."""
        held = b"".join(stream.held for stream in self._streams.values())
        # A longer piece may be most of a secret.
        held = held if len(held) < MIN_CHARS else b""
        if (held[-1:] or self._last) == b"\n":
            return None
        recent = bytes((self._tail or self._head)[-1000:]) + held
        return to_plain_text(recent.rpartition(b"\n")[2]).strip() or None

    def _ends(self, limit_chars: int) -> tuple[str, str]:
        if self.total_bytes <= len(self._head) + len(self._tail):
            whole = bytes(self._head + self._tail)
            text = to_plain_text(whole, begins_whole=True, ends_whole=self._is_closed)
            if len(text) <= limit_chars:
                return text, ""
            return _cut_head(text, limit_chars // 2), _cut_tail(
                text, limit_chars - limit_chars // 2
            )
        half = limit_chars // 2
        return (
            _cut_head(to_plain_text(bytes(self._head), begins_whole=True), half),
            _cut_tail(
                to_plain_text(bytes(self._tail), ends_whole=self._is_closed), limit_chars - half
            ),
        )

    def _keep_end(self, piece: bytes | bytearray, begin: int, size: int) -> None:
        if size - begin >= END_BYTES:
            self._tail[:] = memoryview(piece)[size - END_BYTES : size]
            return
        self._tail += memoryview(piece)[begin:size]
        if len(self._tail) > 2 * END_BYTES:
            del self._tail[:-END_BYTES]

    def _write(self, piece: memoryview) -> None:
        # Once something was left out, nothing later may follow it without a word.
        if self._has_failed or self._in_file >= self._most:
            return
        wanted = min(len(piece), self._most - self._in_file)
        granted = wanted if self._room is None else self._room.take(wanted)
        self._in_file += self._put(piece[:granted])
        if granted < wanted:
            self._most = self._in_file

    def _put(self, piece: memoryview) -> int:
        assert self._file is not None
        done = 0
        try:
            while done < len(piece):
                done += os.write(self._file, piece[done:])
        except OSError:
            self._has_failed = True
        return done


def _cut_head(text: str, limit_chars: int) -> str:
    """The head of a text, cut at a nearby line break."""
    if len(text) <= limit_chars:
        return text
    cut = text.rfind("\n", limit_chars // 2, limit_chars)
    return text[: cut + 1] if cut >= 0 else text[:limit_chars]


def _cut_tail(text: str, limit_chars: int) -> str:
    """The end of a text, cut at a nearby line break."""
    if len(text) <= limit_chars:
        return text
    begin = len(text) - limit_chars
    cut = text.find("\n", begin, begin + limit_chars // 2)
    return text[cut + 1 :] if cut >= 0 else text[begin:]
