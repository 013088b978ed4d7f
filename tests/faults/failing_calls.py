"""Every system call of a change fails once, with every error it might give.

    uv run python tests/faults/failing_calls.py            every call, change and error
    uv run python tests/faults/failing_calls.py replace    of one change

A change that reports failure has left everything as it was, unless it says that the new content
is in place; a change that reports success is whole. Nothing but typed faults comes out.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import one_change
import tracing

from handaxe.disk.atomic import remove_leftovers
from handaxe.undo.in_place import recover

ERRORS = ("EIO", "ENOSPC", "EACCES", "EPERM", "EMFILE", "EDQUOT", "EROFS", "EBUSY", "EXDEV")
CHANGES = ("replace", "create", "overwrite", "delete")
# The interpreter's own: failing these says nothing about a file.
NOT_OURS = {"brk", "mmap", "munmap", "mprotect", "futex", "getrandom", "clock_gettime", "madvise"}


def fail(change: str, call: tracing.Call, error: str) -> list[str]:
    """What is wrong after one call of a change failed."""
    with tracing.prepared(change) as place:
        before = _picture(place)
        status, answer = tracing.spoil(change, place, call, f"error={error}")
        if status or answer is None or answer["fault"] == "Traceback":
            return [f"ended with {status}: {answer}"]
        return list(_problems(change, place, before, answer, call))


def _problems(
    change: str,
    place: Path,
    before: dict[str, object],
    answer: dict[str, object],
    call: tracing.Call,
) -> Iterable[str]:
    path = one_change.target(change, place)
    new = None if change == "delete" else one_change.NEW
    if call.name == "unlinkat" and change != "delete":
        # Its own failure is what keeps a temporary file or journal entry from being removed.
        remove_leftovers(path.parent)
        recover(place / "journal")
    content = path.read_bytes() if path.exists() else None
    if answer["fault"] is None or answer.get("applied"):
        if content != new:
            yield f"said {answer} but the content is not the new one"
    elif _picture(place) != before:
        yield f"said {answer} but left {sorted(_picture(place).items() ^ before.items())}"


def _picture(place: Path) -> dict[str, object]:
    """All that a user can see of the project: names, bytes, modes, owners, attributes, links."""
    seen: dict[str, object] = {}
    for path in sorted((place / "project").rglob("*")):
        info = path.lstat()
        facts = (info.st_mode, info.st_uid, info.st_gid, info.st_nlink)
        if path.is_file():
            notes = tuple((name, os.getxattr(path, name)) for name in os.listxattr(path))
            seen[str(path)] = (facts, path.read_bytes(), notes)
        else:
            seen[str(path)] = facts[0]
    return seen


def fake(change: str, call: tracing.Call, result: int) -> tuple[list[str], dict[str, object]]:
    """What is wrong after a call only pretended to work; and what the change said."""
    with tracing.prepared(change) as place:
        before = _picture(place)
        status, answer = tracing.spoil(change, place, call, f"retval={result}")
        if status or answer is None:
            return [f"ended with {status}: {answer}"], {}
        if answer["fault"] is None:
            return ["a lost write was not noticed"], answer
        return ([] if _picture(place) == before else ["the file is not as before"]), answer


def main(changes: list[str]) -> int:
    bad = count = 0
    for change in changes or CHANGES:
        calls = [call for call in tracing.calls_of(change) if call.name not in NOT_OURS]
        for call in calls:
            count += len(ERRORS)
            found = {error: wrong for error in ERRORS if (wrong := fail(change, call, error))}
            bad += len(found)
            if found:
                error, problem = next(iter(found.items()))
                print(f"{change} {call.name}({call.arguments[:50]}) {', '.join(found)}")
                print(f"    {error}: {str(problem)[-600:]}")
        print(f"{change}: {len(calls)} calls, {len(ERRORS)} errors each", flush=True)
    assert set(ERRORS) <= set(errno.errorcode.values())
    print(f"{count} failures, {bad} problems")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
