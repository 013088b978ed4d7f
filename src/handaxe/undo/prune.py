"""Keep the undo record within its budget: drop old calls, then unused contents."""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from handaxe.contract.faults.undo import UntrustedRecord
from handaxe.disk.errors import DiskFault
from handaxe.storage.home import get_sessions_directory
from handaxe.undo.content_bundle import parse_content_name
from handaxe.undo.content_store import ContentStore
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.call_entries import CallEntry
from handaxe.undo.journal_files.ended_calls import note_pruned
from handaxe.undo.journal_files.journal_scan import drop_calls
from handaxe.undo.journal_files.records import (
    ENDED_NAME,
    get_blobs_directory,
    get_in_place_directory,
    get_pins_directory,
    list_journal_files,
)
from handaxe.undo.snapshot.project_store import (
    get_snapshots_directory,
    measure_snapshots,
    prune_snapshots,
)

DAY_S = 24 * 60 * 60
GRACE_S = 60 * 60
"""Younger contents may belong to a record that is being written."""
STAMP_NAME = ".undo-pruned"


class PruneResult(msgspec.Struct, frozen=True):
    """The items that pruning removed, or would remove."""

    journal_parts: int
    """Parts of journals that were removed or rewritten."""
    calls: int
    contents: int
    freed_bytes: int
    kept_bytes: int
    young_calls: int = 0
    """The number of dropped calls that are less than a day old."""


_KINDS = ("events", "results", "checkpoints", "outputs", "temporary", "other")


class DiskUsage(msgspec.Struct, frozen=True):
    """Bytes in the data directory, by kind."""

    events: int
    results: int
    checkpoints: int
    other: int
    sessions: int
    outputs: int = 0
    """Output of commands."""
    temporary: int = 0
    """Temporary files of sandboxed commands."""

    @property
    def total(self) -> int:
        """The sum."""
        kept = self.events + self.results + self.checkpoints
        return kept + self.outputs + self.temporary + self.other


class _Call(msgspec.Struct):
    """A call in a journal."""

    session: Path
    entry: CallEntry
    used_at: float
    kept: frozenset[str]
    """The stored contents that an undo of it needs."""


class _Room:
    """The size of the record while calls are removed from it."""

    def __init__(
        self, calls: list[_Call], parts: dict[Path, int], contents: dict[Path, os.stat_result]
    ) -> None:
        self._users = Counter(name for call in calls for name in call.kept)
        self._calls_in = Counter(call.entry.part for call in calls)
        self._part_bytes = dict(parts)
        self._content_bytes = {
            path.name: _measure_own_bytes(info) for path, info in contents.items()
        }
        self.freed_in: Counter[Path] = Counter()
        """Bytes of journals, by session."""
        self.total = sum(parts.values()) + self._sum_contents(self._users)

    def take_out(self, call: _Call) -> None:
        """Subtract a call; its part of the journal goes with the last one."""
        part = call.entry.part
        self._calls_in[part] -= 1
        left = self._part_bytes.get(part, 0)
        freed = min(left, call.entry.size_bytes) if self._calls_in[part] else left
        self._part_bytes[part] = left - freed
        self.freed_in[call.session] += freed
        self._users.subtract(call.kept)
        gone = [name for name in call.kept if not self._users[name]]
        self.total -= freed + self._sum_contents(gone)

    def _sum_contents(self, names: Iterable[str]) -> int:
        return sum(self._content_bytes.get(name, 0) for name in names)


