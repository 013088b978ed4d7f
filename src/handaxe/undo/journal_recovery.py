"""Recover the journals of killed processes when a session of their project starts.

Records what their last calls left, and removes temporary files and unneeded pins. The time is
limited; larger work waits until the next undo or resume.
"""

import time
from pathlib import Path

from handaxe.contract.faults.undo import UntrustedRecord
from handaxe.disk.errors import DiskFault
from handaxe.storage.home import get_session_directory
from handaxe.text.paths import is_within
from handaxe.undo.content_store import ContentStore
from handaxe.undo.journal import UndoJournal, read_journal_root
from handaxe.undo.journal_files.call_entries import CallEntry
from handaxe.undo.journal_files.liveness import find_dead_journals, find_oldest_living
from handaxe.undo.journal_files.records import NEW_JOURNAL_NAME, list_journal_files

RECOVERY_S = 1.0
"""After this time no further journal is started ..."""
_MOST_BYTES = 64 << 20
"""... nor one of this size ..."""
_MOST_PLACES = 2_000
"""... nor a call with more paths than this."""


def recover_killed(home: Path, root: str) -> tuple[str, ...]:
    """Recover leftovers of killed processes in a project; return notes."""
    told: list[str] = []
    older_than = find_oldest_living(home)
    deadline = time.monotonic() + RECOVERY_S
    for dead in find_dead_journals(home):
        if time.monotonic() > deadline:
            break
        directory = get_session_directory(home, dead.session_id)
        try:
            files = list_journal_files(directory)
            if files and not _is_due(files, home, root):
                continue
            if not files or _recover(directory, home, older_than, is_bounded=True)[0]:
                dead.forget()
        except UntrustedRecord as fault:
            told.append(fault.sentence)
        except (OSError, DiskFault):
            # It waits for the next time.
            continue
    return tuple(told)


def recover_session(home: Path, session_id: str) -> tuple[str, ...]:
    """Recover all leftovers of one session's earlier run; return notes."""
    try:
        return _recover(get_session_directory(home, session_id), home, find_oldest_living(home))[1]
    except UntrustedRecord as fault:
        return (fault.sentence,)
    except (OSError, DiskFault):
        return ()


def _recover(
    directory: Path, home: Path, older_than: float, *, is_bounded: bool = False
) -> tuple[bool, tuple[str, ...]]:
    """Complete open calls and remove pins without a record.

    Returns whether it worked, and notes.
    """
    store = ContentStore(home, directory.name)
    journal = UndoJournal(directory, store, session_id=directory.name)
    try:
        with journal.alone() as is_alone:
            if not is_alone:
                return False, ()
            problem = journal.complete_all(older_than, _is_small if is_bounded else bool)
            kept = {s.kept for entry in journal.entries() for s in entry.before.values()}
            if not journal.damage:
                # Or a record that cannot be read any more may be what a pin was made for.
                store.drop_pins_except(kept)
            # A pruning that was killed left it.
            (directory / NEW_JOURNAL_NAME).unlink(missing_ok=True)
            return problem is None, journal.warnings
    finally:
        journal.close()


def _is_due(files: list[Path], home: Path, root: str) -> bool:
    """Whether a journal has changes in, above or below a project and is short enough."""
    theirs = read_journal_root(files[0], home)[0]
    is_ours = theirs is not None and (is_within(theirs, (root,)) or is_within(root, (theirs,)))
    return is_ours and sum(path.stat().st_size for path in files) <= _MOST_BYTES


def _is_small(entry: CallEntry) -> bool:
    """Whether reading a call's changes is quick; a whole tree is not."""
    return entry.tracked is None and len(entry.before) <= _MOST_PLACES
