"""Save the states of paths that a call may change, and of the trees below them."""

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from handaxe.contract.faults.undo import NotRecorded
from handaxe.disk.errors import DiskFault, describe_os_error
from handaxe.undo.content_bundle import Bundle
from handaxe.undo.content_store import ContentStore
from handaxe.undo.directory_trees import TooBig, list_descendants, list_names
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.records import PathState
from handaxe.undo.path_state import StateRecorder
from handaxe.undo.write_extent import CANNOT_READ, TOO_LARGE, Places, WriteTargets


class OutsideStates(msgspec.Struct, frozen=True):
    """The saved states outside the roots for a call."""

    states: tuple[PathState, ...] = ()
    lost: dict[str, str] = {}
    """Paths that it may change and that are not saved, with reasons."""


class PathRecorder:
    """Records the states of paths, with their contents."""

    def __init__(self, keeper: StateRecorder) -> None:
        self._keeper = keeper

    def keep(
        self,
        places: Places,
        states: list[PathState],
        bundle: Bundle,
        *,
        may_pin: bool,
        trusting: bool,
        leaves_out: bool,
    ) -> tuple[str, ...]:
        """Collect the states of paths and of the trees below them; return the omitted trees.

        Raises:
            TooBig: a tree exceeds the limit and must not be omitted.
            OSError, DiskFault: something cannot be saved.
        """
        left_out: list[str] = []
        for path, names in places.items():
            state = self._keeper.remember(path, bundle, may_pin=may_pin, trusting=trusting)
            state = drop_listed_parents(state, places)
            is_directory = state.kind == "directory"
            if is_directory and names is not None:
                state = msgspec.structs.replace(state, names=names)
            states.append(state)
            if not is_directory or may_pin or names is not None:
                continue
            try:
                inside = list_descendants(path)
            except TooBig:
                if not leaves_out:
                    raise
                left_out.append(state.path)
                continue
            states += [
                self._keeper.remember(place, bundle, may_pin=False, trusting=False)
                for place in inside
            ]
        return tuple(left_out)

    def keep_outside(self, written: WriteTargets, bundle: Bundle) -> OutsideStates:
        """Save the paths outside the roots that a call is known to write, if possible."""
        states: list[PathState] = []
        lost = dict(written.lost)
        for path, names in written.outside.items():
            found: list[PathState] = []
            try:
                self.keep(
                    {path: names}, found, bundle, may_pin=False, trusting=False, leaves_out=False
                )
            except TooBig:
                lost[path] = TOO_LARGE
            except (OSError, DiskFault):
                lost[path] = CANNOT_READ
            else:
                states += [drop_listed_parents(state, written.outside) for state in found]
        return OutsideStates(tuple(states), lost)


@contextmanager
def convert_disk_errors() -> Generator[None]:
    """Turn disk errors into `NotRecorded`."""
    try:
        yield
    except OSError as error:
        raise NotRecorded(reason=describe_os_error(error)) from error
    except DiskFault as fault:
        raise NotRecorded(reason=str(fault)) from fault


def drop_listed_parents(state: PathState, known: Collection[str]) -> PathState:
    """The state without missing directories that have their own state."""
    if not state.missing_parents:
        return state
    above = [str(parent) for parent in Path(state.place).parents][: state.missing_parents]
    missing = next((at for at, parent in enumerate(above) if parent in known), len(above))
    return msgspec.structs.replace(state, missing_parents=missing)


def add_shared_names(
    states: Sequence[PathState],
    journal: UndoJournal,
    tool: str,
    store: ContentStore,
    roots: Callable[[], Sequence[str]],
) -> Iterator[PathState] | Sequence[PathState]:
    """The states of an undo, with the other names of hard-linked files.

    Names without a recorded call are searched in the roots, if these are small enough.
    """
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
    open_names = {
        (dev, ino)
        for (dev, ino), found in names.items()
        if os.lstat(min(found)).st_nlink - store.own_links(dev, ino) > len(found)
    }
    for path in list_names(open_names, map(os.path.realpath, roots())) if open_names else ():
        names[_read_inode(path)].add(path)
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
