"""Reading a log: its records with their checksums, and what was damaged between them."""

import itertools
import os
import re
from binascii import crc32
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

import msgspec

from handaxe.disk.durability import close, sync_file
from handaxe.disk.errors import DiskFault, describe_os_error
from handaxe.disk.safe_open import open_regular


@cache
def _compile_head() -> re.Pattern[bytes]:
    """The start of a line; used for reading a log only."""
    return re.compile(rb'\{"seq":(0|[1-9][0-9]{0,18}),"crc":"([0-9a-f]{8})","event":')


class LogRecord(msgspec.Struct, frozen=True):
    """One record as it is in a log."""

    offset: int
    seq: int
    payload: bytes


def parse_line(line: bytes, offset: int) -> LogRecord | str:
    """The record of a line, or what is wrong with it."""
    if not line.endswith(b"\n"):
        return "the line is not finished"
    head = _compile_head().match(line)
    if head is None or not line.endswith(b"}\n"):
        return "the line is not a record"
    payload = line[head.end() : -2]
    if crc32(payload) != int(head[2], 16):
        return "the checksum does not fit the payload"
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)
    except msgspec.DecodeError:
        return "the payload is not JSON"
    return LogRecord(offset, int(head[1]), payload)


_BUFFER_BYTES = 1 << 18
_LONGEST_LINE_BYTES = 1 << 28
_MOST_DAMAGES = 1000


class Damage(msgspec.Struct, frozen=True):
    """A place in a log where records are missing or spoilt."""

    line_number: int
    offset: int
    size_bytes: int
    reason: str


class LogScan:
    """The whole records of a log in order; what was wrong is known when they are used up."""

    def __init__(self, path: str | os.PathLike[str], start: int = 0) -> None:
        """`start` is the end of a record, where reading begins."""
        self.damages: list[Damage] = []
        """The first 1,000 damaged places."""
        self.damage_count = 0
        self.torn_bytes = 0
        """Size of an unfinished last line: a writer died, or is just writing."""
        self.is_readable = True
        """Whether it can be read to its end; else something is in its way, or the device fails."""
        self._path = os.fsdecode(path)
        self.end = start
        """Where the last whole line ends that was read."""
        # What stands first is known only of the whole log.
        self._expected_seq = 0 if start else 1
        self._records = self._read()

    def __iter__(self) -> Iterator[LogRecord]:
        return self._records

    def __next__(self) -> LogRecord:
        return next(self._records)

    @property
    def is_whole(self) -> bool:
        """Whether nothing was damaged so far."""
        return not self.damage_count

    def _read(self) -> Iterator[LogRecord]:
        try:
            fd, _ = open_regular(self._path)
        except FileNotFoundError:
            raise
        except (DiskFault, OSError) as error:
            self._refuse(1, 0, error)
            return
        with os.fdopen(fd, "rb", _BUFFER_BYTES) as file:
            try:
                offset = file.seek(self.end)
            except OSError as error:
                self._refuse(1, self.end, error)
                return
            line_number = 0
            while line := self._read_line(file, offset, line_number + 1):
                line_number += 1
                content, size_bytes = line
                record = self._take(content, size_bytes, offset, line_number)
                offset += size_bytes
                if content.endswith(b"\n"):
                    self.end = offset
                # Never two lines in memory: the consumer may be slow and lines may be big.
                del line, content
                if record is not None:
                    yield record
                del record

    def _read_line(self, file: BinaryIO, offset: int, line_number: int) -> tuple[bytes, int] | None:
        """The next line and its size; None at the end, and where the device gives no more."""
        try:
            line = file.readline(_LONGEST_LINE_BYTES)
            return (line, len(line) + _skip_rest(file, line)) if line else None
        except OSError as error:
            self._refuse(line_number, offset, error)
            return None

    def _refuse(self, line_number: int, offset: int, error: DiskFault | OSError) -> None:
        self.is_readable = False
        reason = describe_os_error(error) if isinstance(error, OSError) else error
        self._report(Damage(line_number, offset, 0, f"it cannot be read: {reason}"))

    def _take(
        self, line: bytes, size_bytes: int, offset: int, line_number: int
    ) -> LogRecord | None:
        record = parse_line(line, offset) if size_bytes == len(line) else "the line is too long"
        if isinstance(record, str):
            if not line.endswith(b"\n"):
                self.torn_bytes = size_bytes
            self._report(Damage(line_number, offset, size_bytes, record))
            self._expected_seq += self._expected_seq > 0
            return None
        if record.seq != (self._expected_seq or record.seq):
            reason = f"record {self._expected_seq} was expected here, not {record.seq}"
            self._report(Damage(line_number, offset, size_bytes, reason))
        self._expected_seq = record.seq + 1
        return record

    def _report(self, damage: Damage) -> None:
        self.damage_count += 1
        if len(self.damages) < _MOST_DAMAGES:
            self.damages.append(damage)


def scan(path: str | os.PathLike[str], start: int = 0) -> LogScan:
    """Read a log; bad content is reported in the scan, only a missing file raises."""
    return LogScan(path, start)


def _skip_rest(file: BinaryIO, line: bytes) -> int:
    skipped = 0
    while len(line) == _LONGEST_LINE_BYTES and not line.endswith(b"\n"):
        line = file.readline(_LONGEST_LINE_BYTES)
        skipped += len(line)
    return skipped


_TAIL_BYTES = 1 << 12
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_line_at(fd: int, offset: int) -> bytes:
    """The line that starts at an offset, with its newline if it is finished."""
    parts: list[bytes] = []
    size_bytes = _TAIL_BYTES
    while part := os.pread(fd, size_bytes, offset):
        newline = part.find(b"\n")
        if newline >= 0:
            parts.append(part[: newline + 1])
            break
        parts.append(part)
        offset += len(part)
        size_bytes *= 2
    return b"".join(parts)


def find_log_end(fd: int, end: int) -> tuple[int, int]:
    """Where the last finished line ends, and the sequence number that the log has reached."""
    whole_end = _find_line_start(fd, end)
    spoilt = 0
    line_end = whole_end
    while line_end:
        start = _find_line_start(fd, line_end - 1)
        record = parse_line(os.pread(fd, line_end - start, start), start)
        if not isinstance(record, str):
            return whole_end, record.seq + spoilt
        spoilt += 1
        line_end = start
    return whole_end, spoilt


def save_sidecar(path: str, fd: int, start: int, end: int) -> str:
    """Copy a part of a log, durably, to a new file beside it; gives that file's path."""
    for number in itertools.count(1):
        kept_at = f"{path}.torn-{number}"
        try:
            aside = os.open(kept_at, _CREATE, 0o600)
        except FileExistsError:
            continue
        try:
            while start < end:
                start += os.write(aside, os.pread(fd, min(end - start, 1 << 20), start))
            sync_file(aside)
        except BaseException:
            Path(kept_at).unlink()
            raise
        finally:
            close(aside)
        return kept_at
    raise AssertionError("counting does not end")


def _find_line_start(fd: int, end: int) -> int:
    """The offset behind the last newline before `end`."""
    size_bytes = _TAIL_BYTES
    while end > 0:
        start = max(0, end - size_bytes)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
        size_bytes *= 2
    return 0
