"""The short form of the commands in this directory."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import call_order
import failing_calls
import kill_points
import many_writers
import one_change
import pytest
import swapped_links
import tracing

REASON = tracing.why_not()
needs_strace = pytest.mark.skipif(REASON is not None, reason=REASON or "")


@needs_strace
@pytest.mark.parametrize("change", ["replace", "create", "overwrite", "delete", "append"])
def test_killed_before_any_call_that_changes_something_a_file_is_old_or_new(change: str):
    wrong = {
        f"{call.name} {call.nth}": problems
        for call in kill_points.points(change, every=False)
        if (problems := kill_points.kill_before(change, call))
    }
    assert wrong == {}


@needs_strace
@pytest.mark.parametrize("change", ["replace", "create"])
def test_content_is_synced_before_its_name_and_the_name_before_success(change: str):
    assert call_order.problems(tracing.calls_of(change)) == []


@needs_strace
def test_an_overwrite_begins_after_its_journal_is_durable():
    assert call_order.overwrite_problems(tracing.calls_of("overwrite")) == []


@needs_strace
@pytest.mark.parametrize("change", ["recorded replace", "recorded create", "recorded delete"])
def test_a_tool_changes_a_file_after_the_record_that_undoes_it_is_durable(change: str):
    calls = tracing.calls_of(change)
    assert call_order.record_problems(calls) == []
    if change != "recorded delete":
        assert call_order.problems(calls) == []


@needs_strace
def test_a_large_file_is_replaced_after_the_second_name_that_keeps_it_is_durable():
    calls = tracing.calls_of("recorded large")
    assert call_order.pin_problems(calls) == []
    assert call_order.record_problems(calls) == []
    assert call_order.problems(calls) == []
    unsynced = [call for call in calls if call.name != "fsync"]
    assert call_order.pin_problems(unsynced) != []


def test_a_call_is_whole_where_another_thread_came_between_its_halves():
    trace = [
        "7  sched_yield() = 0",
        '7  openat(3, "a", O_EXCL <unfinished ...>',
        "8  futex(0x1) = 0",
        "7  <... openat resumed>, 0600) = 12",
        "7  fsync(12 <unfinished ...>",
        "7  <... fsync resumed>) = 0",
        "7  sched_yield() = 0",
    ]
    assert list(tracing.between_marks(trace)) == [
        tracing.Call("openat", '3, "a", O_EXCL, 0600', "12", 1),
        tracing.Call("fsync", "12", "0", 1),
    ]


def test_the_order_check_notices_a_late_record():
    good = [
        tracing.Call("write", '8, "record", 6', "6", 1),
        tracing.Call("fcntl", "8, F_DUPFD_CLOEXEC, 0", "9", 1),
        tracing.Call("fdatasync", "9", "0", 1),
        tracing.Call("renameat2", '3, ".handaxe-0f.tmp", 3, "file", RENAME_NOREPLACE', "0", 1),
    ]
    assert call_order.record_problems(good) == []
    for missing in range(len(good)):
        assert call_order.record_problems(good[:missing] + good[missing + 1 :])
    assert call_order.record_problems([*good[:2], good[3], good[2]])
    assert call_order.record_problems([*good[1:3], good[0], good[3]])


def test_the_order_check_notices_every_missing_sync():
    good = [
        tracing.Call("openat", '3, ".handaxe-0f.tmp", O_RDWR|O_CREAT|O_EXCL, 0600', "5", 1),
        tracing.Call("write", '5, "new", 3', "3", 1),
        tracing.Call("fsync", "5", "0", 1),
        tracing.Call("renameat", '3, ".handaxe-0f.tmp", 3, "file"', "0", 1),
        tracing.Call("fsync", "3", "0", 2),
    ]
    assert call_order.problems(good) == []
    for missing in range(len(good)):
        assert call_order.problems(good[:missing] + good[missing + 1 :])
    for early in (1, 3):
        swapped = [*good]
        swapped[early : early + 2] = reversed(swapped[early : early + 2])
        assert call_order.problems(swapped)


@needs_strace
@pytest.mark.parametrize(
    ("name", "which", "error", "fault", "applied"),
    [
        ("openat", "O_CREAT", "EMFILE", "this process has too many open files", False),
        ("write", "", "ENOSPC", "no space is left on the device", False),
        ("write", "", "EDQUOT", "the disk quota is used up", False),
        ("write", "", "EIO", "the device reported an input/output error", False),
        ("fsync", "5", "EIO", "sync the new content to disk", False),
        ("renameat", "", "EXDEV", "can only be written in place", False),
        ("renameat", "", "EBUSY", "can only be written in place", False),
        ("renameat", "", "EIO", "could not give the new content its name", False),
        ("fsync", "3", "EIO", "sync the directory after replacing the file", True),
    ],
)
def test_a_failing_call_is_reported_as_what_it_is(
    name: str, which: str, error: str, fault: str, applied: bool
):
    call = next(
        call
        for call in tracing.calls_of("replace")
        if call.name == name and which in call.arguments
    )

    with tracing.prepared("replace") as place:
        _, answer = tracing.spoil("replace", place, call, f"error={error}")
        content = one_change.target("replace", place).read_bytes()
    assert answer is not None
    assert fault in answer["reason"]
    assert answer.get("applied", False) == applied
    assert content == (one_change.NEW if applied else one_change.OLD)


@needs_strace
def test_a_write_that_only_pretends_is_noticed_while_the_old_file_is_still_there():
    call = next(call for call in tracing.calls_of("replace") if call.name == "write")

    problems, answer = failing_calls.fake("replace", call, 5000)

    assert problems == []
    assert "reads back differently" in str(answer["reason"])
    assert answer["applied"] is False


@pytest.fixture(scope="module")
def short_writes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    library = tmp_path_factory.mktemp("shim") / "short_writes.so"
    source = Path(__file__).with_name("short_writes.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("change", ["replace", "create", "overwrite", "append"])
def test_short_and_interrupted_writes_lose_nothing(change: str, short_writes: Path):
    with tracing.prepared(change) as place:
        _, answer = tracing.run(change, place, preload=short_writes)

        assert answer == {"fault": None}
        if change != "append":
            assert one_change.target(change, place).read_bytes() == one_change.NEW
        assert list(kill_points.problems_after(change, place)) == []


def test_many_writers_lose_no_edit(tmp_path: Path):
    outcome = many_writers.run(Path(os.path.realpath(tmp_path)), processes=4, edits=50)

    assert (outcome["edits"], outcome["locked"]) == (200, 0)


@pytest.mark.parametrize("swap_directory", [True, False])
def test_a_swapped_link_never_leads_outside(tmp_path: Path, swap_directory: bool):
    seen = swapped_links.race(
        Path(os.path.realpath(tmp_path)), seconds=0.7, swap_directory=swap_directory
    )

    assert seen["read UnexpectedSymlink"] + seen["replaced UnexpectedSymlink"] > 0


@needs_strace
def test_the_way_to_the_record_that_undoes_a_change_is_durable_before_the_change(tmp_path: Path):
    project, home, trace = tmp_path / "project", tmp_path / "own/data", tmp_path / "trace"
    project.mkdir()
    strace = ["strace", "-f", "-y", "-o", trace, "-e", "trace=fsync,fdatasync,renameat2,renameat"]
    call = [sys.executable, "-m", "handaxe", "call", "Write", "file_path=n", "content=new"]
    subprocess.run(
        [*strace, *call, "--root", project, "--permission-mode", "acceptEdits"],
        env={**os.environ, "HANDAXE_HOME": str(home)},
        check=True,
        capture_output=True,
    )
    lines = trace.read_text().splitlines()
    changed = next(at for at, line in enumerate(lines) if "rename" in line)
    synced = {
        found[1] for line in lines[:changed] if (found := re.search(r"sync\(\d+<(.*?)>", line))
    }
    [session] = (home / "sessions").iterdir()
    assert {str(place) for place in (tmp_path, home.parent, home, home / "sessions")} <= synced
    assert {str(session), str(session / "journal.jsonl")} <= synced


@needs_strace
@pytest.mark.parametrize("size_lines", [10, 300_000])
def test_a_file_that_the_device_cannot_give_is_told_as_that(tmp_path: Path, size_lines: int):
    file = tmp_path / "a.txt"
    file.write_text("line\n" * size_lines)
    failing = [f"inject={name}:error=EIO" for name in ("read", "pread64")]
    strace = ["strace", "-f", "-o", "/dev/null", "-P", file, "-e", failing[0], "-e", failing[1]]
    call = [sys.executable, "-m", "handaxe", "call", "Read", f"file_path={file}", "--json"]
    told = subprocess.run(
        [*strace, *call, "--root", tmp_path], capture_output=True, text=True, check=False
    )
    result = json.loads(told.stdout)
    assert (told.returncode, result["code"]) == (1, "file.bad_path")
    assert "cannot be read: input/output error" in result["text"]
