"""SIGKILL before every system call of a change: afterwards every file is old or new, and whole.

uv run python tests/faults/kill_points.py            every call of every change
uv run python tests/faults/kill_points.py replace    of one
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import one_change
import tracing

from handaxe.disk.append_log import LineLog, scan
from handaxe.disk.atomic import remove_leftovers, replace
from handaxe.undo.in_place import InPlaceJournal, recover

CHANGES = ("replace", "create", "overwrite", "delete", "recover", "append", "big")

# Calls that leave the disk as it is: being killed before one is being killed before the next.
LOOKING = {
    "brk", "clock_gettime", "close", "dup", "fcntl", "fgetxattr", "flistxattr", "flock",
    "fstat", "futex",
    "getdents64", "getpid", "getrandom", "gettid", "ioctl", "lseek", "mmap", "mprotect", "munmap",
    "newfstatat", "pread64", "preadv", "read", "readlink", "rt_sigprocmask", "statx", "madvise",
}  # fmt: skip


def kill_before(change: str, call: tracing.Call) -> list[str]:
    """What is wrong after the change was killed at a call."""
    with tracing.prepared(change) as place:
        status, _ = tracing.spoil(change, place, call, "signal=KILL")
        if status != -signal.SIGKILL:
            return [f"it was not killed but ended with {status}"]
        return list(problems_after(change, place))


def problems_after(change: str, place: Path) -> Iterable[str]:
    """What a later program finds wrong, after it has tidied up."""
    recover(place / "journal")
    path = one_change.target(change, place)
    parent = path.parent
    if parent.is_dir():
        remove_leftovers(parent)
    content = path.read_bytes() if path.exists() else None
    allowed = [one_change.NEW * 100 if change == "big" and c == one_change.NEW else c
               for c in one_change.outcomes(change)]  # fmt: skip
    if content not in allowed:
        yield f"the content is neither old nor new: {content and len(content)} bytes"
    if content is not None and change != "create":
        if path.stat().st_mode & 0o7777 != one_change.MODE:
            yield f"the mode is {path.stat().st_mode:o}"
        if os.getxattr(path, one_change.NOTE) != b"kept":
            yield "the extended attribute is gone"
    if change in {"overwrite", "recover"} and (place / "twin").read_bytes() != content:
        yield "the hard link is broken"
    residue = _names(place / "project") - {"file", "x", "log"}
    residue -= {name for name in residue if name.startswith("log.torn-")}
    residue |= {name for name in _names(place / "journal") if not name.endswith(".found")}
    residue.discard("lock")
    if residue:
        yield f"left over: {residue}"
    yield from _problems_going_on(change, place)


def _problems_going_on(change: str, place: Path) -> Iterable[str]:
    path = one_change.target(change, place)
    journal = InPlaceJournal(place / "journal")
    replace(path, [b"next"], expect=None, make_parents=True, journal=journal)
    if path.read_bytes() != b"next":
        yield "the next write did not work"
    if change == "append":
        log = LineLog(place / "project" / "log")
        log.append(b'"after"')
        log.close()
        whole = scan(place / "project" / "log")
        payloads = [record.payload for record in whole]
        if not whole.is_whole or payloads not in ([b"0", b'"after"'], [b"0", b'"new"', b'"after"']):
            yield f"the log is {payloads}, {whole.damages}"


def _names(directory: Path) -> set[str]:
    return set(os.listdir(directory)) if directory.is_dir() else set()


def points(change: str, *, every: bool) -> list[tracing.Call]:
    """Where to kill: at every call, or only before those that change something."""
    # Threads wait for each other differently every time; there is nothing to aim at.
    calls = [call for call in tracing.calls_of(change) if call.name != "futex"]
    return [call for call in calls if every or _changes_something(call)]


def _changes_something(call: tracing.Call) -> bool:
    return call.name not in LOOKING and (call.name != "openat" or "O_CREAT" in call.arguments)


def main(changes: list[str]) -> int:
    bad = count = 0
    for change in changes or CHANGES:
        calls = points(change, every=True)
        count += len(calls)
        for number, call in enumerate(calls, 1):
            for problem in kill_before(change, call):
                bad += 1
                print(f"{change} call {number} {call.name}({call.arguments[:60]}): {problem}")
        print(f"{change}: killed at each of {len(calls)} system calls")
    print(f"{count} kills, {bad} problems")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
