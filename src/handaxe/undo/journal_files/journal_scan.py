"""Reading the undo journal of a session from end to end, and what cannot be read of it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from handaxe.disk import locks
from handaxe.disk.append_log import scan
from handaxe.disk.append_log_records__line_tail import read_line_at
from handaxe.disk.durability import close
from handaxe.disk.errors import DiskFault
from handaxe.disk.safe_open import open_regular
from handaxe.text.escape__counting import format_count
from handaxe.undo.journal_files.ended_calls import EndedCall, read_ended
from handaxe.undo.journal_files.ended_calls__pruned import find_pruned_ids
from handaxe.undo.journal_files.records import (
    BeforeRecord,
    JournalStart,
    Record,
    TrackedRecord,
    UndoRecord,
    decode,
    has_changes,
)
from handaxe.undo.journal_files.records__layout import JOURNAL_NAME, PRUNED_NAME, list_journal_files

_FRAME_BYTES = 40
"""What a line has around its payload, at least."""


class JournalDamage(msgspec.Struct):
    """A place in a journal where a record is missing or spoilt."""

    part: str
    reason: str
    calls_before: int
    """How many calls had begun by then."""
    until: float = 0.0
    """The record was written before this time."""
    may_hide_call: bool = True
    """Whether it may have been the only record of a call."""

    @property
    def sentence(self) -> str:
        """Where it is and what is wrong."""
        return f"{self.part}: {self.reason}"


class JournalRecord(msgspec.Struct, frozen=True):
    """One record, and where it stands."""

    part: Path
    offset: int
    payload: bytes
    record: Record

    @property
    def size_bytes(self) -> int:
        """How long its line is, nearly."""
        return len(self.payload) + _FRAME_BYTES


class JournalScan:
    """The records of a session's journal in order; what is damaged is known at the end."""

    def __init__(self, directory: Path) -> None:
        self.damages: list[JournalDamage] = []
        self._directory = directory
        self._calls = 0
        self._begun: dict[str, int] = {}
        """How many calls had begun with each of them."""
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
        """What was damaged so far was written before this time."""
        for damage in self.damages[self._undated :]:
            damage.until = at
        self._undated = len(self.damages)

    def _find_missing(self, ended: Sequence[EndedCall]) -> None:
        """Calls that were recorded whole and are not any more."""
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
        """Unfinished records that the next writer has cut off."""
        for path in sorted(self._directory.glob(f"{JOURNAL_NAME}.torn-*")):
            reason = "a record that was not finished was cut off and is kept here"
            self._add(path, reason, may_hide_call=False)


def find_damage(directory: Path) -> list[str]:
    """What cannot be read of a session's undo record, one sentence each; contents aside."""
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
    """Whether nobody is writing the last line of a part, which is not whole."""
    fd, _ = open_regular(str(part))
    try:
        # Writers hold the lock of the file until their line is whole.
        locks.hold(fd, shared=True)
        return not read_line_at(fd, offset).endswith(b"\n")
    finally:
        close(fd)
