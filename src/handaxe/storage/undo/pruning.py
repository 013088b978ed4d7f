"""Keeping the undo record within its budget: old parts go, then contents nobody refers to."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from handaxe.contract.undo_faults import UntrustedRecord
from handaxe.disk.faults import DiskFault
from handaxe.storage.home import sessions_directory
from handaxe.storage.tree_snapshots.project_store import (
    prune_snapshots,
    snapshot_bytes,
    snapshots_directory,
)
from handaxe.storage.undo.bundles import kept_name
from handaxe.storage.undo.contents import ContentStore
from handaxe.storage.undo.entries import Entry
from handaxe.storage.undo.journal import UndoJournal
from handaxe.storage.undo.layout import (
    blobs_directory,
    in_place_directory,
    journal_files,
    pins_directory,
)
from handaxe.storage.undo.pruned import note_pruned

DAY_S = 24 * 60 * 60
GRACE_S = 60 * 60
"""Contents younger than this may belong to a record that is just being written."""
STAMP_NAME = ".undo-pruned"


class Pruned(msgspec.Struct, frozen=True):
    """What a pruning removed, or would remove."""

    journal_parts: int
    calls: int
    contents: int
    freed_bytes: int
    kept_bytes: int


_KINDS = ("events", "results", "checkpoints", "outputs", "temporary", "other")


class Usage(msgspec.Struct, frozen=True):
    """Bytes in the data directory, by kind."""

    events: int
    results: int
    checkpoints: int
    other: int
    sessions: int
    outputs: int = 0
    """What commands printed."""
    temporary: int = 0
    """What confined commands put aside for a while."""

    @property
    def total(self) -> int:
        """All of it."""
        kept = self.events + self.results + self.checkpoints
        return kept + self.outputs + self.temporary + self.other


class _Part(msgspec.Struct):
    """A part of a session's journal."""

    session: Path
    path: Path
    size_bytes: int
    used_at: float
    entries: list[Entry]
    kept: frozenset[str]
    """The names of contents outside the journal that its calls need."""


def prune(home: Path, *, max_bytes: int, retention_days: int, dry_run: bool = False) -> Pruned:
    """Remove what is too old, then the oldest until the rest fits, then unneeded contents."""
    parts = sorted(_parts(home), key=lambda part: part.used_at)
    contents = dict(_contents(home))
    oldest = time.time() - retention_days * DAY_S
    total = sum(part.size_bytes for part in parts) + _size_of(contents, parts)
    trees = snapshot_bytes(home)
    # Trees can be kept anew, what calls replaced cannot: so they go first.
    gone = prune_snapshots(
        home, oldest=oldest, excess_bytes=total + trees - max_bytes, dry_run=dry_run
    )
    dropped: list[_Part] = []
    while parts and (parts[0].used_at < oldest or total > max_bytes):
        dropped.append(parts.pop(0))
        total = sum(part.size_bytes for part in parts) + _size_of(contents, parts)
    if not dry_run:
        busy = [part for part in dropped if not _drop(home, part)]
        parts += busy
        dropped = [part for part in dropped if part not in busy]
    needed = _kept_by(parts)
    was_needed = _kept_by(dropped)
    young = time.time() - GRACE_S
    loose = [
        path
        for path, info in contents.items()
        if path.name not in needed and (info.st_ctime < young or path.name in was_needed)
    ]
    if not dry_run:
        for path in loose:
            path.unlink(missing_ok=True)
        _drop_old_leftovers(home, oldest)
    freed = sum(part.size_bytes for part in dropped) + sum(_own_bytes(contents[p]) for p in loose)
    calls = sum(entry.has_changes for part in dropped for entry in part.entries)
    return Pruned(len(dropped), calls, len(loose), freed + gone, total + trees - gone)


def prune_if_due(home: Path, *, max_bytes: int, retention_days: int) -> Pruned | None:
    """Prune if nobody did for a day."""
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
        # Housekeeping never stops anybody; the next day tries again.
        return None


