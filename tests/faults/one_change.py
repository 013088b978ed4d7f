"""One change to a prepared directory, between two marks in the system-call trace.

Run as a script it does one change and prints what became of it as JSON. Imported, it prepares the
directory and says what must be true afterwards.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

OLD = b"old line\n" * 1200
NEW = b"a new line\n" * 1100
LARGE = OLD * 10 + b"the end\n"
"""Too large for the undo record, which keeps it by a second name."""
MODE = 0o640
NOTE = "user.note"


def prepare(change: str, place: Path) -> None:
    """Everything the change needs, in `place/project` and `place/journal`."""
    project = place / "project"
    project.mkdir(parents=True)
    file = project / "file"
    if change not in {"create", "recorded create"}:
        file.write_bytes(LARGE if change == "recorded large" else OLD)
        file.chmod(MODE)
        os.setxattr(file, NOTE, b"kept")
    if change in {"overwrite", "recover"}:
        os.link(file, place / "twin")
    if change == "recover":
        _interrupt_an_overwrite(file, place / "journal")
    if change == "append":
        log = project / "log"
        log.write_bytes(b'{"seq":1,"crc":"f4dbdf21","event":0}\n{"seq":2,"crc":"83')


def outcomes(change: str) -> list[bytes | None]:
    """What the file may be after a crash: the old content, or the new."""
    if change.endswith("create"):
        return [None, NEW]
    if change == "delete":
        return [OLD, None]
    return [OLD] if change in {"recover", "append"} else [OLD, NEW]


def target(change: str, place: Path) -> Path:
    """The file that changes."""
    return place / "project" / ("x/y/file" if change.endswith("create") else "file")


def _interrupt_an_overwrite(file: Path, journal: Path) -> None:
    journal.mkdir()
    header = {
        "path": _base64(os.fsencode(file)),
        "old_digest": hashlib.sha256(OLD).hexdigest(),
        "new_digest": hashlib.sha256(NEW).hexdigest(),
        "ino": file.stat().st_ino,
    }
    entry = json.dumps(header).encode() + b"\n" + OLD
    (journal / "0123456789abcdef.pre-image").write_bytes(entry)
    with file.open("r+b") as half:
        half.write(NEW[:4000])


def _base64(raw: bytes) -> str:
    import base64

    return base64.b64encode(raw).decode()


def _recorded(change: str, place: Path) -> Callable[[], object]:
    """A change by a tool, in a session that keeps it undoable."""
    import asyncio

    from handaxe import Session
    from handaxe.disk import threads

    # All in one thread, so that there is one order of system calls to look at.
    threads._threads.begin = lambda job: job.run()
    project = place / "project"
    session = Session(project, home=place / "home", permission_mode="acceptEdits")
    loop = asyncio.new_event_loop()

    def call(tool: str, **given: object) -> None:
        result = loop.run_until_complete(session.call(tool, given))
        assert result.ok, result.text

    # Everything lazy happens now, and the record has its file.
    for name in ("first", "second"):
        call("Write", file_path=name, content=name)
    if change == "recorded create":
        return lambda: call("Write", file_path="x/y/file", content=NEW.decode())
    if change == "recorded large":
        call("Read", file_path="file", offset=-1)
        call("Edit", file_path="file", old_string="the end", new_string="an end")
        return lambda: call("Edit", file_path="file", old_string="an end", new_string="the end")
    call("Read", file_path="file")
    if change == "recorded replace":
        return lambda: call("Write", file_path="file", content=NEW.decode())
    patch = "*** Begin Patch\n*** Delete File: file\n*** End Patch"
    call("Read", file_path="first")
    return lambda: call("ApplyPatch", input=patch)


def _work(change: str, place: Path) -> Callable[[], object]:
    if change.startswith("recorded"):
        return _recorded(change, place)
    from handaxe.disk import temp_files as renames
    from handaxe.disk.append_log import LineLog
    from handaxe.disk.atomic import ABSENT, delete, read_regular, replace
    from handaxe.undo.in_place import InPlaceJournal, recover

    path = target(change, place)
    # Everything lazy happens now, so that the trace between the marks is the change alone.
    renames._load_exclusive_rename()
    expect = None if change == "create" else read_regular(path)[1]
    journal = InPlaceJournal(place / "journal")
    log = LineLog(place / "project" / "log")
    new = NEW * 100 if change == "big" else NEW
    return {
        "replace": lambda: replace(path, [new], expect=expect),
        "big": lambda: replace(path, [new], expect=expect),
        "create": lambda: replace(path, [new], expect=ABSENT, make_parents=True),
        "overwrite": lambda: replace(path, [new], expect=expect, journal=journal),
        "delete": lambda: delete(path, expect=expect),
        "recover": lambda: recover(place / "journal"),
        "append": lambda: (log.append(b'"new"'), log.sync()),
    }[change]


def main() -> None:
    change, place = sys.argv[1], Path(sys.argv[2])
    work = _work(change, place)
    from handaxe.disk.errors import DiskFault

    answer: dict[str, object] = {"fault": None}
    os.sched_yield()
    try:
        work()
    except DiskFault as fault:
        answer = {
            "fault": type(fault).__name__,
            "reason": str(fault),
            "errno": getattr(fault, "errno", None),
            "applied": getattr(fault, "applied", False),
            "damaged": getattr(fault, "damaged", False),
        }
    os.sched_yield()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
