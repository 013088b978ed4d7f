"""Where the undo record lies in the data directory."""

from pathlib import Path

JOURNAL_NAME = "journal.jsonl"
LOCK_NAME = "journal.lock"
PRUNED_NAME = "journal.pruned"
ENDED_NAME = "journal.ended"
NEW_JOURNAL_NAME = ".journal.new"
"""A part of a journal that is being written anew."""


def get_blobs_directory(home: Path) -> Path:
    """Contents by their hash, shared by all sessions."""
    return home / "blobs"


def get_pins_directory(home: Path) -> Path:
    """Second names of files that were replaced, shared by all sessions."""
    return home / "pins"


def get_in_place_directory(home: Path) -> Path:
    """The journal of writes that cannot be atomic by themselves."""
    return home / "in-place"


def list_journal_files(session: Path) -> list[Path]:
    """The journal of a session in order: full parts, then the one that grows."""
    current = session / JOURNAL_NAME
    parts = sorted(session.glob("journal-*.jsonl"))
    return [*parts, current] if current.exists() else parts


def find_newest_record(session: Path) -> Path | None:
    """The file of a session's record that was written last; None if it changed nothing.

    Where nothing else is left, that is the list of pruned calls, or of those that there were.
    """
    lists = (session / name for name in (PRUNED_NAME, ENDED_NAME))
    left = (path for path in lists if path.exists())
    return next(iter(list_journal_files(session)[-1:]), next(left, None))
