"""Find a window of lines in a file of any size, in bounded memory, in one pass.

The pass counts lines, hashes the content and tells text from binary, so a window deep in a big
file costs little more than reading the file once.
"""

import codecs
import os
import re
import threading
from hashlib import sha256
from typing import Self

import msgspec

from handaxe.contract.faults import file as faults
from handaxe.contract.ports.files import FileVersion, FileWindow
from handaxe.text.encoding import Format, NotText, is_mostly_controls, sniff
from handaxe.text.line_window import split_lines

CHUNK_BYTES = 1 << 20
WINDOW_BYTES = 16 * CHUNK_BYTES
SAMPLE_BYTES = 1 << 16
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")


class LineScan(msgspec.Struct, frozen=True):
    """The findings of one pass over a file."""

    digest: str
    size_bytes: int
    total_lines: int
    start: int
    """Where the window's first byte is."""
    end: int
    """Behind the window's last byte."""
    first_line: int
    has_nul: bool
    is_utf8: bool
    first_beyond_ascii: int
    separator: bytes


def read_large_window(
    fd: int, info: os.stat_result, real: str, offset: int, limit: int
) -> FileWindow:
    """Read `limit` lines from line `offset` of an open file and close it."""
    try:
        sample = os.pread(fd, SAMPLE_BYTES, 0)
        if b"\0" in sample:
            # Most binary files show it at once; there is no need to go through all of one.
            raise faults.Binary(real, info.st_size)
        found = scan(fd, offset, limit)
        wanted = min(found.end - found.start, WINDOW_BYTES)
        data = os.pread(fd, wanted, found.start)
        telling = b"" if found.is_utf8 else _read_sample_lines(fd, found.first_beyond_ascii)
    finally:
        os.close(fd)
    if found.has_nul or (not found.is_utf8 and is_mostly_controls(sample)):
        raise faults.Binary(real, found.size_bytes)
    stored = Format() if found.is_utf8 else _detect_legacy_format(telling, data)
    is_cut = found.end - found.start > wanted
    # In another encoding the mark is text, for Edit as well.
    has_bom = stored.encoding == "utf-8" and sample.startswith(codecs.BOM_UTF8)
    if has_bom and not found.start:
        data = data[len(codecs.BOM_UTF8) :]
    text = data.decode(stored.encoding, "replace" if is_cut or not found.is_utf8 else "strict")
    return FileWindow(
        lines=split_lines(text, found.separator.decode()),
        first_line=found.first_line,
        total_lines=found.total_lines,
        version=FileVersion(real, found.digest, found.size_bytes, info.st_mtime_ns),
        encoding=stored.encoding,
        has_bom=has_bom,
        is_cut=is_cut,
    )


def scan(fd: int, offset: int, limit: int) -> LineScan:
    """Count the lines of an open file and find the window of `limit` lines from `offset`."""
    with _Hashing() as hashing:
        counter = _scan_once(fd, b"\n", offset, limit, hashing)
    if not counter.separators:
        # A file without LF may use CR; counting again is rarer than counting both every time.
        again = _scan_once(fd, b"\r", offset, limit, None)
        if again.separators:
            counter = again
    total = counter.total_lines
    start, end, first = counter.start, counter.end, offset
    if offset < 0:
        first = max(1, total + offset + 1)
        window = _scan_once(fd, counter.separator, first, limit, None)
        start, end = window.start, window.end
    size = counter.position
    return LineScan(
        digest=hashing.digest,
        size_bytes=size,
        total_lines=total,
        start=size if start is None else start,
        end=size if end is None else end,
        first_line=first,
        has_nul=counter.has_nul,
        is_utf8=counter.is_utf8,
        first_beyond_ascii=counter.first_beyond_ascii,
        separator=counter.separator,
    )


