"""What is kept for undoing commands: how much, how long, and for work that goes on behind a call."""

import os
from pathlib import Path

import pytest
from tests.disk.hostile_places import mounted
from tests.undo.commanding import open_session, run, whole_tree

from handaxe.contract.effects import Effects
from handaxe.contract.faults.undo import NotRecorded
from handaxe.contract.ports.undo import UndoRequest
from handaxe.undo.checkpoints import DiskCheckpoints
from handaxe.undo.command_changes import TreeTracker
from handaxe.undo.content_store import ContentStore
from handaxe.undo.history import JournalHistory
from handaxe.undo.in_place import SharedContentGuard
from handaxe.undo.journal import UndoJournal
from handaxe.undo.path_backup import PathRecorder
from handaxe.undo.prune import measure_usage, prune
from handaxe.undo.snapshot.snapshot import SnapshotLimits

LAST = UndoRequest()


class Desk:
    """One session's record over a project, without a session."""

    def __init__(self, home: Path, root: Path) -> None:
        store = ContentStore(home)
        self.journal = UndoJournal(home / "sessions/s", store, session_id="s", root=str(root))

        def roots() -> tuple[str, ...]:
            return (str(root),)

        self.checkpoints = DiskCheckpoints(
            self.journal,
            store,
            replacing={"Undo"},
            roots=roots,
            tree=lambda: TreeTracker(home, "s", roots, SnapshotLimits(), self.journal, store),
        )
        guard = SharedContentGuard(home, store)
        self.history = JournalHistory(self.journal, store, in_place=guard)

    async def begin(self, call_id: str, effects: Effects | None = None) -> None:
        await self.checkpoints.before(call_id, "Bash", effects or Effects.unknown())

    async def undo(self, call_id: str = "undo", wanted: UndoRequest = LAST):
        paths = self.history.touched(wanted)
        await self.checkpoints.before(call_id, "Undo", Effects.on(*paths))
        try:
            return await self.history.put_back(call_id, wanted)
        finally:
            await self.checkpoints.after(call_id)


@pytest.fixture
def server_session(tree, tmp_path):
    server_session = Desk(tmp_path / "home", tree)
    yield server_session
    server_session.checkpoints.close()


async def test_work_that_goes_on_in_the_background_extends_its_call(server_session, tree):
    before = whole_tree(tree)
    await server_session.begin("server")
    (tree / "early").write_text("1\n")
    await server_session.checkpoints.after("server")
    (tree / "late").write_text("2\n")
    (tree / "a.txt").write_text("late\n")
    await server_session.checkpoints.after("server")
    assert {change.file_path for change in server_session.history.calls()[0].changes} >= {
        str(tree / "early"),
        str(tree / "late"),
        str(tree / "a.txt"),
    }
    await server_session.undo(wanted=UndoRequest(force=True))
    assert whole_tree(tree) == before


async def test_a_file_of_ours_on_its_way_to_its_place_is_no_change_of_a_command(
    server_session, tree
):
    coming, going = tree / f".handaxe-{'0' * 16}.tmp", tree / f".handaxe-{'f' * 16}.tmp"
    going.write_text("g\n")
    await server_session.begin("command")
    going.rename(tree / "arrived")
    coming.write_text("c\n")
    await server_session.checkpoints.after("command")
    changes = server_session.history.calls()[0].changes
    assert [change.file_path for change in changes] == [str(tree / "arrived")]


async def test_what_is_kept_is_whole_after_the_disk_was_full_for_a_while(tree, tmp_path):
    home = tmp_path / "full"
    home.mkdir()
    with mounted(home, "-t", "tmpfs", "-o", "size=2m,mode=700", "none"):
        server_session = Desk(home, tree)
        await server_session.begin("first")
        (tree / "deep/x.txt").write_text("first\n")
        await server_session.checkpoints.after("first")
        for number in range(500):
            (tree / f"empty/{number}").touch()
        await _refuse(server_session, home, left_bytes=8_192)
        for name in ("new", "other"):
            (tree / name).write_bytes(os.urandom(200_000))
        for left_bytes in (100_000, 250_000):
            await _refuse(server_session, home, left_bytes)
        before = whole_tree(tree)
        await server_session.begin("second")
        for name in ("new", "other", "deep/x.txt"):
            (tree / name).unlink()
        await server_session.checkpoints.after("second")
        await server_session.undo(wanted=UndoRequest(force=True))
        assert whole_tree(tree) == before
        server_session.checkpoints.close()


