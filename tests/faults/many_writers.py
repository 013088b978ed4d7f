"""Many processes edit their own lines of one file; nothing may be lost.

uv run python tests/faults/many_writers.py             16 processes, 1,000 edits each
uv run python tests/faults/many_writers.py 4 50        other numbers
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import os
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

from handaxe.disk.atomic import ABSENT, LockTimeout, VersionChanged, read_regular, replace


def edit_often(path: str, who: int, edits: int) -> tuple[int, int]:
    """Count up one's own line; gives how often the file had changed, and was locked."""
    changed = locked = 0
    done = 0
    while done < edits:
        data, version = read_regular(path)
        lines = data.split(b"\n")
        assert lines[who] == b"%d %d" % (who, done), lines[who]
        lines[who] = b"%d %d" % (who, done + 1)
        try:
            replace(path, [b"\n".join(lines)], expect=version)
        except VersionChanged:
            changed += 1
        except LockTimeout:
            locked += 1
        else:
            done += 1
    return changed, locked


def run(directory: Path, processes: int, edits: int) -> dict[str, float]:
    """Let them all edit; raises if an edit was lost or something was left over."""
    path = directory / "file"
    replace(path, [b"".join(b"%d 0\n" % who for who in range(processes))], expect=ABSENT)
    began = time.monotonic()
    with get_context("spawn").Pool(processes) as pool:
        beaten = pool.starmap(edit_often, [(str(path), who, edits) for who in range(processes)])
    expected = b"".join(b"%d %d\n" % (who, edits) for who in range(processes))
    assert path.read_bytes() == expected
    assert os.listdir(directory) == ["file"]
    return {
        "edits": processes * edits,
        "retries": sum(changed for changed, _ in beaten),
        "locked": sum(locked for _, locked in beaten),
        "seconds": round(time.monotonic() - began, 1),
    }


def main(arguments: list[str]) -> None:
    processes, edits = map(int, arguments or ("16", "1000"))
    with tempfile.TemporaryDirectory() as directory:
        print(run(Path(os.path.realpath(directory)), processes, edits))


if __name__ == "__main__":
    main(sys.argv[1:])
