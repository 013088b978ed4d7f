"""A proof of durability from the system-call trace, which no crash test on one machine can give.

    uv run python tests/faults/call_order.py

Data is synced before it gets its name, the name is synced before success is reported, an
overwrite begins only after its journal entry is durable, and a tool changes a file only after the
record that undoes it is.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import re
import sys

import tracing


def problems(calls: list[tracing.Call]) -> list[str]:
    """What is wrong with the order of calls of one replacement by rename."""
    created = _find(calls, "openat", r"^(\d+), \"(\.handaxe-\w+\.tmp)\", [A-Z_|]*O_EXCL")
    if created is None:
        return ["no temporary file was made beside the target with O_EXCL"]
    at, found = created
    directory, temporary, fd = found[1], found[2], calls[at].result
    writes = [i for i, call in enumerate(calls) if _writes(call, fd)]
    synced = [i for i, call in enumerate(calls) if call.name == "fsync" and call.arguments == fd]
    renamed = _find(
        calls, r"renameat2?", rf"^{directory}, \"{re.escape(temporary)}\", {directory}, "
    )
    if not writes or not synced or renamed is None:
        return [f"writes {writes}, syncs {synced}, rename {renamed} are not all there"]
    wrong: list[str] = []
    if not writes[-1] < synced[-1] < renamed[0]:
        wrong.append("the content is not synced between the last write and the rename")
    after = [c for c in calls[renamed[0] :] if c.name == "fsync" and c.arguments == directory]
    if not after:
        wrong.append("the directory is not synced after the rename")
    return wrong + _unsynced_directories(calls)


def overwrite_problems(calls: list[tracing.Call]) -> list[str]:
    """What is wrong with the order of calls of an overwrite under a journal."""
    opened = _find(calls, "openat", r"^\d+, \"file\", O_RDWR")
    if opened is None:
        return ["the file was not opened for writing"]
    fd = calls[opened[0]].result
    changes = [i for i, call in enumerate(calls) if _writes(call, fd)]
    removed = _find(calls, "unlinkat", r"\.pre-image")
    if removed is None:
        return ["the journal entry was not removed"]
    wrong = problems(calls[opened[0] + 1 : changes[0]])
    synced = [i for i, call in enumerate(calls) if call.name == "fsync" and call.arguments == fd]
    if not changes[-1] < synced[-1] < removed[0]:
        wrong.append("the content is not synced before its journal entry goes")
    return wrong


def record_problems(calls: list[tracing.Call]) -> list[str]:
    """What is wrong with the order of calls of a tool whose change is undoable."""
    synced = _find(calls, "fdatasync", r"^\d+$")
    if synced is None or calls[synced[0]].result != "0":
        return ["the record is not synced"]
    sync_fd = calls[synced[0]].arguments
    copies = [
        call.arguments.partition(",")[0]
        for call in calls[: synced[0]]
        if "F_DUPFD_CLOEXEC" in call.arguments and call.result == sync_fd
    ]
    log = copies[-1] if copies else sync_fd
    wrong: list[str] = []
    if not any(_writes(call, log) for call in calls[: synced[0]]):
        wrong.append("the record is not written before it is synced")
    changed = [at for at, call in enumerate(calls) if _changes_a_name(call)]
    if not changed or changed[0] < synced[0]:
        wrong.append("something changes before the record is durable")
    return wrong


def pin_problems(calls: list[tracing.Call]) -> list[str]:
    """What is wrong with the order of calls where a second name keeps the old content."""
    linked = _find(calls, "link(at)?", r"\"(\S+)/[^/\"]+\"(, 0)?$")
    if linked is None:
        return ["the old content was not given a second name"]
    at, found = linked
    renamed = _find(calls, r"renameat2?", r"\.handaxe-\w+\.tmp")
    before = calls[at : renamed[0] if renamed else at]
    opened = {call.result for call in before if f'"{found[1]}"' in call.arguments}
    synced = [call for call in before if call.name == "fsync" and call.arguments in opened]
    return [] if synced else ["the second name is not synced before the file is replaced"]


def _changes_a_name(call: tracing.Call) -> bool:
    return call.name in {
        "mkdir",
        "mkdirat",
        "rename",
        "renameat",
        "renameat2",
        "unlink",
        "unlinkat",
    }


def _writes(call: tracing.Call, fd: str) -> bool:
    names = {"write", "writev", "pwrite64", "pwritev", "ftruncate", "fallocate"}
    return call.name in names and re.match(rf"{fd}\b", call.arguments) is not None


def _unsynced_directories(calls: list[tracing.Call]) -> list[str]:
    wrong: list[str] = []
    for at, call in enumerate(calls):
        if call.name == "mkdirat" and call.result == "0":
            parent = call.arguments.split(",")[0]
            if not any(c.name == "fsync" and c.arguments == parent for c in calls[at:]):
                wrong.append(f"a new directory is not synced into its parent: {call.arguments}")
    return wrong


def _find(calls: list[tracing.Call], name: str, arguments: str) -> tuple[int, re.Match[str]] | None:
    for at, call in enumerate(calls):
        found = re.search(arguments, call.arguments)
        if found and re.fullmatch(name, call.name):
            return at, found
    return None


def main() -> int:
    checks = {
        "replace": problems,
        "create": problems,
        "overwrite": overwrite_problems,
        "recorded replace": lambda calls: problems(calls) + record_problems(calls),
        "recorded create": lambda calls: problems(calls) + record_problems(calls),
        "recorded delete": record_problems,
        "recorded large": lambda calls: pin_problems(calls) + record_problems(calls),
    }
    wrong = {change: check(tracing.calls_of(change)) for change, check in checks.items()}
    print(wrong)
    return any(wrong.values())


if __name__ == "__main__":
    sys.exit(main())