def prune(
    home: Path, *, max_bytes: int, retention_days: int, dry_run: bool = False, spared: str = ""
) -> PruneResult:
    """Drop calls that are too old, then the oldest above the budget, then unused contents.

    The call with the id `spared` always stays.
    """
    began = time.time()
    parts: dict[Path, int] = {}
    calls = sorted(_list_calls(home, parts), key=lambda call: call.used_at)
    contents = dict(_list_contents(home))
    oldest = began - retention_days * DAY_S
    room = _Room(calls, parts, contents)
    trees = measure_snapshots(home)
    # Trees can be saved again, replaced contents cannot, so trees are deleted first.
    gone = prune_snapshots(
        home, oldest=oldest, excess_bytes=room.total + trees - max_bytes, dry_run=dry_run
    )
    chosen: dict[Path, list[_Call]] = {}
    for call in calls:
        if call.used_at >= oldest and room.total <= max_bytes:
            break
        if call.entry.after is not None and call.entry.call_id != spared:
            room.take_out(call)
            chosen.setdefault(call.session, []).append(call)
    if not dry_run:
        chosen = {s: own for s, own in chosen.items() if _drop(home, s, own)}
    dropped = [call for own in chosen.values() for call in own]
    loose = _find_loose(calls, dropped, contents, young=began - GRACE_S)
    if not dry_run:
        _remove_contents(loose)
        _drop_old_leftovers(home, oldest)
    changed = [call.entry for call in dropped if call.entry.has_changes]
    freed = sum(room.freed_in[session] for session in chosen)
    return PruneResult(
        journal_parts=len({call.entry.part for call in dropped}),
        calls=len(changed),
        contents=len(loose),
        freed_bytes=freed + sum(_measure_own_bytes(info) for info in loose.values()) + gone,
        kept_bytes=room.total + trees - gone,
        young_calls=sum(began - entry.at < DAY_S for entry in changed),
    )


def prune_if_full(
    home: Path, *, max_bytes: int, retention_days: int, spared: str
) -> PruneResult | None:
    """Prune if the budget is exceeded; the call `spared` stays."""
    try:
        # No age limit here: that is checked once a day.
        if _is_worth_it(home, max_bytes, oldest=0):
            return prune(home, max_bytes=max_bytes, retention_days=retention_days, spared=spared)
    except (OSError, DiskFault, UntrustedRecord):
        # Pruning never stops a session; it is tried again next time.
        pass
    return None


def prune_if_due(home: Path, *, max_bytes: int, retention_days: int) -> PruneResult | None:
    """Prune if the last pruning was more than a day ago."""
    stamp = home / STAMP_NAME
    with contextlib.suppress(OSError):
        if stamp.stat().st_mtime > time.time() - DAY_S:
            return None
    try:
        stamp.touch(mode=0o600)
        if not _is_worth_it(home, max_bytes, time.time() - retention_days * DAY_S):
            return None
        return prune(home, max_bytes=max_bytes, retention_days=retention_days)
    except (OSError, DiskFault, UntrustedRecord):
        # Pruning never stops a session; it is tried again the next day.
        return None


def measure_usage(home: Path) -> DiskUsage:
    """The size of the data directory."""
    totals: dict[str, int] = dict.fromkeys(_KINDS, 0)
    checkpoints = (
        get_blobs_directory(home),
        get_pins_directory(home),
        get_in_place_directory(home),
        get_snapshots_directory(home),
    )
    for directory, _, names in os.walk(home):
        place = Path(directory)
        for name in names:
            with contextlib.suppress(OSError):
                size = _measure_own_bytes(os.lstat(place / name))
                # The list of calls that there were is never pruned, so no budget counts it.
                is_journal = name.startswith("journal") and name != ENDED_NAME
                if is_journal or any(place.is_relative_to(kept) for kept in checkpoints):
                    totals["checkpoints"] += size
                else:
                    totals[_classify_file(place.relative_to(home).parts, name)] += size
    found = sum(1 for _ in get_sessions_directory(home).glob("*/"))
    return DiskUsage(**totals, sessions=found)


def _classify_file(place: tuple[str, ...], name: str) -> str:
    """The kind of a file in the data directory, except undo data."""
    if place[:1] == ("sessions",) and place[2:3] == ("tmp",):
        return "temporary"
    if place[-1:] == ("results",):
        return "results"
    if place[-1:] == ("tasks",) and name.endswith(".output"):
        return "outputs"
    return "events" if name.startswith("events.jsonl") else "other"


