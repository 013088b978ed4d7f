"""Files with very long lines, cut into pieces that fit into memory.

ripgrep holds a whole line and all its matches in memory. A line of more than `LONG_LINE_BYTES` is
therefore cut into windows that overlap: each begins with the end of the window before and ends with
the beginning of the next. A match belongs to the window in whose own part it begins. A false match,
such as `^` in the middle of a line, never begins in the own part of a window.
"""

import codecs
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import msgspec

from handaxe.search.deadline import SearchDeadline
from handaxe.search.walk.root import open_beneath

LONG_LINE_BYTES = 48 << 10
WINDOW_BYTES = 32 << 10
OVERLAP_BYTES = 4 << 10
WINDOWS_AT_A_TIME = 96
BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16
_WIDE_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_MARK = b"\xef\xbb\xbf"


class WholeLines(msgspec.Struct, frozen=True):
    """Several lines, all short."""

    first_line: int
    data: bytes


class LongLineWindow(msgspec.Struct, frozen=True):
    """A part of a long line, with the text around it."""

    data: bytes
    begin: int
    """Where its own part begins, in bytes of `data`."""
    end: int
    column: int
    """How many characters of the line come before `data`."""


class LongLine(msgspec.Struct, frozen=True):
    """Windows of one long line; more may follow."""

    line: int
    windows: list[LongLineWindow]


class HoldsNul(Exception):
    """The file is binary from here on."""


def find_long_files(paths: Iterable[str], directory: int, watch: SearchDeadline) -> list[str]:
    """The files with a long line of text, relative to an open directory."""
    found: list[str] = []
    for path in paths:
        if watch.is_over():
            break
        try:
            info = os.stat(path, dir_fd=directory, follow_symlinks=False)
            if not stat.S_ISREG(info.st_mode) or info.st_size <= LONG_LINE_BYTES:
                continue
            fd = open_beneath(directory, path)
        except OSError:
            continue
        with os.fdopen(fd, "rb", buffering=0) as file:
            if has_long_line_ahead(file.read, watch):
                found.append(path)
    return found


def has_long_line_ahead(read: Callable[[int], bytes | None], watch: SearchDeadline) -> bool:
    """Whether a file of text that is read from its beginning holds a long line."""
    rest = read(_HEAD_BYTES) or b""
    if b"\0" in rest and rest[:2] not in _WIDE_MARKS:
        return False
    while not watch.is_over():
        block = read(BLOCK_BYTES) or b""
        rest += block
        at = find_short_lines_end(rest)
        if len(rest) - at > LONG_LINE_BYTES:
            return b"\0" not in rest[at : at + LONG_LINE_BYTES]
        if not block:
            return False
        rest = rest[at:]
    return False


def find_short_lines_end(data: bytes, at: int = 0) -> int:
    """Where the first long line after `at` begins, or the last line that has no end yet."""
    while (found := data.rfind(b"\n", at, at + LONG_LINE_BYTES + 1)) >= 0:
        at = found + 1
    return at


class Pieces:
    """The pieces of one open file."""

    def __init__(self, fd: int, *, encoding: str | None, most_bytes: int) -> None:
        """Plan to cut a file; `most_bytes` limits the size of whole lines together."""
        self._fd = fd
        self._encoding = encoding
        self._most_bytes = most_bytes
        self._decoder: codecs.IncrementalDecoder | None = None
        self._data = b""
        self._at = 0
        """Where the unread part of `_data` begins."""
        self._has_ended = False
        self._skips_line = False

    def skip_line(self) -> None:
        """Skip the rest of the current long line."""
        self._skips_line = True

    def __iter__(self) -> Iterator[WholeLines | LongLine]:
        """The pieces in order; raises `HoldsNul`."""
        self._begin()
        line = 1
        while self._fill():
            end = find_short_lines_end(self._data, self._at)
            if self._has_ended and len(self._data) - end <= LONG_LINE_BYTES:
                end = len(self._data)
            while self._at < end:
                stop = min(end, self._at + self._most_bytes)
                stop = self._data.rfind(b"\n", self._at, stop) + 1 or stop
                if stop <= self._at or (stop < end and self._data[stop - 1 : stop] != b"\n"):
                    stop = self._data.find(b"\n", self._at, end) + 1 or end
                data, self._at = self._data[self._at : stop], stop
                yield WholeLines(line, data)
                line += data.count(b"\n")
            if len(self._data) - self._at > LONG_LINE_BYTES:
                yield from self._split_long_line(line)
                line += 1

    def _split_long_line(self, line: int) -> Iterator[LongLine]:
        windows: list[LongLineWindow] = []
        lead, column = b"", 0
        self._skips_line = is_over = False
        while not is_over and not self._skips_line:
            left, at = self._fill(), self._at
            stop = self._data.find(b"\n", at, at + WINDOW_BYTES)
            is_over = stop >= 0 or left <= WINDOW_BYTES
            if is_over:
                own, after = self._data[at : stop if stop >= 0 else at + left], b""
                self._at += len(own) + 1
            else:
                self._at = _find_character_start(self._data, at + WINDOW_BYTES)
                own = self._data[at : self._at]
                after = self._data[self._at : self._at + OVERLAP_BYTES].partition(b"\n")[0]
            windows.append(
                LongLineWindow(lead + own + after, len(lead), len(lead) + len(own), column)
            )
            before = lead + own
            cut = _find_character_start(before, max(0, len(before) - OVERLAP_BYTES))
            column += _count_characters(before[:cut])
            lead = before[cut:]
            if len(windows) == WINDOWS_AT_A_TIME or is_over:
                yield LongLine(line, windows)
                windows = []
        while not is_over and self._fill():
            stop = self._data.find(b"\n", self._at)
            is_over, self._at = stop >= 0, (stop if stop >= 0 else len(self._data)) + 1

    def _begin(self) -> None:
        head = os.read(self._fd, BLOCK_BYTES)
        encoding = _WIDE_MARKS.get(head[:2], self._encoding)
        if encoding is not None:
            # Python may not know the encoding; then the bytes are read unchanged.
            with suppress(LookupError):
                self._decoder = codecs.getincrementaldecoder(encoding)("replace")
            head = head[2:] if head[:2] in _WIDE_MARKS else head
        self._take(head.removeprefix(_MARK))

    def _fill(self) -> int:
        """Read as much as one window needs; gives the number of unread bytes."""
        self._at = min(self._at, len(self._data))
        while not self._has_ended and len(self._data) - self._at <= 2 * LONG_LINE_BYTES:
            block = os.read(self._fd, BLOCK_BYTES)
            self._has_ended = not block
            self._take(block)
        return len(self._data) - self._at

    def _take(self, block: bytes) -> None:
        if self._decoder is not None:
            text: str = self._decoder.decode(block, final=not block)
            block = text.encode("utf-8", "replace")
        if b"\0" in block:
            raise HoldsNul
        self._data, self._at = self._data[self._at :] + block, 0


def _find_character_start(data: bytes, at: int) -> int:
    """The nearest position before `at` that is not inside a character."""
    for back in range(min(4, at)):
        if data[at - back] & 0xC0 != 0x80:
            return at - back
    return at


def _count_characters(data: bytes) -> int:
    return len(data) if data.isascii() else len(data.decode("utf-8", "replace"))
