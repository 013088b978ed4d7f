"""The contents that calls found and left, if stored, and their diffs."""

import contextlib
from collections.abc import Collection

import msgspec

from handaxe.contract.ports.undo import ChangedCall, ChangeKind, PathChange
from handaxe.disk import atomic
from handaxe.undo.content_bundle import BUNDLE, INLINE_BYTES
from handaxe.undo.content_store import ContentNotSaved, ContentStore
from handaxe.undo.directory_trees import explain_ambiguous
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.call_entries import CallEntry
from handaxe.undo.journal_files.records import PathState
from handaxe.undo.path_state import apply_splice

SHOWN_BYTES = 1 << 20


class CallContents:
    """Reads contents from the journal and the store of one session."""

    def __init__(self, journal: UndoJournal, store: ContentStore) -> None:
        self._journal = journal
        self._store = store
        self._read: tuple[tuple[str, float, int], dict[str, PathState]] | None = None

    def open_content(
        self, entry: CallEntry, state: PathState, opened: contextlib.ExitStack
    ) -> bytes | memoryview:
        """The content of a file that a call found; valid while `opened` is open."""
        if state.kept:
            return opened.enter_context(self._store.view(state))
        kept = self.read_small_content(entry, state)
        if kept is None:
            raise ContentNotSaved(
                f"the content of {state.shown} could not be read when it was replaced"
            )
        return kept

    def read_small_content(self, entry: CallEntry, state: PathState) -> bytes | None:
        """The content a call found, if it is small enough for the journal."""
        try:
            if state.kept.startswith(BUNDLE) and state.size_bytes <= INLINE_BYTES:
                with self._store.view(state) as kept:
                    return bytes(kept)
            return self._read_contents(entry)[state.place].content
        except (KeyError, OSError, atomic.DiskFault, msgspec.MsgspecError):
            return None

    def read_left_content(self, entry: CallEntry, place: str) -> bytes | None:
        """The content a call left, if it is small."""
        left = (entry.after or {}).get(place)
        if left is None:
            # It wrote the file under another name.
            return None
        found = entry.found(place)
        old = b"" if found.kind != "file" else self.read_small_content(entry, found)
        if old is None or left.splice is None:
            return old if left.is_same(found) else None
        return apply_splice(old, left.splice)

    def diff_change(self, entry: CallEntry, place: str, found: PathState, left: PathState) -> str:
        """The diff of a call's change to a path."""
        old = b"" if found.kind != "file" else self.read_small_content(entry, found)
        new = b"" if left.kind != "file" else self.read_left_content(entry, place)
        return format_difference(old, new, left.shown)

    def _read_contents(self, entry: CallEntry) -> dict[str, PathState]:
        """The small contents of an entry, read once for all its paths."""
        key = entry.call_id, entry.at, len(entry.more)
        if self._read is None or self._read[0] != key:
            self._read = key, self._journal.read_contents(entry)
        return self._read[1]


def format_difference(before: bytes | None, after: bytes | None, path: str) -> str:
    """A unified diff; empty if one of the two is large or not text."""
    from handaxe.text.diff import format_unified_diff
    from handaxe.text.encoding import NotText, decode

    if before is None or after is None or max(len(before), len(after)) > SHOWN_BYTES:
        return ""
    try:
        return format_unified_diff(
            decode(before).text, decode(after).text, old_name=path, new_name=path
        )
    except NotText:
        return ""


def _classify_change(found: PathState, left: PathState) -> ChangeKind:
    """The kind of change."""
    if found.kind == "absent":
        return "created"
    if left.kind == "absent":
        return "deleted"
    return "mode" if found.is_same(left) else "modified"


def to_changed_call(
    entry: CallEntry, contents: CallContents, *, gone: Collection[str], diffs: bool = False
) -> ChangedCall:
    """A changed call for listings; with `diffs`, including its diffs."""
    changes: list[PathChange] = []
    for place, left in (entry.after or {}).items():
        found = entry.found(place)
        shown = contents.diff_change(entry, place, found, left) if diffs else ""
        kind, reason = _classify_change(found, left), explain_change(entry, place)
        changes.append(PathChange(left.shown, kind, shown, reason))
    return ChangedCall(
        call_id=entry.call_id,
        tool=entry.tool,
        at=entry.at,
        changes=tuple(changes),
        undone=entry.call_id in gone,
        undoes=entry.undoes,
        broken_off=not entry.is_complete,
        cut_off=entry.found_late,
        left_out=entry.left_out,
    )


def explain_change(entry: CallEntry, place: str) -> str:
    """Why a changed path is not certainly the call's own; empty if it is."""
    if place not in entry.ambiguous:
        return ""
    return explain_ambiguous(entry.ambiguous[place], is_traced=entry.is_traced)
