"""Known mistakes in the order of syncs, planted into a running program to see them found.

Only the two calls by which the program syncs are changed, and only in the process that asks.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO

_Sync = Callable[[int], None]


class _Syncs:
    """Lets syncs through, leaves them out, or has them wait for a later one."""

    def __init__(self, place: Path) -> None:
        self.project = f"{place / 'project'}"
        self.home = f"{place / 'home'}"
        self._really: dict[str, _Sync] = {"fsync": os.fsync, "fdatasync": os.fdatasync}
        self._waiting: list[int] = []

    def install(self, decide: "Callable[[_Syncs, int, str], str]") -> None:
        """`decide` says `do`, `skip`, `wait`, or `then` (it and afterwards all that wait)."""
        for name, really in self._really.items():
            setattr(os, name, self._replacement(really, decide))

    def _replacement(
        self, really: _Sync, decide: "Callable[[_Syncs, int, str], str]"
    ) -> Callable[[int | IO[bytes]], None]:
        def sync(file: int | IO[bytes]) -> None:
            fd = file if isinstance(file, int) else file.fileno()
            what = decide(self, fd, os.readlink(f"/proc/self/fd/{fd}"))
            if what == "wait":
                self._waiting.append(os.dup(fd))
            if what in {"do", "then"}:
                really(fd)
            if what == "then":
                for waiting in self._waiting:
                    really(waiting)
                    os.close(waiting)
                self._waiting.clear()

        return sync


def _is_directory(fd: int) -> bool:
    return stat.S_ISDIR(os.fstat(fd).st_mode)


def _skip_names(syncs: _Syncs, fd: int, path: str) -> str:
    return "skip" if _is_directory(fd) and path.startswith(syncs.project) else "do"


def _name_first(syncs: _Syncs, fd: int, path: str) -> str:
    if not path.startswith(syncs.project):
        return "do"
    return "then" if _is_directory(fd) else "wait"


def _record_late(syncs: _Syncs, fd: int, path: str) -> str:
    if path.endswith("journal.jsonl"):
        return "wait"
    return "then" if path.startswith(syncs.project) and _is_directory(fd) else "do"


def _skip_kept(syncs: _Syncs, fd: int, path: str) -> str:
    del fd
    kept = (f"{syncs.home}/pins", f"{syncs.home}/blobs")
    return "skip" if path.startswith(kept) else "do"


def _skip_packs(syncs: _Syncs, fd: int, path: str) -> str:
    is_log = path.startswith(f"{syncs.home}/sessions") and path.endswith(".jsonl")
    return "do" if is_log or _is_directory(fd) or path.startswith(syncs.project) else "skip"


PLANTS: dict[str, Callable[[_Syncs, int, str], str]] = {
    "no sync of the directory after a rename": _skip_names,
    "rename before the data is synced": _name_first,
    "record synced after the change": _record_late,
    "no sync of kept contents": _skip_kept,
    "no sync of the kept tree": _skip_packs,
}


def plant(bug: str, place: Path) -> None:
    """Plant one of them into this process."""
    _Syncs(place).install(PLANTS[bug])
