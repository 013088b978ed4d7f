"""What calls left that a crash ended, as far as looking at their paths tells."""

import time
from collections.abc import Mapping, Sequence

import msgspec

from handaxe.contract.ports.undo import UndoRequest
from handaxe.undo.directory_trees import find_changes, ignore_closed_directories
from handaxe.undo.journal_files.call_entries import CallEntry
from handaxe.undo.journal_files.records import AfterRecord, PathState, UndoRecord
from handaxe.undo.path_state import read_state
from handaxe.undo.path_state__boot_clock import read_clock
from handaxe.undo.plan import UndoStep, plan_steps


def find_left_states(entry: CallEntry) -> AfterRecord:
    """What a call left that broke off."""

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
    """What an undo left that broke off, and the record of its end if it had done everything.

    What it meant to put at each path is known, so a path counts as changed by it only if that is
    there, or a step on the way to it. Anything else was made by somebody else since.
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
    # What it meant to touch is recorded, whoever's changes these are.
    every = plan_steps(list(undone.values()), UndoRequest(force=True))
    steps = [step for step in every if step.place in entry.before]
    for step in steps:
        step.is_continued = True
    return steps


def _is_own(state: PathState, steps: Mapping[str, UndoStep]) -> bool:
    # Without its record nobody knows what was to be put at a path.
    step = steps.get(state.place)
    return step is None or state.is_same(step.target) or step.is_halfway(state)


def _is_complete(entry: CallEntry, steps: Mapping[str, UndoStep], left: AfterRecord) -> bool:
    now = {**entry.before, **{state.place: state for state in left.states}}
    return all(place in now and step.is_finished(now[place]) for place, step in steps.items())
