"""The process that saves a tree before the first command; started by `prewarm`.

It reads its request from standard input and exits at once when that is closed.
"""

import os
import sys
import threading
from pathlib import Path

import msgspec

from handaxe.undo.snapshot.inotify import InotifyWatcher
from handaxe.undo.snapshot.prewarm import PreparationRequest, PreparationResult
from handaxe.undo.snapshot.snapshot import SnapshotLimits, TreeSnapshot

_NICENESS = 5
"""Lower priority than foreground work; but on a busy machine a command may wait for it."""


def main() -> None:
    """Do the work and write the result to standard output."""
    size = int.from_bytes(_read_exactly(4), "big")
    order = msgspec.msgpack.decode(_read_exactly(size), type=PreparationRequest)
    threading.Thread(target=_end_with_input, daemon=True).start()
    os.nice(_NICENESS)
    said = msgspec.msgpack.encode(_prepare_tree(order))
    while said:
        said = said[os.write(1, said) :]
    # No cleanup is needed, so exit without delay.
    os._exit(0)


def _prepare_tree(order: PreparationRequest) -> PreparationResult:
    roots = [os.fsdecode(root) for root in order.roots]
    snapshot = TreeSnapshot(
        Path(os.fsdecode(order.home)),
        "",
        os.fsdecode(order.root),
        SnapshotLimits(order.max_files, order.max_bytes),
        token=order.token,
        watches=InotifyWatcher(order.watches_fd) if order.watches_fd >= 0 else None,
    )
    snapshot.begin(roots)
    # What keeping it has stirred up itself, such as new names for objects of git, is settled here.
    return snapshot.hand_over(snapshot.begin(roots))


def _read_exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit(1)
        data += piece
    return data


def _end_with_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)
