"""Plan an undo: the step for each path, and objections; nothing changes here."""

import contextlib
import os
import stat
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from handaxe.contract.ports.undo import TouchedPath, UndoRequest
from handaxe.disk.versions import get_birth_ns
from handaxe.text.paths import is_within
from handaxe.undo.journal_files.call_entries import CallEntry, StateChange
from handaxe.undo.journal_files.records import (
    AfterRecord,
    PathState,
    UndoRecord,
    encode_path,
)
from handaxe.undo.path_state import find_changes, ignore_closed_directories, read_clock, read_state
from handaxe.undo.restore import OwnLinks, has_other_names

_WITH_MODE = frozenset({"file", "directory", "special"})


class UndoStep(msgspec.Struct):
    """The restoration of one path."""

    place: str
    target: PathState
    """The state to restore."""
    target_entry: CallEntry
    expected: PathState
    """The state that the last call left."""
    last_entry: CallEntry
    broken: tuple[CallEntry, PathState, PathState] | None = None
    """A later call that found another state than the previous call had left."""
    kept: PathState | None = None
    """The state whose record holds the content, if that has another name."""
    is_implied: bool = False
    """Whether no call recorded the path: one wrote the file there by another name."""
    is_continued: bool = False
    """Whether an earlier undo of it was interrupted."""

    @property
    def size_bytes(self) -> int:
        """The number of bytes to read or write."""
        return max(self.target.size_bytes, self.expected.size_bytes)

    @property
    def mode(self) -> int | None:
        """The permission bits to restore; None if the calls did not change them."""
        kind = self.target.kind
        if kind not in _WITH_MODE:
            return None
        is_kept = self.expected.kind == kind and self.expected.mode == self.target.mode
        return None if is_kept else self.target.mode

    def is_done(self, now: PathState) -> bool:
        """Whether the path is already restored."""
        if self.expected.has_more_parents(self.target) and now.has_more_parents(self.target):
            return False
        return now.is_same(self.target) and self.mode in (None, now.mode)

    def is_finished(self, now: PathState) -> bool:
        """Whether the path is restored in every respect."""
        if not self.is_done(now):
            return False
        if self.target.kind == "absent":
            return now.missing_parents >= self.target.missing_parents
        if self.target.kind != "file" or self.expected.kind == "file":
            return True
        return (now.uid, now.gid, now.extended) == (
            self.target.uid,
            self.target.gid,
            self.target.extended,
        )

    def is_halfway(self, now: PathState) -> bool:
        """Whether the path may be between both states after an interrupted undo."""
        if not self.is_continued or self.broken is not None:
            return False
        was_other = self.expected.kind != self.target.kind
        if now.kind == "absent":
            # What is of another kind is taken away before the old thing is made.
            return was_other
        if now.kind != self.target.kind:
            return False
        if now.kind == "special":
            return was_other and now.type_bits == self.target.type_bits
        if now.kind != "directory":
            return False
        # Directories are open to their owner while there is work in them.
        modes = {self.expected.mode | stat.S_IRWXU, self.target.mode | stat.S_IRWXU}
        return was_other or now.mode in modes

    def find_objection(self, now: PathState) -> str:
        """Why restoring the path would lose other changes; empty if it would not."""
        if self.broken is not None:
            return f"it was changed by others before {self.last_entry.tool} changed it again"
        if not now.is_same(self.expected):
            again = self.expected.kind == "absent"
            gone = "it no longer exists" if now.kind == "absent" else "it was changed since"
            return "a new file exists there" if again else gone
        has_mode = now.kind in _WITH_MODE
        if self.mode is not None and has_mode and now.mode != self.expected.mode:
            return f"its mode was changed since, to {now.mode:o}"
        if any(self.expected.path in entry.doubtful for entry in self._entries()):
            return "a crash interrupted the call, and the file was written long after its start"
        return ""

    def is_replacing_directory(self, now: PathState) -> bool:
        """Whether a directory must be removed for the earlier file."""
        kind = self.target.kind
        if now.kind != "directory" or kind in {"directory", "absent"}:
            return False
        return kind != "special" or stat.S_ISFIFO(self.target.type_bits)

    def _entries(self) -> tuple[CallEntry, CallEntry]:
        return self.target_entry, self.last_entry


