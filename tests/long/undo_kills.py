"""Undos that are killed: `scripts/check --long undo_kills [every] [files]`.

First, small changes of every kind: their undo is killed at every n-th change of the disk, the next
one at another, and the third has to finish. Then `rm -rf` of so many files, with two kills. Prints
how many undos ended with something else than the tree before; 0 is expected.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.undo.killed_undo import (
    UNDO,
    Place,
    change_kinds,
    find_temporary,
    make_place,
    remove,
    separate_home,
)
from tests.undo.undoable import RENAMES

Change = Callable[[Place], dict[bytes, tuple]]


def kill_everywhere(name: str, change: Change, every: int) -> int:
    """Kill the undo of a change at every n-th place; how many were not continued well."""
    chance, failed, kill_at = random.Random(18), 0, 0
    with make_place() as place:
        before = change(place)
        place.keep()
        while not place.run(UNDO, kill_at):
            second, from_start = chance.randrange(kill_at + 1), chance.random() < 0.5
            place.run(UNDO, second, from_start=from_start)
            told = place.finish_if_left(UNDO)
            if place.find() != before or find_temporary(place.root):
                failed += 1
                print(f"{name}: killed at {kill_at}, then at {second}: {told}")
            place.start_again()
            kill_at += every
    print(f"{name}: {kill_at // every} undos killed twice, {failed} not finished by the third")
    return failed


def kill_large(files: int) -> int:
    """Kill the undo of a large `rm -rf` twice while files get their names."""
    with make_place() as place:
        before = remove(place, files=files)
        killed = [not place.run(UNDO, files // part, RENAMES) for part in (3, 2)]
        begun = time.monotonic()
        place.finish(UNDO)
        took = time.monotonic() - begun
        is_back = killed == [True, True] and place.find() == before
        print(f"rm -rf of {files:,} files: {'back' if is_back else 'NOT BACK'} after two kills")
        print(f"the third undo took {took:.1f} s")
        return int(not is_back)


def main(every: int = 1, files: int = 10_000) -> int:
    """All of it; the exit code."""
    with separate_home():
        failed = kill_everywhere("other kinds", change_kinds, every)
        failed += kill_everywhere("rm -rf", lambda place: remove(place, files=60), every)
        failed += kill_large(files)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
