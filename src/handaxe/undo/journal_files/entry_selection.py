"""Select the calls of a journal that an undo or a redo applies to."""

from collections.abc import Collection, Sequence

from handaxe.contract.faults.undo import NothingToUndo, UnknownCall
from handaxe.contract.ports.undo import UndoRequest
from handaxe.text.paths import is_within
from handaxe.undo.journal_files.call_entries import CallEntry

_SHOWN_CALLS = 5


def find_undone(entries: Sequence[CallEntry], *, counts_broken_off: bool = False) -> set[str]:
    """The ids of undone calls; a redo removes a call from them.

    `counts_broken_off`: interrupted undos count too.
    """
    gone: set[str] = set()
    # An undo comes later, so in reverse order its own state is already known.
    for entry in reversed(entries):
        is_ended = (entry.is_complete or counts_broken_off) and not entry.is_partial
        if entry.undoes and is_ended and entry.call_id not in gone:
            gone.update(entry.undoes)
    return gone


def is_broken_off(entries: Sequence[CallEntry], targets: Sequence[CallEntry]) -> bool:
    """Whether the last undo or redo of any of these calls was interrupted."""
    undoing = _find_undoing(entries, [entry.call_id for entry in targets])
    return bool(undoing) and not undoing[-1].is_complete


def select_entries(
    entries: Sequence[CallEntry], wanted: UndoRequest, pruned_undos: Collection[str] = ()
) -> list[CallEntry]:
    """The calls to undo, oldest first.

    `pruned_undos`: the ids of undos whose records are gone; taking one back was a redo.

    Raises:
        NothingToUndo: there are no changes left.
        UnknownCall: no call with that id changed anything.
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
        is_redo = is_undo and all(
            undoes.get(call_id) or call_id in pruned_undos for call_id in entry.undoes
        )
        fits = is_undo and not is_redo if wanted.redo else not is_undo
        left_alone = _find_left_alone(entry, entries) if entry.call_id in gone else None
        if fits and _is_meant(entry, wanted, left_alone):
            top = at if is_undo else _find_on_top(changes, at, gone)
            return [*_find_first_attempts(changes, top), changes[top]]
    raise NothingToUndo(redo=wanted.redo, of_paths=bool(wanted.paths))


def _is_meant(entry: CallEntry, wanted: UndoRequest, left_alone: set[str] | None) -> bool:
    """Whether an undo without an id applies to this call.

    `left_alone`: the paths of an undone call that were not restored; None if it was not undone.
    """
    if wanted.paths:
        standing = entry.after or () if left_alone is None else left_alone
        return any(is_within(place, wanted.paths) for place in standing)
    if left_alone is None:
        return entry.has_own_changes or wanted.force
    return wanted.force and bool(left_alone)


def _find_on_top(changes: Sequence[CallEntry], at: int, gone: set[str]) -> int:
    """The position of the call that began earlier and changed one of its paths last."""
    top = changes[at]
    for below in range(at):
        other = changes[below]
        if other.call_id not in gone and not other.undoes and other.is_on_top_of(top):
            at, top = below, other
    return at


def _find_left_alone(entry: CallEntry, entries: Sequence[CallEntry]) -> set[str]:
    """The ambiguous paths of a call that no undo has restored."""
    gone = find_undone(entries)
    undos = [e for e in entries if entry.call_id in e.undoes and e.call_id not in gone]
    return set(entry.ambiguous).difference(*(undo.before for undo in undos))


def _find_first_attempts(changes: Sequence[CallEntry], at: int) -> list[CallEntry]:
    """The interrupted undos and redos that this undo continued, oldest first.

    Includes what a redo began to undo; before a finished redo everything was restored.
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
