"""Convert changes of a tree into states of the undo journal, with the needed contents."""

import hashlib
import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from handaxe.disk.errors import DiskFault
from handaxe.text.paths import is_within
from handaxe.undo.content_bundle import Bundle
from handaxe.undo.content_store import ContentStore
from handaxe.undo.journal_files.records import (
    COMMAND_S,
    MovedRecord,
    PathState,
    StateKind,
    TrackedRecord,
    encode_path,
)
from handaxe.undo.path_state import compute_splice, read_clock
from handaxe.undo.snapshot.nodes import Node, NodeChange
from handaxe.undo.snapshot.snapshot import Baseline, SnapshotLimits, TreeSnapshot
from handaxe.undo.write_evidence import Evidence, find_changes_of_others


class TreeStates:
    """Records what a command found and left."""

    def __init__(self, snapshot: TreeSnapshot, bundle: Bundle) -> None:
        self._snapshot = snapshot
        self._bundle = bundle

    def of(self, changes: Sequence[NodeChange]) -> tuple[list[PathState], list[PathState]]:
        """The found and the left states, path by path."""
        before = self._find_shared_names([(change.path, change.old) for change in changes])
        after = self._find_shared_names([(change.path, change.new) for change in changes])
        found: list[PathState] = []
        left: list[PathState] = []
        for path, old, new in changes:
            state = self._found(path, old, before)
            found.append(state)
            left.append(self._left(path, new, state, after))
        return found, left

    def _found(self, path: str, node: Node | None, names: "_Names") -> PathState:
        state = _to_state(path, node, names)
        if node is None or not node.is_file:
            return state
        try:
            with self._snapshot.contents.view(node) as content:
                return self._bundle.put(_add_digest(state, node, content), content)
        except DiskFault:
            # It was never stored, or the stored content is missing: undo reports it on demand.
            return state

    def _left(self, path: str, node: Node | None, found: PathState, names: "_Names") -> PathState:
        state = _to_state(path, node, names)
        if node is None or not node.is_file or not node.pack:
            return state
        if state.digest and state.digest == found.digest:
            return state
        old = b"" if found.kind != "file" else found.content
        is_shown = old is not None and self._bundle.has_room(node.size_bytes)
        if not is_shown and node.is_in_pack:
            return state
        try:
            with self._snapshot.contents.view(node) as content:
                state = _add_digest(state, node, content)
                if old is None or not is_shown:
                    return state
                return msgspec.structs.replace(state, splice=compute_splice(old, bytes(content)))
        except DiskFault:
            return state

    def _find_shared_names(self, nodes: Sequence[tuple[str, Node | None]]) -> "_Names":
        """The names of hard-linked files, changed and unchanged ones."""
        linked = [(p, n) for p, n in nodes if n is not None and n.links > 1 and n.is_file]
        names = self._snapshot.find_shared_names(node for _, node in linked)
        # The known state at that time counts, not the current one.
        changed = {path for path, _ in nodes}
        for paths in names.values():
            paths.difference_update(changed)
        for path, node in linked:
            names[node.dev, node.ino].add(path)
        return names


def _add_digest(state: PathState, node: Node, content: memoryview) -> PathState:
    """The state with the SHA-256 of its content, if git has another id for it."""
    if node.is_in_pack:
        return state
    return msgspec.structs.replace(state, digest=hashlib.sha256(content).hexdigest())


_Names = dict[tuple[int, int], set[str]]


def _to_state(path: str, node: Node | None, names: _Names) -> PathState:
    text, raw = encode_path(path)
    if node is None:
        return PathState(text, "absent", raw)
    kind = _find_kind(node)
    shared = names.get((node.dev, node.ino), ()) if kind == "file" else ()
    return PathState(
        text,
        kind,
        raw,
        digest=node.digest.hex() if node.is_in_pack else "",
        size_bytes=node.size_bytes if kind == "file" else 0,
        mode=stat.S_IMODE(node.mode) if kind != "link" else 0,
        uid=node.uid,
        gid=node.gid,
        mtime_ns=node.mtime_ns,
        dev=node.dev,
        ino=node.ino,
        born_ns=node.born_ns,
        extended=dict(node.extended),
        target=node.target,
        shared_with=tuple(sorted(os.fsencode(name) for name in shared if name != path)),
        type_bits=stat.S_IFMT(node.mode) if kind == "special" else 0,
    )


def _find_kind(node: Node) -> StateKind:
    if node.is_file:
        return "file"
    if node.is_directory:
        return "directory"
    return "link" if stat.S_ISLNK(node.mode) else "special"


def recover_tracked_changes(
    tracked: TrackedRecord, home: Path, store: ContentStore, directory: Path
) -> MovedRecord:
    """The states before and after a command, if its baseline is still readable.

    `directory` is the session's.
    """
    baseline = Baseline(os.fsdecode(tracked.manifest), tracked.length)
    now = time.time()
    try:
        snapshot, changes = TreeSnapshot.from_crashed(home, baseline, SnapshotLimits())
    except DiskFault:
        return MovedRecord(tracked.call_id, now, (), (), found_late=True)
    scopes = [os.fsdecode(scope) for scope in tracked.scopes]
    bundle = store.create_bundle()
    try:
        of_call = [change for change in changes if is_within(change.path, scopes)]
        found, left = TreeStates(snapshot, bundle).of(of_call)
        bundle.seal()
    except BaseException:
        bundle.discard()
        raise
    finally:
        snapshot.close(keep=False)
    latest_ns = (tracked.at + COMMAND_S) * 1e9
    doubtful = tuple(s.path for s in left if s.kind == "file" and s.mtime_ns > latest_ns)
    evidence = Evidence.from_record(tracked)
    if is_within(os.path.realpath(evidence.trace), (os.path.realpath(directory),)):
        evidence.load()
        evidence.discard()
    others = find_changes_of_others(directory, tracked)
    return MovedRecord(
        tracked.call_id,
        now,
        tuple(found),
        tuple(left),
        found_late=True,
        doubtful=doubtful,
        ambiguous=evidence.find_ambiguous(of_call, others),
        # A crash may have taken the rest of a trace, so nothing is known of what it lacks.
        is_traced=evidence.is_traced and evidence.has_ended,
        clock=read_clock(),
    )
