"""What an undo would do to each path, and what speaks against it; nothing is changed here."""

import contextlib
import os
import stat
from collections.abc import Collection, Sequence

import msgspec

from handaxe.contract.ports.undo import TouchedPath, UndoRequest
from handaxe.undo.journal_files.call_entries import CallEntry, StateChange
from handaxe.undo.journal_files.records import PathState
from handaxe.undo.snapshot.nodes import is_within

_WITH_MODE = frozenset({"file", "directory", "special"})


class UndoStep(msgspec.Struct):
    """One path on its way back."""

    place: str
    target: PathState
    """What to put there."""
    target_entry: CallEntry
    expected: PathState
    """What the last of the calls left there."""
    last_entry: CallEntry
    broken: tuple[CallEntry, PathState, PathState] | None = None
    """A later call that found something else than the call before it had left."""
    is_continued: bool = False
    """Whether an earlier undo of it broke off, which may have left the path half put back."""

    @property
    def size_bytes(self) -> int:
        """How much has to be read or written for it."""
        return max(self.target.size_bytes, self.expected.size_bytes)

    @property
    def mode(self) -> int | None:
        """The permission bits to put back; None if the calls did not change them."""
        kind = self.target.kind
        if kind not in _WITH_MODE:
            return None
        is_kept = self.expected.kind == kind and self.expected.mode == self.target.mode
        return None if is_kept else self.target.mode

    def is_done(self, now: PathState) -> bool:
        """Whether the path is already as it was before."""
        if self.expected.has_more_parents(self.target) and now.has_more_parents(self.target):
            return False
        return now.is_same(self.target) and self.mode in (None, now.mode)

    def is_finished(self, now: PathState) -> bool:
        """Whether the path is as before in everything that putting it back would see to."""
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
        """Whether an undo that broke off may have left the path like this, between both states."""
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
        """Why putting the path back would lose somebody's work; empty if nothing does."""
        if self.broken is not None:
            return f"somebody else changed it before {self.last_entry.tool} changed it again"
        if not now.is_same(self.expected):
            again = self.expected.kind == "absent"
            gone = "it is gone" if now.kind == "absent" else "it was changed since"
            return "something is there again" if again else gone
        has_mode = now.kind in _WITH_MODE
        if self.mode is not None and has_mode and now.mode != self.expected.mode:
            return f"its mode was changed since, to {now.mode:o}"
        if any(self.expected.path in entry.doubtful for entry in self._entries()):
            return "a crash cut the call off, and the file was written long after it began"
        return ""

    def is_replacing_directory(self, now: PathState) -> bool:
        """Whether a directory has to give way to what was there before."""
        kind = self.target.kind
        if now.kind != "directory" or kind in {"directory", "absent"}:
            return False
        return kind != "special" or stat.S_ISFIFO(self.target.type_bits)

    def _entries(self) -> tuple[CallEntry, CallEntry]:
        return self.target_entry, self.last_entry


def find_foreign_entry(directory: str, going: Collection[str]) -> str:
    """Something in a directory that would not go with the paths that go; empty if there is none."""
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
    """What changed while the calls ran, may be somebody else's, and was not asked for by name."""
    if wanted.force or wanted.paths:
        return []
    return [(entry, place) for entry in targets for place in sorted(entry.ambiguous)]


def plan_steps(targets: Sequence[CallEntry], wanted: UndoRequest) -> list[UndoStep]:
    """One step per path, from what the last call left to what the first one found."""
    steps: dict[str, UndoStep] = {}
    alone = {(entry.call_id, place) for entry, place in find_ambiguous(targets, wanted)}
    for entry, place, piece in _list_in_order(targets):
        is_named = not wanted.paths or is_within(place, wanted.paths)
        if not is_named or (entry.call_id, place) in alone:
            continue
        found, left = piece.found, piece.left
        step = steps.get(place)
        if step is None:
            steps[place] = UndoStep(place, _strip_privileges(found, entry), entry, left, entry)
            continue
        if entry is step.last_entry and found.is_same(step.target):
            # What it did before was put back while it went on.
            step.broken = None
        elif not found.is_same(step.expected):
            step.broken = step.broken or (entry, step.expected, found)
        step.expected, step.last_entry = left, entry
    return sorted(steps.values(), key=_get_sort_key)


def _list_in_order(targets: Sequence[CallEntry]) -> list[tuple[CallEntry, str, StateChange]]:
    """The changes of single paths, oldest first: a call may have gone on after later ones."""
    every = [
        (entry, place, piece)
        for entry in targets
        for place, pieces in entry.pieces.items()
        for piece in pieces
    ]
    return sorted(every, key=lambda one: one[2].order)


def _strip_privileges(state: PathState, entry: CallEntry) -> PathState:
    """A state without rights that only a record with the user's own seal may give a file."""
    if entry.is_sealed or state.kind == "absent":
        return state
    named = {name: value for name, value in state.extended.items() if name.startswith("user.")}
    return msgspec.structs.replace(state, mode=state.mode & 0o777, extended=named)


def _get_sort_key(step: UndoStep) -> tuple[int, int, str]:
    """Remove from the inside out, then make from the outside in."""
    depth = step.place.count("/")
    if step.target.kind == "absent":
        return (0, -depth, step.place)
    return (1 if step.target.kind == "directory" else 2, depth, step.place)


def find_touched(step: UndoStep, targets: Sequence[CallEntry]) -> list[TouchedPath]:
    """The paths that a step changes, and whether the user's own seal is on the record of them."""
    is_sealed = all(entry.is_sealed for entry in targets if step.place in (entry.after or ()))
    shared = () if is_sealed else map(os.fsdecode, step.target.shared_with)
    return [TouchedPath(place, is_sealed) for place in (step.place, *shared)]
