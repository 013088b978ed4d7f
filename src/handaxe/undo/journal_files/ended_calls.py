"""A list of changed calls next to the journal, written after their records are durable.

A listed call that is neither in the journal nor pruned was removed by someone.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from handaxe.contract.ports.undo import ChangedCall
from handaxe.disk.append_log import LineLog, parse_line, scan
from handaxe.disk.errors import DiskFault
from handaxe.undo.journal_files.call_entries import CallEntry
from handaxe.undo.journal_files.records import (
    ENDED_NAME,
    JOURNAL_NAME,
    PRUNED_NAME,
    AfterRecord,
    UndoRecord,
    decode,
    list_journal_files,
)


class EndedCall(msgspec.Struct, frozen=True):
    """A call that changed something, and when it ended."""

    call_id: str
    at: float


def read_ended(directory: Path) -> list[EndedCall]:
    """The listed calls in the order they ended."""
    path = directory / ENDED_NAME
    if not path.exists():
        return []
    noted: list[EndedCall] = []
    for line in scan(path):
        with contextlib.suppress(msgspec.MsgspecError):
            noted.append(msgspec.json.decode(line.payload, type=EndedCall))
    return noted


class OwnerUndo(msgspec.Struct, frozen=True):
    """The changes of an undo or a redo."""

    calls: tuple[str, ...]
    """The calls it undid."""
    paths: tuple[str, ...]


class OwnerUndos:
    """Returns each undo once."""

    def __init__(self, directory: Path, since: float) -> None:
        """`directory` is the session's; undos before `since` are skipped."""
        self._directory = directory
        self._since = since
        self._inode = self._offset = 0
        self._begun: dict[str, UndoRecord] = {}
        self._given: set[str] = set()

    def take(self) -> list[OwnerUndo]:
        """The undos since the previous call."""
        try:
            info = os.stat(self._directory / JOURNAL_NAME)
            if (info.st_ino, info.st_size) == (self._inode, self._offset):
                return []
            if not self._inode and info.st_mtime < self._since:
                self._inode, self._offset = info.st_ino, info.st_size
                return []
            return list(self._read())
        except (OSError, DiskFault):
            return []

    def _read(self) -> Iterator[OwnerUndo]:
        journals = list_journal_files(self._directory)
        inodes = [os.stat(journal).st_ino for journal in journals]
        # Full parts are put aside, and old ones are pruned.
        first = inodes.index(self._inode) if self._inode in inodes else 0
        for journal in journals[first:]:
            with journal.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode == self._inode:
                    file.seek(self._offset)
                written = file.read()
                # The last line may be incomplete because it is being written.
                whole = written[: written.rfind(b"\n") + 1]
                self._inode, self._offset = inode, file.tell() - len(written) + len(whole)
                yield from self._find(whole)

    def _find(self, written: bytes) -> Iterator[OwnerUndo]:
        for line in written.splitlines(keepends=True):
            if b'"undid"' not in line and not any(name.encode() in line for name in self._begun):
                continue
            parsed = parse_line(line, 0)
            if isinstance(parsed, str):
                continue
            try:
                record = decode(parsed.payload)
            except msgspec.MsgspecError:
                continue
            if isinstance(record, UndoRecord) and record.by_owner:
                self._begun[record.call_id] = record
            elif isinstance(record, AfterRecord) and record.call_id in self._begun:
                begun = self._begun.pop(record.call_id)
                is_new = record.at >= self._since and record.call_id not in self._given
                self._given.add(record.call_id)
                if is_new and record.states:
                    paths = tuple(state.path for state in record.states)
                    yield OwnerUndo(begun.calls, paths)


class _Gone(msgspec.Struct, frozen=True):
    call_id: str
    tool: str
    at: float
    changed: bool = True
    """Whether its changes remained."""


def note_pruned(session: Path, entries: Iterable[CallEntry]) -> None:
    """List calls that are about to be pruned from the journal."""
    log = LineLog(session / PRUNED_NAME)
    try:
        for entry in entries:
            gone = _Gone(entry.call_id, entry.tool, entry.at, entry.has_changes)
            log.append(msgspec.json.encode(gone))
        log.sync()
    finally:
        log.close()


def read_pruned_calls(session: Path) -> list[ChangedCall]:
    """The calls of a session that can no longer be undone, oldest first."""
    return [
        ChangedCall(call.call_id, call.tool, call.at, (), pruned=True)
        for call in _read(session)
        if call.changed
    ]


def find_pruned_ids(session: Path) -> set[str]:
    """The ids of all pruned calls, including those of an interrupted pruning."""
    return {call.call_id for call in _read(session)}


def _read(session: Path) -> dict[_Gone, None]:
    path = session / PRUNED_NAME
    if not path.exists():
        return {}
    return dict.fromkeys(msgspec.json.decode(line.payload, type=_Gone) for line in scan(path))
