"""Where the undo record lies in the data directory."""

import os
from pathlib import Path

from handaxe.disk.durability import close, sync_directory

JOURNAL_NAME = "journal.jsonl"
LOCK_NAME = "journal.lock"
PRUNED_NAME = "journal.pruned"


def blobs_directory(home: Path) -> Path:
    """Contents by their hash, shared by all sessions."""
    return home / "blobs"


def pins_directory(home: Path) -> Path:
    """Second names of files that were replaced, shared by all sessions."""
    return home / "pins"


def in_place_directory(home: Path) -> Path:
    """The journal of writes that cannot be atomic by themselves."""
    return home / "in-place"


def journal_files(session: Path) -> list[Path]:
    """The journal of a session in order: full parts, then the one that grows."""
    current = session / JOURNAL_NAME
    parts = sorted(session.glob("journal-*.jsonl"))
    return [*parts, current] if current.exists() else parts


def make_durably(directory: Path) -> None:
    """Create a directory of ours, with those above it, so that it survives a power failure."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)
        sync_names(place.parent)


def sync_names(directory: Path) -> None:
    """Make the names in a directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_directory(fd)
    finally:
        close(fd)
