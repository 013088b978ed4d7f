"""Whether a file is the one that a call found, or another one that has got its number."""

import msgspec

from handaxe.disk.versions__births import get_birth_ns
from handaxe.undo.journal_files.records import PathState
from handaxe.undo.plan import UndoStep


def mask_reused_inode(step: UndoStep, now: PathState) -> PathState:
    """What to put there, under a number of no file unless it surely is the file there now.

    A file is only written in place, under all its names, when it has the number of the target.
    """
    target = step.target
    if not (target.kind == now.kind == "file") or (target.dev, target.ino) != (now.dev, now.ino):
        return target
    if _has_stayed(step, now):
        return target
    return msgspec.structs.replace(target, ino=-target.ino)


def _has_stayed(step: UndoStep, now: PathState) -> bool:
    """Whether the file was there when the call began, so that its number is its own."""
    try:
        born = get_birth_ns(step.place)
    except OSError:
        return False
    if born is None:
        return now.is_same_inode(step.expected)
    return born <= step.target_entry.at * 1e9
