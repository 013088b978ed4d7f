"""Calls whose record was pruned: that they were there, so that nobody is told otherwise."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from handaxe.contract.ports.undo import ChangedCall
from handaxe.disk.append_log import LineLog, scan
from handaxe.undo.journal_files.call_entries import CallEntry
from handaxe.undo.journal_files.records__layout import PRUNED_NAME


class _Gone(msgspec.Struct, frozen=True):
    call_id: str
    tool: str
    at: float
    changed: bool = True
    """Whether it left anything changed in the end."""


def note_pruned(session: Path, entries: Iterable[CallEntry]) -> None:
    """Remember calls that are about to go from the journal."""
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
    """The ids of all calls that went, or were about to go when a crash came."""
    return {call.call_id for call in _read(session)}


def _read(session: Path) -> dict[_Gone, None]:
    path = session / PRUNED_NAME
    if not path.exists():
        return {}
    return dict.fromkeys(msgspec.json.decode(line.payload, type=_Gone) for line in scan(path))
