"""States of several paths put into relation: shared files, and directories that are missing."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.records import PathState


def drop_listed_parents(state: PathState, known: Collection[str]) -> PathState:
    """The state, not counting missing directories above it that have a state of their own."""
    if not state.missing_parents:
        return state
    above = [str(parent) for parent in Path(state.place).parents][: state.missing_parents]
    missing = next((at for at, parent in enumerate(above) if parent in known), len(above))
    return msgspec.structs.replace(state, missing_parents=missing)


def add_shared_names(
    states: Sequence[PathState], journal: UndoJournal, tool: str
) -> Iterator[PathState] | Sequence[PathState]:
    """The states of an undo, telling of files with several names which names these are."""
    if tool != "Undo":
        return states
    names: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    for state in states:
        if state.kind == "file" and os.lstat(state.place).st_nlink > 1:
            names[state.dev, state.ino].add(state.place)
    if not names:
        return states
    for entry in journal.entries():
        for state in (*entry.before.values(), *(entry.after or {}).values()):
            for other in (state.place, *map(os.fsdecode, state.shared_with)):
                if (key := _read_inode(other)) in names:
                    names[key].add(other)
    return (_add_names(state, names.get((state.dev, state.ino), set())) for state in states)


def _add_names(state: PathState, names: Collection[str]) -> PathState:
    others = tuple(sorted(os.fsencode(name) for name in names if name != state.place))
    if state.kind != "file" or not others:
        return state
    return msgspec.structs.replace(state, shared_with=others)


def _read_inode(path: str) -> tuple[int, int]:
    try:
        info = os.lstat(path)
    except OSError:
        return 0, 0
    return info.st_dev, info.st_ino