def _list_calls(home: Path, parts: dict[Path, int]) -> Iterator[_Call]:
    """Every call of every session; `parts` receives the sizes of the journal parts."""
    store = ContentStore(home)
    for session in get_sessions_directory(home).glob("*/"):
        if not list_journal_files(session):
            continue
        entries = _read_entries(session, store)
        used_at: dict[Path, float] = {}
        for path in list_journal_files(session):
            # Another process may prune at the same time.
            with contextlib.suppress(FileNotFoundError):
                info = path.stat()
                parts[path], used_at[path] = info.st_size, info.st_mtime
        at = 0.0
        for entry in entries:
            # A clock that was set back makes no call older than those before it.
            at = max(at, min(entry.at, used_at.get(entry.part, entry.at)))
            yield _Call(session, entry, at, frozenset(_list_needed_contents(entry)))


def _read_entries(session: Path, store: ContentStore) -> list[CallEntry]:
    """The calls of a session; read again if another process prunes."""
    # Reading completes what a crash left open, for which the journal is opened.
    with contextlib.closing(UndoJournal(session, store)) as journal:
        try:
            return journal.entries()
        except FileNotFoundError:
            return journal.entries()


def _is_worth_it(home: Path, max_bytes: int, oldest: float) -> bool:
    """Whether sizes and ages alone show that something must go."""
    infos = [
        path.stat()
        for session in get_sessions_directory(home).glob("*/")
        for path in list_journal_files(session)
    ]
    contents = sum(_measure_own_bytes(info) for _, info in _list_contents(home))
    contents += measure_snapshots(home)
    is_old = any(info.st_mtime < oldest for info in infos)
    return is_old or contents + sum(info.st_size for info in infos) > max_bytes


def _list_needed_contents(entry: CallEntry) -> Iterator[str]:
    """The stored contents that an undo of the call needs."""
    changed = entry.after
    for place, state in entry.before.items():
        if state.kept and (changed is None or place in changed):
            yield parse_content_name(state.kept)


def _list_contents(home: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for directory in (get_blobs_directory(home), get_pins_directory(home)):
        for folder, _, names in os.walk(directory):
            for name in names:
                with contextlib.suppress(OSError):
                    yield Path(folder, name), os.lstat(Path(folder, name))


def _find_loose(
    calls: list[_Call],
    dropped: list[_Call],
    contents: dict[Path, os.stat_result],
    *,
    young: float,
) -> dict[Path, os.stat_result]:
    """Contents that nothing refers to."""
    was_needed = {name for call in dropped for name in call.kept}
    going = {id(call) for call in dropped}
    needed = {name for call in calls if id(call) not in going for name in call.kept}
    return {
        path: info
        for path, info in contents.items()
        if path.name not in needed and (info.st_ctime < young or path.name in was_needed)
    }


def _remove_contents(loose: dict[Path, os.stat_result]) -> None:
    """Remove contents, unless a call has started to need them."""
    for path, info in loose.items():
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_ctime_ns == info.st_ctime_ns:
                path.unlink()


def _measure_own_bytes(info: os.stat_result) -> int:
    """The bytes that removing the name would free: none while the file has another name."""
    return info.st_size if info.st_nlink <= 1 else 0


def _drop(home: Path, session: Path, calls: list[_Call]) -> bool:
    """Drop calls of a session; not while a call runs, or if the system refuses."""
    journal = UndoJournal(session, ContentStore(home))
    entries = [call.entry for call in calls]
    try:
        with journal.alone() as is_alone:
            if is_alone:
                note_pruned(session, entries)
                drop_calls(session, {(entry.call_id, entry.at) for entry in entries})
            return is_alone
    except (OSError, DiskFault):
        # What stays is still needed, and is dropped the next time.
        return False


def _drop_old_leftovers(home: Path, oldest: float) -> None:
    """Remove old saved copies of half-written files."""
    for pattern in ("*.found", "*.kept"):
        for path in get_in_place_directory(home).glob(pattern):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
