"""Append-only JSON lines with a sequence number and a checksum per record.

A record is one line, `{"seq":N,"crc":"xxxxxxxx","event":PAYLOAD}`, whole only with its newline.
Several processes may append to one log. A half record never stays in the middle of it.
"""

import errno
import os
import threading
from binascii import crc32
from collections.abc import Sequence

import msgspec

from handaxe.disk import locks
from handaxe.disk.append_log_records import (
    Damage,
    LogRecord,
    LogScan,
    find_log_end,
    parse_line,
    read_line_at,
    save_sidecar,
    scan,
)
from handaxe.disk.durability import begin_sync, close, sync_content, sync_directory
from handaxe.disk.errors import DiskFault, describe_os_error
from handaxe.disk.safe_open import open_regular

__all__ = ["Damage", "LineLog", "LogFailed", "LogFull", "LogRecord", "LogScan", "TornTail", "scan"]

_APPEND = os.O_RDWR | os.O_APPEND
_CREATE = _APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# As a number: bytes in bytes is tried as a number first, and fails.
_NEWLINE = 10
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class LogFailed(DiskFault):
    """A record could not be written, synced or read back."""

    def __init__(self, reason: str, errno: int | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.errno = errno


class LogFull(LogFailed):
    """The disk is full; the log ends with the record before it."""


class TornTail(msgspec.Struct, frozen=True):
    """An unfinished last line that a dead writer left, and where its bytes are kept."""

    offset: int
    size_bytes: int
    kept_at: str


class LineLog:
    """One log file, opened on the first append, safe to share between threads."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.cuts: list[TornTail] = []
        """Torn tails cut off by this log so far."""
        self._path = os.fsdecode(path)
        self._mutex = threading.Lock()
        self._fd = -1
        self._end = self._written = 0
        self._next_seq = 1
        self._is_new = self._is_unsynced = False
        self._failure: LogFailed | None = None

    def append(self, payload: bytes) -> int:
        """Write one record, a JSON value without newlines; gives its offset."""
        return self.extend((payload,))[0]

    def extend(self, payloads: Sequence[bytes]) -> list[int]:
        """Write records with one system call; gives their offsets.

        Raises:
            LogFull: no room; nothing of the records is left in the file.
            LogFailed: the system refused.
            Locked: another process kept the log to itself.
        """
        if not payloads:
            return []
        for payload in payloads:
            if not payload or _NEWLINE in payload:
                raise ValueError("a payload must be one line, and not empty")
        with self._mutex:
            fd = self._open()
            self._lock(fd)
            try:
                start = self._find_end(fd)
                lines: list[bytes] = []
                offsets: list[int] = []
                end = start
                for seq, payload in enumerate(payloads, self._next_seq):
                    offsets.append(end)
                    lines.append(format_line(seq, payload))
                    end += len(lines[-1])
                self._write(fd, lines[0] if len(lines) == 1 else b"".join(lines), start)
                self._note_end(end, len(lines))
            finally:
                locks.release(fd)
        return offsets

    def extend_long(self, payloads: Sequence[Sequence[bytes]]) -> list[int]:
        """Write records whose payloads come in pieces; gives their offsets.

        Raises: as `extend`.
        """
        if any(_NEWLINE in piece for payload in payloads for piece in payload):
            raise ValueError("a payload must be one line")
        with self._mutex:
            fd = self._open()
            self._lock(fd)
            try:
                start = end = self._find_end(fd)
                offsets: list[int] = []
                for seq, payload in enumerate(payloads, self._next_seq):
                    offsets.append(end)
                    for piece in format_long_line(seq, payload):
                        self._write(fd, piece, start)
                        end += len(piece)
                self._note_end(end, len(payloads))
            finally:
                locks.release(fd)
        return offsets

    def _find_end(self, fd: int) -> int:
        end = os.lseek(fd, 0, os.SEEK_END)
        return end if end == self._end else self._read_new_end(fd, end)

    def _note_end(self, end: int, records: int) -> None:
        self._end = self._written = end
        self._next_seq += records
        self._is_unsynced = True

    def begin_sync(self, offset: int) -> None:
        """Let the device begin with the records from `offset` on; `sync` then waits less."""
        with self._mutex:
            if self._fd >= 0:
                begin_sync(self._fd, offset)

    def sync(self) -> None:
        """Make every record appended so far durable.

        Raises:
            LogFailed: it did not work; that is final for this log object.
        """
        with self._mutex:
            if self._failure is not None:
                raise self._failure
            if self._fd < 0 and not self._is_unsynced:
                return
            try:
                # A descriptor of its own: whoever appends meanwhile need not wait for the disk.
                fd = os.dup(self._fd) if self._fd >= 0 else open_regular(self._path)[0]
            except FileNotFoundError:
                # Somebody took it away while it rested: see `harm`.
                return
            except OSError as error:
                raise _build_failure("sync the log", error) from error
            self._is_unsynced = False
        try:
            sync_content(fd)
            if self._is_new:
                self._sync_name()
        except OSError as error:
            reason = f"could not sync the log: {describe_os_error(error)}"
            # The kernel may have dropped the pages; a second sync would lie.
            self._failure = LogFailed(reason, error.errno)
            raise self._failure from error
        finally:
            close(fd)

    def read_at(self, offset: int) -> bytes:
        """The payload of the record that an append put at `offset`.

        Raises:
            LogFailed: there is no whole record there.
        """
        with self._mutex:
            try:
                line = read_line_at(self._open(), offset)
            except OSError as error:
                raise _build_failure("read the log", error) from error
        record = parse_line(line, offset)
        if isinstance(record, str):
            raise LogFailed(f"no record at offset {offset}: {record}", None)
        return record.payload

    def find_damage(self) -> str | None:
        """Damage to the records written here: `removed` or `cut short`; None: no damage.

        A log whose name was deleted also counts as removed.
        """
        with self._mutex:
            if self._fd >= 0:
                info = os.fstat(self._fd)
            elif not self._written:
                return None
            else:
                try:
                    info = os.stat(self._path)
                except OSError:
                    return "removed"
            if not info.st_nlink:
                return "removed"
            return "cut short" if info.st_size < self._written else None

    def begin_anew(self) -> None:
        """Take the log as it is now: what was lost is not asked for again."""
        self.close()
        self._written = 0

    def close(self) -> None:
        """Close the descriptor. A later append opens the log again."""
        with self._mutex:
            if self._fd >= 0:
                close(self._fd)
                self._fd = -1

    def _open(self) -> int:
        if self._failure is not None:
            raise self._failure
        if self._fd < 0:
            try:
                self._fd = self._create_or_open()
            except OSError as error:
                raise _build_failure("open the log", error) from error
            # Nothing is known of the content yet, so the first append looks at the tail.
            self._end = -1
        return self._fd

    def _create_or_open(self) -> int:
        while True:
            try:
                return open_regular(self._path, access=_APPEND)[0]
            except FileNotFoundError:
                pass
            try:
                fd = os.open(self._path, _CREATE, 0o600)
            except FileExistsError:
                continue
            # The umask may have taken the owner's own bits.
            os.fchmod(fd, 0o600)
            self._is_new = True
            return fd

    def _lock(self, fd: int) -> None:
        try:
            locks.hold(fd)
        except OSError as error:
            raise _build_failure("lock the log", error) from error

    def _read_new_end(self, fd: int, end: int) -> int:
        """Learn what others appended, and cut off what a dead one left unfinished."""
        try:
            whole_end, last_seq = find_log_end(fd, end)
        except OSError as error:
            raise _build_failure("read the end of the log", error) from error
        if whole_end != end:
            self._cut(fd, whole_end, end)
        self._next_seq = last_seq + 1
        return whole_end

    def _cut(self, fd: int, start: int, end: int) -> None:
        try:
            kept_at = save_sidecar(self._path, fd, start, end)
            os.ftruncate(fd, start)
        except OSError as error:
            raise _build_failure("cut off an unfinished record", error) from error
        self.cuts.append(TornTail(start, end - start, kept_at))

    def _write(self, fd: int, line: bytes, start: int) -> None:
        try:
            written = os.write(fd, line)
            while written < len(line):
                # The lock is held, so the rest still lands right behind the beginning.
                written += _write_some(fd, line[written:])
        except OSError as error:
            try:
                os.ftruncate(fd, start)
            except OSError:
                # The next append finds the half record and cuts it off.
                self._end = -1
            raise _build_failure("append to the log", error) from error

    def _sync_name(self) -> None:
        directory = os.open(os.path.split(self._path)[0] or ".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync_directory(directory)
        finally:
            close(directory)
        self._is_new = False


def format_line(seq: int, payload: bytes) -> bytes:
    """The line of a record, newline included."""
    return b'{"seq":%d,"crc":"%08x","event":%b}\n' % (seq, crc32(payload), payload)


def format_long_line(seq: int, pieces: Sequence[bytes]) -> list[bytes]:
    """The same in pieces, of a payload in pieces."""
    checksum = 0
    for piece in pieces:
        checksum = crc32(piece, checksum)
    return [b'{"seq":%d,"crc":"%08x","event":' % (seq, checksum), *pieces, b"}\n"]


def _build_failure(step: str, error: OSError) -> LogFailed:
    kind = LogFull if error.errno in _FULL else LogFailed
    return kind(f"could not {step}: {describe_os_error(error)}", error.errno)


def _write_some(fd: int, rest: bytes) -> int:
    written = os.write(fd, rest)
    if not written:
        raise OSError(errno.EIO, "nothing was written")
    return written