def find_foreign_entry(directory: str, going: Collection[str]) -> str:
    """An entry of a directory that the undo does not remove; empty if there is none."""
    waiting = [directory]
    while waiting:
        # What cannot be listed is found out when it has to go.
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.path not in going:
                    return entry.path
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return ""


def find_ambiguous(
    targets: Sequence[CallEntry], wanted: UndoRequest
) -> list[tuple[CallEntry, str]]:
    """Ambiguous changes during the calls that were not requested by name."""
    if wanted.force or wanted.paths:
        return []
    return [(entry, place) for entry in targets for place in sorted(entry.ambiguous)]


def plan_steps(targets: Sequence[CallEntry], wanted: UndoRequest) -> list[UndoStep]:
    """One step per path, from the last state to the first."""
    steps: dict[str, UndoStep] = {}
    written: dict[_Inode, _WrittenFile] = {}
    names: dict[_Inode, set[bytes]] = {}
    holders: dict[_Inode, list[UndoStep]] = {}
    alone = {(entry.call_id, place) for entry, place in find_ambiguous(targets, wanted)}
    for entry, place, piece in _list_in_order(targets):
        is_named = not wanted.paths or is_within(place, wanted.paths)
        if not is_named or (entry.call_id, place) in alone:
            continue
        found, left = piece.found, piece.left
        step = steps.get(place)
        if step is None:
            step = UndoStep(place, _strip_privileges(found, entry), entry, left, entry)
            _join_names(step, found, written)
            steps[place] = step
        else:
            if entry is step.last_entry and found.is_same(step.target):
                # Its earlier changes were undone while it was still running.
                step.broken = None
            elif not found.is_same(step.expected):
                step.broken = step.broken or (entry, step.expected, found)
            step.expected, step.last_entry = left, entry
        for state in (found, left):
            names.setdefault(_get_inode(state), set()).update(state.shared_with)
        inode = _get_inode(left)
        if _is_written_in_place(found, left):
            kept = _strip_privileges(found, entry)
            written.setdefault(inode, _WrittenFile(kept, entry)).lefts.append((left, entry))
            _change_other_names(holders.get(inode, ()), entry, left)
        holders.setdefault(inode, []).append(step)
    _join_targets(steps)
    if not wanted.paths:
        _add_other_names(steps, written, names)
    return sorted(steps.values(), key=_get_sort_key)


_Inode = tuple[int, int]


class _WrittenFile(msgspec.Struct):
    """A file that calls wrote in place, under any name."""

    found: PathState
    """The state that the first of them found."""
    entry: CallEntry
    lefts: list[tuple[PathState, CallEntry]] = []


def _get_inode(state: PathState) -> _Inode:
    return state.dev, state.ino


def _is_written_in_place(found: PathState, left: PathState) -> bool:
    """Whether a call changed a file without replacing it."""
    is_one = found.kind == left.kind == "file" and _get_inode(found) == _get_inode(left)
    return is_one and (not found.is_same(left) or found.mode != left.mode)


def _change_other_names(steps: Iterable[UndoStep], entry: CallEntry, left: PathState) -> None:
    """Apply an in-place change to the other names of the file, if the call recorded only one."""
    for step in steps:
        state = step.expected
        is_one = state.kind == "file" and _get_inode(state) == _get_inode(left)
        if is_one and step.place not in entry.pieces:
            step.expected, step.last_entry = _give_content(state, left), entry


def _join_names(step: UndoStep, found: PathState, written: Mapping[_Inode, _WrittenFile]) -> None:
    """Connect the steps of two names of one file."""
    first = written.get(_get_inode(found))
    # A later call that wrote it again may record the other name first.
    if (
        first is not None
        and first.found.born_ns
        and found.kind == "file"
        and any(found.is_same(left) for left, _ in first.lefts)
    ):
        _take_found(step, first)


