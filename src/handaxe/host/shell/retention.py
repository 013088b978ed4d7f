"""How long the output of commands stays on disk, and how much of it."""

import time
from contextlib import suppress
from pathlib import Path

SPARED_S = 300.0
"""What was written to so recently may belong to a command that runs."""


def prune_outputs(sessions: Path, tasks: str, *, max_bytes: int, max_age_s: float) -> int:
    """Delete old output below every session until the rest fits; how many files went."""
    now = time.time()
    found: list[tuple[float, int, Path]] = []
    with suppress(OSError):
        for directory in sessions.iterdir():
            found += outputs_in(directory / tasks)
    total = sum(size for _, size, _ in found)
    gone = 0
    for written_at, size, path in sorted(found):
        age_s = now - written_at
        if age_s < SPARED_S or (age_s < max_age_s and total <= max_bytes):
            continue
        with suppress(OSError):
            path.unlink()
            gone += 1
            total -= size
    return gone


def outputs_in(directory: Path) -> list[tuple[float, int, Path]]:
    """The files of output in a directory: when each was last written to, how long it is, where."""
    found: list[tuple[float, int, Path]] = []
    with suppress(OSError):
        for path in directory.iterdir():
            if path.suffix == ".output":
                status = path.lstat()
                found.append((status.st_mtime, status.st_size, path))
    return found
