"""What a command changed that a crash cut off: its baseline compared with what is there now."""

import os
import time
from pathlib import Path

from handaxe.disk.errors import DiskFault
from handaxe.undo.content_store import ContentStore
from handaxe.undo.journal_files.records import COMMAND_S, MovedRecord, TrackedRecord
from handaxe.undo.path_state__boot_clock import read_clock
from handaxe.undo.snapshot.nodes import is_within
from handaxe.undo.snapshot.snapshot import Baseline, SnapshotLimits, TreeSnapshot
from handaxe.undo.tree_states import TreeStates
from handaxe.undo.write_evidence import Evidence, find_changes_of_others


def recover_tracked_changes(
    tracked: TrackedRecord, home: Path, store: ContentStore, directory: Path
) -> MovedRecord:
    """What the command found and left, as far as its baseline can still be read.

    `directory` is that of its session.
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