def _join_targets(steps: Mapping[str, UndoStep]) -> None:
    """Link names again that belonged to one file when the first was removed."""
    for step in steps.values():
        for other in map(steps.get, map(os.fsdecode, step.target.shared_with)):
            if other is None or other.target.kind != "file":
                continue
            is_one = _get_inode(other.target) == _get_inode(step.target)
            if is_one and other.target.is_same(step.target):
                other.target = _add_name(other.target, step.place)


def _add_other_names(
    steps: dict[str, UndoStep],
    written: Mapping[_Inode, _WrittenFile],
    names: Mapping[_Inode, Collection[bytes]],
) -> None:
    """Add other names of a file, which keep written content when the first name is replaced."""
    whole = {
        _get_inode(step.target)
        for step in steps.values()
        if _get_inode(step.target) == _get_inode(step.expected)
    }
    for inode, first in written.items():
        # A file with a single name then got its other names later.
        if inode in whole or not first.found.born_ns:
            continue
        left, last_entry = first.lefts[-1]
        for name in {os.fsdecode(name) for name in names[inode]} - steps.keys():
            text, raw = encode_path(name)
            there = PathState(text, "file", raw)
            step = UndoStep(
                name, there, first.entry, _give_content(there, left), last_entry, is_implied=True
            )
            _take_found(step, first)
            steps[name] = step
    _join_targets(steps)


def _take_found(step: UndoStep, first: _WrittenFile) -> None:
    """Let a step restore what the first call that wrote the file found, under another name."""
    step.target = _add_name(_give_content(step.target, first.found), first.found.place)
    step.target_entry, step.kept = first.entry, first.found


def drop_foreign_names(steps: Sequence[UndoStep]) -> list[UndoStep]:
    """The steps without names that no call recorded and that belong to another file now."""
    return [step for step in steps if not step.is_implied or _is_name_of(step.place, step.expected)]


def _is_name_of(place: str, state: PathState) -> bool:
    try:
        info, born_ns = os.lstat(place), get_birth_ns(place)
    except OSError:
        return False
    # A new file may have got the number of one that is gone.
    is_older = born_ns is None or not state.born_ns or born_ns <= state.born_ns
    return is_older and (info.st_dev, info.st_ino) == _get_inode(state)


def _give_content(state: PathState, other: PathState) -> PathState:
    """A state with the shared properties of another name of the same file."""
    return msgspec.structs.replace(
        other, path=state.path, raw_path=state.raw_path, shared_with=state.shared_with
    )


def _add_name(state: PathState, place: str) -> PathState:
    names = {*state.shared_with, os.fsencode(place)}
    return msgspec.structs.replace(state, shared_with=tuple(sorted(names)))


def _list_in_order(targets: Sequence[CallEntry]) -> list[tuple[CallEntry, str, StateChange]]:
    """The changes of single paths, oldest first: a call may have continued after later ones."""
    every = [
        (entry, place, piece)
        for entry in targets
        for place, pieces in entry.pieces.items()
        for piece in pieces
    ]
    return sorted(every, key=lambda one: one[2].order)


def _strip_privileges(state: PathState, entry: CallEntry) -> PathState:
    """A state without rights that only a sealed record may give a file."""
    if entry.is_sealed or state.kind == "absent":
        return state
    named = {name: value for name, value in state.extended.items() if name.startswith("user.")}
    return msgspec.structs.replace(state, mode=state.mode & 0o777, extended=named)


def _get_sort_key(step: UndoStep) -> tuple[int, int, str]:
    """Remove from the inside out, then create from the outside in."""
    depth = step.place.count("/")
    if step.target.kind == "absent":
        return (0, -depth, step.place)
    return (1 if step.target.kind == "directory" else 2, depth, step.place)


