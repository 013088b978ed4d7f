"""Evidence that a call itself wrote a path: its words, or a trace of its processes.

The time of a change proves nothing, and changes in another session's journal belong to that
session.
"""

import os
import time
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from handaxe.contract.ports.undo import TRACE_ENDED, TRACED
from handaxe.disk.append_log import scan
from handaxe.disk.errors import DiskFault
from handaxe.text.paths import is_within
from handaxe.undo.journal_files.records import (
    JOURNAL_NAME,
    LATE_S,
    AfterRecord,
    AmbiguousPath,
    BeforeRecord,
    MovedRecord,
    PathState,
    TrackedRecord,
    decode,
)
from handaxe.undo.path_state import Timed, measure_elapsed_s, read_clock
from handaxe.undo.snapshot.nodes import NodeChange
from handaxe.undo.write_extent import Places, WriteTargets

TRACES = "traces"
"""The directory of traces of running calls, below a session's directory."""
_CREATE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Evidence:
    """The known writes of one call."""

    def __init__(self, places: Places, trace: str = "") -> None:
        """`places` are the write targets in its words; `trace` is the path of a possible trace."""
        self.places = places
        self.trace = trace
        self.is_traced = self.has_ended = self._is_begun = False
        self._deep = [place for place, names in places.items() if names is None]
        self._written: set[str] = set()
        self._fresh: set[str] = set()
        self._loaded = 0

    @classmethod
    def from_record(cls, record: TrackedRecord) -> "Evidence":
        """The evidence that is left after a crash."""
        places = {os.fsdecode(path): names for path, names in record.places}
        return cls(places, os.fsdecode(record.trace))

    @classmethod
    def from_targets(
        cls, directory: Path, scopes: Iterable[str], written: WriteTargets | None
    ) -> "Evidence":
        """The evidence of a starting call; `directory` is the session's."""
        if written is None:
            return cls(dict.fromkeys(scopes))
        if written.is_too_much:
            return cls(written.inside)
        return cls(written.inside, f"{directory}/{TRACES}/{os.urandom(8).hex()}")

    def open_trace(self) -> int | None:
        """Start the trace; None if it exists or is not needed."""
        if not self.trace:
            return None
        try:
            Path(self.trace).parent.mkdir(mode=0o700, exist_ok=True)
            opened = os.open(self.trace, _CREATE, 0o600)
        except OSError:
            # Without it nothing is proved, which the result of the call says.
            return None
        self._is_begun = True
        return opened

    def load(self) -> None:
        """Read the trace."""
        try:
            written = Path(self.trace).read_bytes() if self.trace else b""
        except OSError:
            return
        if written.startswith(TRACED):
            self.is_traced = True
            self.has_ended = written.endswith(b"\0" + TRACE_ENDED)
            whole = written[len(TRACED) : written.rfind(b"\0") + 1]
            more = set(map(os.fsdecode, whole[self._loaded :].split(b"\0")))
            self._loaded = len(whole)
            self._written |= more
            self._fresh |= more

    @property
    def is_open(self) -> bool:
        """Whether processes of the call may still be traced."""
        return self._is_begun and bool(self.trace)

    def discard(self) -> None:
        """Delete the trace."""
        if self.trace:
            Path(self.trace).unlink(missing_ok=True)
            self.trace = ""

    def proves(self, path: str) -> bool:
        """Whether the call certainly wrote the path."""
        if path in self._written or path in self.places or is_within(path, self._deep):
            return True
        above, _, name = path.rpartition("/")
        patterns = self.places.get(above or "/") or ()
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    def find_fresh(self) -> frozenset[str]:
        """Traced writes without a found change since."""
        self.load()
        return frozenset(self._fresh)

    def settle(self, paths: Iterable[str]) -> None:
        """Mark the traced writes of these paths as handled."""
        self._fresh.difference_update(paths)

    def is_proved_now(self, path: str) -> bool:
        """Whether the call wrote the path since its last found change."""
        return path in self._fresh or (path not in self._written and self.proves(path))

    def find_ambiguous(
        self, changes: Iterable[NodeChange], others: Mapping[str, str]
    ) -> tuple[AmbiguousPath, ...]:
        """The changes that are not certainly the call's, with their sessions."""
        changes = list(changes)
        proved = [change for change in changes if self.proves(change.path)]
        # One file under several names: who writes to one of them changes all.
        inodes = {(new.dev, new.ino) for _, _, new in proved if new is not None and new.is_file}

        def is_own(change: NodeChange) -> bool:
            new = change.new
            is_written = new is not None and (new.dev, new.ino) in inodes
            return is_written or self.proves(change.path)

        return tuple(
            AmbiguousPath(os.fsencode(change.path), others.get(change.path, ""), own)
            for change in changes
            if not (own := is_own(change)) or change.path in others
        )


def find_changes_of_others(directory: Path, since: Timed) -> dict[str, str]:
    """Paths that other sessions recorded as their changes since then, with their ids.

    `directory` is the asking session's.
    """
    found: dict[str, str] = {}
    sessions, own = os.path.split(directory)
    try:
        others = [name for name in os.listdir(sessions) if name != own]
    except OSError:
        return found
    # The clock of files is coarser than that of records, and may have been set meanwhile.
    oldest = min(since.at, time.time() - measure_elapsed_s(since, _Now())) - 1
    for name in others:
        journal = f"{sessions}/{name}/{JOURNAL_NAME}"
        try:
            if os.stat(journal).st_mtime >= oldest:
                found |= dict.fromkeys(_find_changed(Path(journal), since), name)
        except (OSError, DiskFault):
            continue
    return found


def find_states_of_others(
    states: Iterable[PathState], others: Mapping[str, str]
) -> tuple[AmbiguousPath, ...]:
    """The changed paths that other sessions recorded as their changes."""
    places = (state.place for state in states if state.place in others)
    return tuple(
        AmbiguousPath(os.fsencode(place), others[place], is_contested=True) for place in places
    )


class _Now:
    """The current time."""

    def __init__(self) -> None:
        self.at, self.clock = time.time(), read_clock()


def _find_changed(journal: Path, since: Timed) -> set[str]:
    changed: set[str] = set()
    running: dict[str, set[str]] = {}
    for line in scan(journal):
        try:
            record = decode(line.payload)
        except msgspec.MsgspecError:
            continue
        match record:
            case BeforeRecord(paths_only=True) if measure_elapsed_s(since, record) >= -LATE_S:
                running[record.call_id] = {state.place for state in record.states}
            case AfterRecord() | MovedRecord():
                running.pop(record.call_id, None)
                if measure_elapsed_s(since, record) >= 0:
                    left = record.states if isinstance(record, AfterRecord) else record.left
                    unsure = {os.fsdecode(one.path) for one in record.ambiguous}
                    changed |= {state.place for state in left} - unsure
            case _:
                pass
    return changed.union(*running.values())