class _Counter:
    """Lines so far, and where the wanted ones begin and end."""

    def __init__(self, separator: bytes, offset: int, limit: int) -> None:
        self.separator = separator
        self.separators = 0
        self.position = 0
        self.has_nul = False
        self.is_utf8 = True
        self.first_beyond_ascii = 0
        self.ends_open = False
        self.start: int | None = 0 if offset == 1 else None
        self.end: int | None = None
        self._before_start = offset - 1
        self._before_end = offset - 1 + limit
        self._decoder: codecs.IncrementalDecoder | None = None

    @property
    def total_lines(self) -> int:
        return self.separators + self.ends_open

    def take(self, chunk: bytes) -> None:
        found = chunk.count(self.separator)
        after = self.separators + found
        if self.start is None and 0 < self._before_start <= after:
            self.start = self._place(chunk, self._before_start)
        if self.end is None and 0 < self._before_end <= after:
            self.end = self._place(chunk, self._before_end)
        self.separators = after
        self.position += len(chunk)
        self.ends_open = not chunk.endswith(self.separator)
        self._check(chunk)

    def finish(self) -> None:
        """The file is at its end: it may not have ended inside a character."""
        self._decode(b"", final=True)

    def _place(self, chunk: bytes, wanted: int) -> int:
        """Behind the `wanted`-th separator of the file, which is in this chunk."""
        nth = wanted - self.separators
        low, high = 0, len(chunk)
        while high - low > 1:
            middle = (low + high) // 2
            count = chunk.count(self.separator, low, middle)
            if count >= nth:
                high = middle
            else:
                nth -= count
                low = middle
        return self.position + high

    def _check(self, chunk: bytes) -> None:
        if not self.has_nul and b"\0" in chunk:
            self.has_nul = True
        if not self.is_utf8 or (self._decoder is None and chunk.isascii()):
            return
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder("utf-8")()
            beyond = _BEYOND_ASCII.search(chunk)
            self.first_beyond_ascii = self.position - len(chunk) + (beyond.start() if beyond else 0)
        self._decode(chunk)

    def _decode(self, chunk: bytes, *, final: bool = False) -> None:
        if self._decoder is None or not self.is_utf8:
            return
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError:
            self.is_utf8 = False


def _scan_once(
    fd: int, separator: bytes, offset: int, limit: int, hashing: "_Hashing | None"
) -> _Counter:
    counter = _Counter(separator, offset, limit)
    while chunk := os.pread(fd, CHUNK_BYTES, counter.position):
        if hashing is not None:
            hashing.take(chunk)
        counter.take(chunk)
    counter.finish()
    return counter


class _Hashing:
    """A hash that is computed beside the counting: hashing leaves the interpreter free."""

    def __init__(self) -> None:
        from queue import SimpleQueue

        self._hash = sha256()
        self._chunks: SimpleQueue[bytes | None] = SimpleQueue()
        self._slots = threading.Semaphore(4)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.digest = ""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._chunks.put(None)
        self._thread.join()
        self.digest = self._hash.hexdigest()

    def take(self, chunk: bytes) -> None:
        self._slots.acquire()
        self._chunks.put(chunk)

    def _work(self) -> None:
        while (chunk := self._chunks.get()) is not None:
            self._hash.update(chunk)
            self._slots.release()


def _read_sample_lines(fd: int, first: int) -> bytes:
    """Whole lines from the one on that holds the first byte beyond ASCII, by which Edit judges."""
    begin = max(0, first - SAMPLE_BYTES)
    data = os.pread(fd, first - begin + SAMPLE_BYTES, begin)
    return _trim_to_lines(data[data.rfind(b"\n", 0, first - begin) + 1 :])


def _trim_to_lines(data: bytes) -> bytes:
    """`data` up to its last line break; a cut inside a character would look like another text."""
    return data[: data.rfind(b"\n") + 1]


def _detect_legacy_format(telling: bytes, window: bytes) -> Format:
    shown = window if len(window) <= SAMPLE_BYTES else _trim_to_lines(window[:SAMPLE_BYTES])
    try:
        return sniff(telling + shown)
    except NotText:
        return Format(encoding="latin-1")
