"""Read a session's undo journal completely, and report damage."""

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from handaxe.disk import locks
from handaxe.disk.append_log import format_line, scan
from handaxe.disk.append_log_records import parse_line, read_line_at
from handaxe.disk.durability import close, sync_file, sync_names
from handaxe.disk.errors import DiskFault
from handaxe.disk.safe_open import open_regular
from handaxe.text.escape import format_count
from handaxe.undo.journal_files.ended_calls import EndedCall, find_pruned_ids, read_ended
from handaxe.undo.journal_files.records import (
    JOURNAL_NAME,
    NEW_JOURNAL_NAME,
    PRUNED_NAME,
    BeforeRecord,
    JournalStart,
    Record,
    TrackedRecord,
    UndoRecord,
    decode,
    has_changes,
    list_journal_files,
)

_FRAME_BYTES = 40
"""Minimum size of a line without its payload."""


class JournalDamage(msgspec.Struct):
    """A place in a journal where a record is missing or damaged."""

    part: str
    reason: str
    calls_before: int
    """Number of calls that had begun before it."""
    until: float = 0.0
    """The record was written before this time."""
    may_hide_call: bool = True
    """Whether it may be the only record of a call."""

    @property
    def sentence(self) -> str:
        """Describe the place and the problem."""
        return f"{self.part}: {self.reason}"


class JournalRecord(msgspec.Struct, frozen=True):
    """One record and its place."""

    part: Path
    offset: int
    payload: bytes
    record: Record

    @property
    def size_bytes(self) -> int:
        """The approximate length of its line."""
        return len(self.payload) + _FRAME_BYTES


class JournalScan:
    """The records of a session's journal in order; damage is known at the end."""

    def __init__(self, directory: Path) -> None:
        self.damages: list[JournalDamage] = []
        self._directory = directory
        self._calls = 0
        self._begun: dict[str, int] = {}
        """Number of calls begun at each of them."""
        self._changed: set[str] = set()
        self._undated = 0

    def __iter__(self) -> Iterator[JournalRecord]:
        # What ends from here on may be missing in what is read.
        ended = read_ended(self._directory)
        files = self._identify_files()
        for part in list_journal_files(self._directory):
            yield from self._read(part)
            self._set_damage_date(part.stat().st_mtime)
        self._find_cut_off()
        if self._identify_files() == files:
            # Or a part was closed or pruned while it was read.
            self._find_missing(ended)

    def _read(self, part: Path) -> Iterator[JournalRecord]:
        lines = scan(part)
        noted = 0
        for line in lines:
            for damage in lines.damages[noted:]:
                self._add(part, damage.reason)
            noted = len(lines.damages)
            try:
                record = decode(line.payload)
            except msgspec.MsgspecError as error:
                self._add(part, f"record {line.seq} is unknown: {error}")
                continue
            if not isinstance(record, JournalStart | UndoRecord):
                self._set_damage_date(record.at)
            if isinstance(record, BeforeRecord | TrackedRecord):
                self._calls += 1
                self._begun[record.call_id] = self._calls
            elif has_changes(record):
                self._changed.add(record.call_id)
            yield JournalRecord(part, line.offset, line.payload, record)
        rest = lines.damages[noted:]
        torn = rest.pop() if rest and lines.torn_bytes else None
        for damage in rest:
            self._add(part, damage.reason)
        if torn is not None and _is_left_unfinished(part, torn.offset):
            # A change is made only when its record is whole on the device.
            self._add(part, torn.reason, may_hide_call=False)

    def _add(self, part: Path, reason: str, *, may_hide_call: bool = True) -> None:
        self.damages.append(
            JournalDamage(part.name, reason, self._calls, may_hide_call=may_hide_call)
        )

    def _set_damage_date(self, at: float) -> None:
        """Set the latest date for the damage so far."""
        for damage in self.damages[self._undated :]:
            damage.until = at
        self._undated = len(self.damages)

    def _find_missing(self, ended: Sequence[EndedCall]) -> None:
        """Find calls that were recorded completely and are now missing."""
        missing: dict[int, dict[str, float]] = {}
        position = 0
        pruned = find_pruned_ids(self._directory) if ended else ()
        for call in ended:
            position = max(position, self._begun.get(call.call_id, 0))
            if call.call_id in pruned:
                # What is older than that would have gone as well.
                missing.clear()
            elif call.call_id not in self._changed:
                missing.setdefault(position, {})[call.call_id] = call.at
        for position, calls in missing.items():
            last, at = list(calls.items())[-1]
            more = (
                f" and of {format_count(len(calls) - 1, 'call')} before it"
                if len(calls) > 1
                else ""
            )
            reason = f"the record of the call {last}{more} is missing"
            self.damages.append(JournalDamage(JOURNAL_NAME, reason, position, until=at))

    def _identify_files(self) -> list[tuple[str, int]]:
        return [(path.name, path.stat().st_ino) for path in list_journal_files(self._directory)]

    def _find_cut_off(self) -> None:
        """Find unfinished records that the next writer cut off."""
        for path in sorted(self._directory.glob(f"{JOURNAL_NAME}.torn-*")):
            reason = "an unfinished record was cut off and saved here"
            self._add(path, reason, may_hide_call=False)


def find_damage(directory: Path) -> list[str]:
    """The damage of a session's undo record, one sentence each; contents are not checked."""
    journal = JournalScan(directory)
    try:
        for _ in journal:
            pass
        found = [damage.sentence for damage in journal.damages]
        pruned = directory / PRUNED_NAME
        if pruned.exists():
            lines = scan(pruned)
            for _ in lines:
                pass
            found += [f"{PRUNED_NAME}: {damage.reason}" for damage in lines.damages]
    except (OSError, DiskFault) as error:
        return [str(error)]
    return found


def _is_left_unfinished(part: Path, offset: int) -> bool:
    """Whether the last line of a part is incomplete and has no writer."""
    fd, _ = open_regular(str(part))
    try:
        # Writers hold the lock of the file until their line is whole.
        locks.hold(fd, shared=True)
        return not read_line_at(fd, offset).endswith(b"\n")
    finally:
        close(fd)


_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_MISSING = b"a record was missing here\n"


class _Going:
    """The records of calls to drop, found in one scan."""

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
        """Whether a place is after the newest dropped call."""
        return (self._parts.index(part), offset) > self._last


def drop_calls(session: Path, calls: Collection[tuple[str, float]]) -> None:
    """Drop calls by id and time from a journal; no call of the session may run.

    Damage stays, unless a newer call is dropped. A crash leaves each part in its old or new form.
    The oldest part is rewritten first, so that no call loses its end before its start.
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
    """Copy the remaining lines of a part durably; return whether it has damage."""
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
    """The remaining lines of a part, and whether each is damage."""
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
