"""Taking calls out of a journal: each part is written anew without them, or goes whole."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from handaxe.disk.append_log_records import format_line, parse_line
from handaxe.disk.durability import sync_file, sync_names
from handaxe.undo.journal_files.journal_scan import JournalScan
from handaxe.undo.journal_files.records import BeforeRecord, JournalStart, TrackedRecord
from handaxe.undo.journal_files.records__layout import NEW_JOURNAL_NAME, list_journal_files

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_MISSING = b"a record was missing here\n"


class _Going:
    """The records of calls that are to go, found in one reading of the journal."""

    def __init__(self, session: Path, calls: Collection[tuple[str, float]]) -> None:
        self.offsets: dict[Path, set[int]] = {part: set() for part in list_journal_files(session)}
        self._parts = list(self.offsets)
        self._last = (0, 0)
        is_going: dict[str, bool] = {}
        self._used: set[Path] = set()
        for read in JournalScan(session):
            record = read.record
            if isinstance(record, JournalStart):
                continue
            if isinstance(record, BeforeRecord | TrackedRecord):
                is_going[record.call_id] = (record.call_id, record.at) in calls
            if not is_going.get(record.call_id, True):
                self._used.add(read.part)
                continue
            self.offsets[read.part].add(read.offset)
            if isinstance(record, BeforeRecord | TrackedRecord):
                self._last = self._parts.index(read.part), read.offset

    def is_used(self, part: Path) -> bool:
        """Whether a part has records of calls that stay."""
        return part in self._used

    def is_newer(self, part: Path, offset: int) -> bool:
        """Whether a place comes after the newest call that goes."""
        return (self._parts.index(part), offset) > self._last


def drop_calls(session: Path, calls: Collection[tuple[str, float]]) -> None:
    """Drop calls, by their ids and times, from a journal; no call of the session may run.

    Damage stays, unless a newer call goes. A crash leaves each part as it was or as it should be.
    The oldest part comes first, so that no call loses its end before its beginning.
    """
    going = _Going(session, calls)
    for part, offsets in going.offsets.items():
        if not offsets:
            continue
        is_damaged = _write_without(part, going, session / NEW_JOURNAL_NAME)
        if going.is_used(part) or is_damaged:
            (session / NEW_JOURNAL_NAME).replace(part)
        else:
            (session / NEW_JOURNAL_NAME).unlink()
            part.unlink()
        sync_names(session)


def _write_without(part: Path, going: _Going, place: Path) -> bool:
    """Copy what stays of a part, durably; whether there is damage in it."""
    is_damaged = False
    seq = 1
    with part.open("rb") as old, os.fdopen(os.open(place, _CREATE, 0o600), "wb") as new:
        for line, is_spoilt in _read_staying(old, part, going):
            is_damaged |= is_spoilt
            record = parse_line(line, 0)
            new.write(line if isinstance(record, str) else format_line(seq, record.payload))
            seq += 1
        new.flush()
        # When it was last used is still when a call last wrote to it.
        info = os.fstat(old.fileno())
        os.utime(new.fileno(), ns=(info.st_atime_ns, info.st_mtime_ns))
        sync_file(new.fileno())
    return is_damaged


def _read_staying(old: BinaryIO, part: Path, going: _Going) -> Iterator[tuple[bytes, bool]]:
    """The lines of a part that stay, and whether each is damage."""
    offset, expected_seq = 0, 1
    for line in old:
        record = parse_line(line, offset)
        is_spoilt = isinstance(record, str)
        has_gap = not isinstance(record, str) and record.seq != expected_seq
        expected_seq = expected_seq + 1 if isinstance(record, str) else record.seq + 1
        if has_gap and going.is_newer(part, offset):
            yield _MISSING, True
        if going.is_newer(part, offset) if is_spoilt else offset not in going.offsets[part]:
            yield line, is_spoilt
        offset += len(line)
