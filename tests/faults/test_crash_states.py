"""The short form of the crash simulation, and its own proof: planted bugs are found."""

import crash_replay
import pytest
from crash_replay import Job
from crash_states import CrashStates
from disk_model import ROOT, Ack, Data, Inode, Names, Recording, Step, Sync
from recorded_calls import parse

REASON = crash_replay.why_not()
needs_strace_and_compiler = pytest.mark.skipif(REASON is not None, reason=REASON or "")

OPERATIONS = ("patch", "append", "packs", "prune", "undo")
_STATES = 7
PLANTS = {
    "no sync of the directory after a rename": ("replace", "lost"),
    "rename before the data is synced": ("replace", "torn"),
    "record synced after the change": ("replace", "undo"),
    "no sync of kept contents": ("replace", "undo"),
}


@needs_strace_and_compiler
def test_after_any_crash_files_are_whole_and_the_next_session_works_and_undoes():
    jobs = [
        Job(operation, states=_STATES, seed=number) for number, operation in enumerate(OPERATIONS)
    ]
    for job, outcome in zip(jobs, crash_replay.simulate(jobs), strict=True):
        assert outcome.problems == [], job.operation
        assert outcome.states == _STATES


@needs_strace_and_compiler
def test_the_simulation_finds_every_planted_mistake_in_the_order_of_syncs():
    jobs = [
        Job(operation, states=400, plant=bug, until=(kind,))
        for bug, (operation, kind) in PLANTS.items()
    ]
    found = {
        job.plant: job.until[0] in outcome.kinds()
        for job, outcome in zip(jobs, crash_replay.simulate(jobs), strict=True)
    }
    assert found == dict.fromkeys(PLANTS, True)


_REPLACED = {
    0: Inode("directory", names={"file": 1}),
    1: Inode("file", content=b"old"),
    2: Inode("file"),
}
_MADE = Names(((ROOT, "new", 2),))
_WRITTEN = Data(2, 0, b"abc")
_RENAMED = Names(((ROOT, "new", None), (ROOT, "file", 2)))


def contents_after(*steps: Step) -> set[bytes]:
    """What the file may contain after a crash at the end of these steps."""
    states = CrashStates(Recording(dict(_REPLACED), list(steps)))
    choices = states.different(wanted=1_000, seed=1)
    return {tree["file"].content for choice, tree in choices if choice.after == len(steps)}


def test_unsynced_bytes_may_be_missing_torn_or_zero_behind_a_name():
    found = contents_after(_MADE, _WRITTEN, _RENAMED)
    assert found == {b"old", b"", b"a", b"ab", b"abc", b"\0\0\0"}


def test_synced_bytes_are_whole_and_their_name_may_still_be_missing():
    synced = (_MADE, _WRITTEN, Sync(2, 2), _RENAMED)
    assert contents_after(*synced) == {b"old", b"abc"}
    assert contents_after(*synced, Sync(ROOT, 4), Ack("done")) == {b"abc"}


def test_a_sync_covers_only_what_was_complete_when_it_began():
    assert b"" in contents_after(_MADE, _WRITTEN, Sync(2, 1), _RENAMED)


def test_names_that_nobody_synced_come_and_go_one_by_one():
    second = Names(((ROOT, "other", 2),))
    states = CrashStates(Recording(dict(_REPLACED), [_MADE, second]))
    trees = states.different(wanted=1_000, seed=1)
    assert {tuple(tree) for _, tree in trees} == {
        ("file",),
        ("file", "new"),
        ("file", "other"),
        ("file", "new", "other"),
    }


def test_a_call_counts_from_its_beginning_where_another_thread_came_between():
    trace = [
        r"7 fsync(5<\x2f\x61> <unfinished ...>",
        r'8 write(5<\x2f\x61>, "\x62\x63", 2) = 2',
        "7 <... fsync resumed>) = 0",
        r'8 unlink("\x2f\x61") = -1 ENOENT (No such file or directory)',
    ]
    write, fsync = parse(trace)
    assert (write.name, write.files(), write.texts()) == ("write", [("5", "/a")], [b"bc"])
    assert (fsync.name, fsync.began, write.began) == ("fsync", 0, 0)