def usage(home: Path) -> Usage:
    """How much the data directory holds."""
    totals: dict[str, int] = dict.fromkeys(_KINDS, 0)
    checkpoints = (
        blobs_directory(home),
        pins_directory(home),
        in_place_directory(home),
        snapshots_directory(home),
    )
    for directory, _, names in os.walk(home):
        place = Path(directory)
        for name in names:
            with contextlib.suppress(OSError):
                size = _own_bytes(os.lstat(place / name))
                if name.startswith("journal") or any(
                    place.is_relative_to(kept) for kept in checkpoints
                ):
                    totals["checkpoints"] += size
                else:
                    totals[_kind_of(place.relative_to(home).parts, name)] += size
    found = sum(1 for _ in sessions_directory(home).glob("*/"))
    return Usage(**totals, sessions=found)


def _kind_of(place: tuple[str, ...], name: str) -> str:
    """What a file in the data directory is, besides what is kept for undo."""
    if place[:1] == ("sessions",) and place[2:3] == ("tmp",):
        return "temporary"
    if place[-1:] == ("results",):
        return "results"
    if place[-1:] == ("tasks",) and name.endswith(".output"):
        return "outputs"
    return "events" if name.startswith("events.jsonl") else "other"


def _parts(home: Path) -> Iterator[_Part]:
    store = ContentStore(home)
    for session in sessions_directory(home).glob("*/"):
        files = journal_files(session)
        if not files:
            continue
        entries = _entries(session, store)
        for path in files:
            try:
                info = path.stat()
            except FileNotFoundError:
                # Somebody else prunes as well.
                continue
            own = [entry for entry in entries if entry.part == path]
            kept = frozenset(name for entry in own for name in _kept_for(entry))
            yield _Part(session, path, info.st_size, info.st_mtime, own, kept)


def _entries(session: Path, store: ContentStore) -> list[Entry]:
    """The calls of a session; read again where somebody else prunes: the rest is still needed."""
    try:
        return UndoJournal(session, store).entries()
    except FileNotFoundError:
        return UndoJournal(session, store).entries()


def _is_worth_it(home: Path, max_bytes: int, oldest: float) -> bool:
    """Whether a look at sizes and ages alone says that something has to go."""
    infos = [
        path.stat()
        for session in sessions_directory(home).glob("*/")
        for path in journal_files(session)
    ]
    contents = sum(_own_bytes(info) for _, info in _contents(home))
    contents += snapshot_bytes(home)
    is_old = any(info.st_mtime < oldest for info in infos)
    return is_old or contents + sum(info.st_size for info in infos) > max_bytes


def _kept_for(entry: Entry) -> Iterator[str]:
    """The names of contents that an undo of the call would want."""
    changed = entry.after
    for place, state in entry.before.items():
        if state.kept and (changed is None or place in changed):
            yield kept_name(state.kept)


def _kept_by(parts: list[_Part]) -> set[str]:
    return {name for part in parts for name in part.kept}


def _contents(home: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for directory in (blobs_directory(home), pins_directory(home)):
        for folder, _, names in os.walk(directory):
            for name in names:
                with contextlib.suppress(OSError):
                    yield Path(folder, name), os.lstat(Path(folder, name))


def _size_of(contents: dict[Path, os.stat_result], parts: list[_Part]) -> int:
    needed = _kept_by(parts)
    return sum(_own_bytes(info) for path, info in contents.items() if path.name in needed)


def _own_bytes(info: os.stat_result) -> int:
    """What removing the name would give back: nothing while the file has another one."""
    return info.st_size if info.st_nlink <= 1 else 0


def _drop(home: Path, part: _Part) -> bool:
    """Remove a part, unless a call of its session is running."""
    journal = UndoJournal(part.session, ContentStore(home))
    with journal.alone() as is_alone:
        if not is_alone:
            return False
        note_pruned(part.session, part.entries)
        part.path.unlink(missing_ok=True)
    return True


def _drop_old_leftovers(home: Path, oldest: float) -> None:
    """What repairs of half-written files had put aside."""
    for pattern in ("*.found", "*.kept"):
        for path in in_place_directory(home).glob(pattern):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
