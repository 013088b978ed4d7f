"""The end of a log: its last whole record, and what a dead writer left behind it."""

import itertools
import os
from pathlib import Path

from handaxe.disk.append_log_records import parse_line
from handaxe.disk.durability import close, sync_file

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
