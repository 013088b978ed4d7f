"""Which calls of a journal still stand, and which of them an undo or a redo puts back."""

from collections.abc import Sequence

from handaxe.contract.faults.undo import NothingToUndo, UnknownCall
from handaxe.contract.ports.undo import UndoRequest
from handaxe.text.paths import is_within
from handaxe.undo.journal_files.call_entries import CallEntry

_SHOWN_CALLS = 5


def find_undone(entries: Sequence[CallEntry], *, counts_broken_off: bool = False) -> set[str]:
    """The ids of calls whose change does not stand any more; a redo makes it stand again.

    `counts_broken_off`: also where an undo did not come to its end.
    """
    gone: set[str] = set()
    # Whoever undoes comes later, so backwards its own fate is known already.
    for entry in reversed(entries):
        is_ended = (entry.is_complete or counts_broken_off) and not entry.is_partial
        if entry.undoes and is_ended and entry.call_id not in gone:
            gone.update(entry.undoes)
    return gone


def is_broken_off(entries: Sequence[CallEntry], targets: Sequence[CallEntry]) -> bool:
    """Whether the last undo or redo of any of these calls did not come to its end."""
    undoing = _find_undoing(entries, [entry.call_id for entry in targets])
    return bool(undoing) and not undoing[-1].is_complete


def select_entries(entries: Sequence[CallEntry], wanted: UndoRequest) -> list[CallEntry]:
    """The calls to put back, oldest first.

    Raises:
        NothingToUndo: no change is left.
        UnknownCall: no call of that id changed anything.
    """
    changes = [entry for entry in entries if entry.has_changes]
    if wanted.call_id is not None:
        at = _find_position(changes, wanted.call_id)
        is_single = wanted.only or wanted.redo
        return [*_find_first_attempts(changes, at), *changes[at : at + 1 if is_single else None]]
    # What an undo broke off left undone in part can be undone, and redone.
    gone = find_undone(entries) & find_undone(entries, counts_broken_off=True)
    undoes = {entry.call_id: entry.undoes for entry in entries}
    for at, entry in reversed(list(enumerate(changes))):
        is_undo = bool(entry.undoes)
        is_redo = is_undo and all(undoes.get(call_id) for call_id in entry.undoes)
        fits = is_undo and not is_redo if wanted.redo else not is_undo
        left_alone = _find_left_alone(entry, entries) if entry.call_id in gone else None
        if fits and _is_meant(entry, wanted, left_alone):
            top = at if is_undo else _find_on_top(changes, at, gone)
            return [*_find_first_attempts(changes, top), changes[top]]
    raise NothingToUndo(redo=wanted.redo, of_paths=bool(wanted.paths))


def _is_meant(entry: CallEntry, wanted: UndoRequest, left_alone: set[str] | None) -> bool:
    """Whether a call is the one to put back that nobody named.

    `left_alone` is what still stands of a call that was undone; None if it was not.
    """
    if wanted.paths:
        standing = entry.after or () if left_alone is None else left_alone
        return any(is_within(place, wanted.paths) for place in standing)
    if left_alone is None:
        return entry.has_own_changes or wanted.force
    return wanted.force and bool(left_alone)


def _find_on_top(changes: Sequence[CallEntry], at: int, gone: set[str]) -> int:
    """The position of the call that began before this one and last changed one of its paths."""
    top = changes[at]
    for below in range(at):
        other = changes[below]
        if other.call_id not in gone and not other.undoes and other.is_on_top_of(top):
            at, top = below, other
    return at


def _find_left_alone(entry: CallEntry, entries: Sequence[CallEntry]) -> set[str]:
    """What may be somebody else's and no undo of the call has put back."""
    gone = find_undone(entries)
    undos = [e for e in entries if entry.call_id in e.undoes and e.call_id not in gone]
    return set(entry.ambiguous).difference(*(undo.before for undo in undos))


def _find_first_attempts(changes: Sequence[CallEntry], at: int) -> list[CallEntry]:
    """The undos and redos that broke off and that the undo here continued, oldest first.

    With what a redo began to take back. Before a redo that came to its end all was as it had been.
    """
    found = [changes[at]]
    for entry in reversed(_find_undoing(changes[:at], changes[at].undoes)):
        is_taken_back = not found[0].is_complete and entry.call_id in found[0].undoes
        if entry.is_complete and not is_taken_back:
            break
        found.insert(0, entry)
    return found[:-1]


def _find_undoing(entries: Sequence[CallEntry], calls: Sequence[str]) -> list[CallEntry]:
    """The undos of these calls, the redos of those, and so on."""
    related = set(calls)
    found: list[CallEntry] = []
    for entry in entries:
        if not related.isdisjoint(entry.undoes):
            related.add(entry.call_id)
            found.append(entry)
    return found


def _find_position(changes: Sequence[CallEntry], call_id: str) -> int:
    ids = [entry.call_id for entry in changes]
    matching = [at for at, found in enumerate(ids) if found == call_id]
    if not matching:
        raise UnknownCall(call_id, ids[-_SHOWN_CALLS:])
    return matching[-1]