@pytest.mark.parametrize("is_reopened", [False, True])
async def test_what_a_command_left_on_a_full_disk_is_recorded_later(tree, tmp_path, is_reopened):
    home = tmp_path / "full"
    home.mkdir()
    with mounted(home, "-t", "tmpfs", "-o", "size=2m,mode=700", "none"):
        session = open_session(tree, home, "S")
        await run(session, tree, "true")
        before = whole_tree(tree)
        _fill(home, left_bytes=20_000)
        done = await session.call("sh", command="rm big.bin", cwd=str(tree))
        assert "could not be recorded" in str(done.notes), done.text
        if is_reopened:
            await session.close()
            session = open_session(tree, home, "S")
        (home / "filler").unlink()
        undone = await session.undo()
        assert undone.ok, undone.text
        assert whole_tree(tree) == before
        await session.close()


def _fill(home: Path, left_bytes: int) -> None:
    """Leave so much room in a file system."""
    with (home / "filler").open("wb") as file:
        info = os.statvfs(home)
        os.posix_fallocate(file.fileno(), 0, info.f_bavail * info.f_frsize - left_bytes)


async def _refuse(server_session: Desk, home: Path, left_bytes: int) -> None:
    """Begin a call that is refused, as the file system has only so much room left for now."""
    _fill(home, left_bytes)
    with pytest.raises(NotRecorded):
        await server_session.begin(f"refused with {left_bytes} bytes")
    (home / "filler").unlink()


async def test_what_other_calls_do_meanwhile_is_theirs(server_session, tree):
    await server_session.begin("server")
    await server_session.checkpoints.after("server")
    (tree / "of-server").write_text("1\n")
    await server_session.begin("other")
    (tree / "of-other").write_text("2\n")
    await server_session.checkpoints.after("other")
    edited = tree / "edited"
    await server_session.checkpoints.before("edit", "Edit", Effects.on(str(edited)))
    edited.write_text("3\n")
    await server_session.checkpoints.after("edit")
    await server_session.checkpoints.after("server")
    listed = {
        call.call_id: [Path(change.file_path).name for change in call.changes]
        for call in server_session.history.calls()
    }
    assert listed == {"server": ["of-server"], "other": ["of-other"], "edit": ["edited"]}


async def test_a_call_that_named_its_paths_keeps_nothing_else(server_session, tree, tmp_path):
    await server_session.begin("rm", Effects.on(str(tree / "a.txt")))
    (tree / "a.txt").unlink()
    await server_session.checkpoints.after("rm")
    assert not (tmp_path / "home/snapshots").exists()
    await server_session.undo()
    assert (tree / "a.txt").read_text() == "one\n"


async def test_a_named_directory_is_covered_however_many_files_it_has(
    server_session, tree, monkeypatch
):
    monkeypatch.setitem(PathRecorder.keep.__globals__, "below", _too_big)
    before = whole_tree(tree)
    await server_session.begin("rm", Effects.on(str(tree / "deep")))
    (tree / "deep/x.txt").unlink()
    (tree / "mine").write_text("meanwhile, somebody else\n")
    await server_session.checkpoints.after("rm")
    await server_session.undo()
    (tree / "mine").unlink()
    assert whole_tree(tree) == before


async def test_contents_go_once_nobody_needs_them(tree, tmp_path):
    home = tmp_path / "home"
    async with open_session(tree, home) as session:
        for number in range(5):
            await run(session, tree, f"head -c 1000000 /dev/urandom > noise; echo {number} > n")
    async with open_session(tree, home) as session:
        await run(session, tree, "rm noise")
    async with open_session(tree, home) as session:
        await run(session, tree, "true")
    [store] = (home / "snapshots").iterdir()
    assert sum(pack.stat().st_size for pack in store.glob("*.pack")) < 1_000_000


async def test_pruning_takes_trees_first_and_then_what_calls_replaced(tree, tmp_path):
    home = tmp_path / "home"
    (tree / "stays.bin").write_bytes(os.urandom(300_000))
    async with open_session(tree, home) as session:
        await run(session, tree, "rm big.bin")
    assert measure_usage(home).checkpoints > 400_000
    pruned = prune(home, max_bytes=measure_usage(home).checkpoints - 1, retention_days=30)
    assert (pruned.calls, list((home / "snapshots").iterdir())) == (0, [])
    async with open_session(tree, home) as session:
        await run(session, tree, "true")
    assert prune(home, max_bytes=0, retention_days=30).calls == 1
    assert measure_usage(home).checkpoints < 1000


async def test_a_tree_in_use_is_not_pruned(tree, tmp_path):
    home = tmp_path / "home"
    before = whole_tree(tree)
    async with open_session(tree, home) as session:
        await run(session, tree, "true")
        prune(home, max_bytes=0, retention_days=30)
        await run(session, tree, "rm -rf deep")
        assert (await session.undo()).ok
    assert whole_tree(tree) == before


async def test_a_full_disk_stops_the_command(server_session, tree, monkeypatch):
    import errno

    from handaxe.contract.faults.undo import NotRecorded

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(NotRecorded, match="no space is left"):
        await server_session.begin("c")


def _too_big(*_args, **_kwargs):
    from handaxe.undo.directory_trees import TooBig

    raise TooBig