def find_touched(step: UndoStep, targets: Sequence[CallEntry]) -> list[TouchedPath]:
    """The paths that a step changes, and whether their record is sealed."""
    telling = [entry for entry in targets if step.place in (entry.after or ())]
    is_sealed = all(entry.is_sealed for entry in telling or targets)
    shared = () if is_sealed else map(os.fsdecode, step.target.shared_with)
    return [TouchedPath(place, is_sealed) for place in (step.place, *shared)]


def mask_reused_inode(step: UndoStep, now: PathState, own_links: OwnLinks) -> PathState:
    """The target state; its inode number is cleared unless it is certainly the current file.

    A file is written in place, under all its names, only if it has the target's inode number.
    """
    target = step.target
    if not (target.kind == now.kind == "file") or (target.dev, target.ino) != (now.dev, now.ino):
        return target
    if _is_same_file(step, now, own_links):
        return target
    return msgspec.structs.replace(target, ino=-target.ino)


def _is_same_file(step: UndoStep, now: PathState, own_links: OwnLinks) -> bool:
    """Whether it is the file that the call found, so that all its names may be written.

    The creation time decides, because it does not depend on the clock.
    """
    try:
        born = get_birth_ns(step.place)
        if born is None:
            return now.is_same_inode(step.expected)
        if not step.target.born_ns:
            # It had one name then; the process that linked it accepts the current content.
            return not has_other_names(step.place, own_links)
    except OSError:
        return False
    if sys.platform == "darwin":
        # There a file counts as made no later than the time that its content was given.
        return born <= step.target.born_ns
    return born == step.target.born_ns


def find_left_states(entry: CallEntry) -> AfterRecord:
    """The rest of an interrupted call."""

    def look_at(place: str, _: PathState | None) -> PathState:
        return read_state(place)[0]

    changed = find_changes(
        entry.before,
        entry.left_out,
        look_at if entry.tracked is None else ignore_closed_directories(look_at),
        paths_only=entry.paths_only,
    )
    latest_ns = (entry.at + entry.late_s) * 1e9
    doubtful = tuple(state.path for state in changed if state.mtime_ns > latest_ns)
    return AfterRecord(
        entry.call_id,
        time.time(),
        tuple(changed),
        found_late=True,
        doubtful=doubtful,
        clock=read_clock(),
    )


def find_undo_progress(
    entry: CallEntry, entries: Sequence[CallEntry]
) -> tuple[AfterRecord, UndoRecord | None]:
    """The changes of an interrupted undo, and the record of its end if all was done.

    The intended states are known, so a path counts as changed by it only in such a state or a step
    before it. Other states come from others.
    """
    steps = {step.place: step for step in _find_steps(entry, entries)}
    left = find_left_states(entry)
    own = tuple(state for state in left.states if _is_own(state, steps))
    record = msgspec.structs.replace(left, states=own, doubtful=())
    is_complete = bool(steps) and _is_complete(entry, steps, left)
    ended = UndoRecord(entry.call_id, entry.undoes, is_complete=True, is_partial=entry.is_partial)
    return record, ended if is_complete else None


def _find_steps(entry: CallEntry, entries: Sequence[CallEntry]) -> list[UndoStep]:
    undone = {other.call_id: other for other in entries if other.call_id in entry.undoes}
    # Its intended paths are recorded, including changes by others.
    every = plan_steps(list(undone.values()), UndoRequest(force=True))
    steps = [step for step in every if step.place in entry.before]
    for step in steps:
        step.is_continued = True
    return steps


def _is_own(state: PathState, steps: Mapping[str, UndoStep]) -> bool:
    # Without its record, the intended state of a path is unknown.
    step = steps.get(state.place)
    return step is None or state.is_same(step.target) or step.is_halfway(state)


def _is_complete(entry: CallEntry, steps: Mapping[str, UndoStep], left: AfterRecord) -> bool:
    now = {**entry.before, **{state.place: state for state in left.states}}
    return all(place in now and step.is_finished(now[place]) for place, step in steps.items())
