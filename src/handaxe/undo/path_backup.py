"""Keeping what stands at places that a call may change, and in the trees below them."""

import msgspec

from handaxe.disk.errors import DiskFault
from handaxe.undo.content_bundle import Bundle
from handaxe.undo.directory_trees import TooBig, list_descendants
from handaxe.undo.journal_files.records import PathState
from handaxe.undo.path_backup__shared_names import drop_listed_parents
from handaxe.undo.path_state import StateRecorder
from handaxe.undo.write_extent import CANNOT_READ, TOO_LARGE, Places, WriteTargets


class OutsideStates(msgspec.Struct, frozen=True):
    """What was kept for a call outside the roots."""

    states: tuple[PathState, ...] = ()
    lost: dict[str, str] = {}
    """Paths that it may change and that are not kept, with the reasons."""


class PathRecorder:
    """Remembers the states of places, with their contents."""

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
        """Collect the states of paths and of the trees below them; which trees were left out.

        Raises:
            TooBig: a tree has too much below it, unless such a one is to be left out.
            OSError, DiskFault: something cannot be kept.
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
        """Keep what a call is known to write outside the roots, as far as that can be kept."""
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
