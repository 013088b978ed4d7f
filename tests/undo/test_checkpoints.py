"""The undo record itself: what is durable when, what is kept how, what a crash leaves."""

import asyncio
import errno
import os
import stat
from pathlib import Path
from typing import Annotated

import pytest
from tests.expected_types import expect_type
from tests.undo.undoable import in_a_process, open_session, tree

from handaxe import Session, tool
from handaxe.contract.effects import Effects
from handaxe.contract.faults.undo import NotRecorded, PrunedCall, UndoConflict
from handaxe.contract.ports.undo import UndoRequest
from handaxe.disk.append_log import scan
from handaxe.disk.atomic import replace
from handaxe.undo import directory_trees
from handaxe.undo import journal as journal_module
from handaxe.undo.checkpoints import DiskCheckpoints
from handaxe.undo.content_store import ContentStore
from handaxe.undo.directory_trees import list_descendants
from handaxe.undo.history import JournalHistory
from handaxe.undo.in_place import SharedContentGuard, repair_in_place
from handaxe.undo.journal import UndoJournal
from handaxe.undo.journal_files.records import LATE_S, BeforeRecord, decode

LARGE = b"0123456789abcdef" * 10_000
UNDO_LAST = UndoRequest()


class Desk:
    """One session's record over a home, as the application joins it."""

    def __init__(self, home: Path, session_id: str = "s") -> None:
        self.home = home
        self.store = ContentStore(home)
        directory = home / "sessions" / session_id
        self.journal = UndoJournal(directory, self.store, session_id=session_id, root="/")
        self.guard = SharedContentGuard(home, self.store)
        self.checkpoints = DiskCheckpoints(self.journal, self.store, replacing={"Replace", "Undo"})
        self.history = JournalHistory(self.journal, self.store, in_place=self.guard)

    async def replace(self, call_id: str, path: Path, content: bytes) -> None:
        await self.checkpoints.before(call_id, "Replace", Effects.on(str(path)))
        replace(
            path,
            [content],
            expect=None,
            make_parents=True,
            journal=self.guard,
            own_links=self.store.own_links,
        )
        await self.checkpoints.after(call_id)

    async def undo(self, wanted: UndoRequest = UNDO_LAST, call_id: str = "undo"):
        paths = self.history.touched(wanted)
        await self.checkpoints.before(call_id, "Undo", Effects.on(*paths))
        try:
            return await self.history.put_back(call_id, wanted)
        finally:
            await self.checkpoints.after(call_id)

    def pins(self) -> list[str]:
        pins = self.home / "pins"
        return sorted(os.listdir(pins)) if pins.exists() else []


@pytest.fixture
def server_session(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


async def test_the_old_content_is_durable_before_the_call_may_run(
    server_session, project, monkeypatch
):
    synced = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd)))
    file = project / "a.txt"
    file.write_text("one\n")
    await server_session.checkpoints.before("c", "Replace", Effects.on(str(file)))
    journal = server_session.journal.directory / "journal.jsonl"
    assert synced == [journal.stat().st_size]
    last = expect_type(BeforeRecord, decode(list(scan(journal))[-1].payload))
    assert last.states[0].content == b"one\n"


async def test_a_second_change_costs_one_sync(server_session, project, monkeypatch):
    file = project / "a.txt"
    await server_session.replace("first", file, b"1")
    synced = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda fd, name=name, real=real: (synced.append(name), real(fd))
        )
    await server_session.checkpoints.before("c", "Replace", Effects.on(str(file)))
    await server_session.checkpoints.after("c")
    assert synced == ["fdatasync"]


async def test_a_full_disk_stops_the_change(server_session, project, monkeypatch):
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fdatasync", full)
    file = project / "a.bin"
    file.write_bytes(LARGE)
    with pytest.raises(NotRecorded, match="no space is left"):
        await server_session.checkpoints.before("c", "Replace", Effects.on(str(file)))
    await server_session.checkpoints.after("c")
    assert (server_session.pins(), file.stat().st_nlink) == ([], 1)


DELETE_FIRST = "*** Begin Patch\n*** Delete File: first\n*** End Patch"


@pytest.mark.parametrize(
    ("name", "call_input"),
    [
        ("Write", {"file_path": "new.txt", "content": "2"}),
        ("Write", {"file_path": "x/y/new.txt", "content": "2"}),
        ("Write", {"file_path": "first", "content": "2"}),
        ("Edit", {"file_path": "large", "old_string": "begin", "new_string": "end"}),
        ("ApplyPatch", {"input": DELETE_FIRST}),
    ],
)
async def test_a_change_that_cannot_be_recorded_is_not_made_and_leaves_nothing(
    tmp_path, project, monkeypatch, name, call_input
):
    (project / "large").write_bytes(b"begin\n" + LARGE)
    async with open_session(project, tmp_path / "home") as session:
        assert (await session.call("Write", file_path="first", content="1")).ok
        assert (await session.call("Read", file_path="large", limit=1)).ok

        def full(fd: int) -> None:
            raise OSError(errno.ENOSPC, "full")

        before = tree(project)
        monkeypatch.setattr(os, "fdatasync", full)
        result = await session.call(name, call_input)
        monkeypatch.undo()
        assert (result.ok, result.code) == (False, NotRecorded.code)
        assert tree(project) == before
        assert sorted(os.listdir(project)) == ["first", "large"]
        assert (project / "large").stat().st_nlink == 1


async def test_a_tool_in_the_place_of_a_built_in_runs_after_its_record_is_durable(
    tmp_path, project, monkeypatch
):
    happened = []
    real = os.fdatasync

    def sync(fd: int) -> None:
        # The event log is synced at its own pace.
        if os.readlink(f"/proc/self/fd/{fd}").endswith("/journal.jsonl"):
            happened.append("synced")
        real(fd)

    monkeypatch.setattr(os, "fdatasync", sync)

    @tool(name="Write", effects=lambda args: Effects.on(args.path), replaces_builtin=True)
    async def write(path: Annotated[str, "Where."]) -> str:
        """Write without asking anybody."""
        happened.append("written")
        Path(path).write_text("new")
        return "done"

    async with Session(
        project, home=tmp_path / "home", tools=[write], permission_mode="bypassPermissions"
    ) as session:
        large = project / "large"
        large.write_bytes(LARGE)
        result = await session.call("Write", path=str(large))
        assert result.ok, result.text
        assert happened[:2] == ["synced", "written"]
        assert (await session.undo()).ok
        assert large.read_bytes() == LARGE


async def test_promises_are_kept_with_one_sync(server_session, project, monkeypatch):
    checkpoints = DiskCheckpoints(
        server_session.journal, server_session.store, replacing={"Replace"}, waiting={"Replace"}
    )
    synced = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd)))
    journal = server_session.journal.directory / "journal.jsonl"
    for name in ("a", "b"):
        await checkpoints.before(name, "Replace", Effects.on(str(project / name)))
    assert synced == []
    checkpoints.keep_promises()
    checkpoints.keep_promises()
    assert synced == [journal.stat().st_size]
    await checkpoints.before("c", "Replace", Effects.on(str(project / "c")))
    checkpoints.keep_promises()
    assert synced[1:] == [journal.stat().st_size]


async def test_a_large_file_is_kept_without_a_copy(server_session, project):
    file = project / "a.bin"
    file.write_bytes(LARGE)
    inode = file.stat().st_ino
    await server_session.replace("c", file, b"new")
    [pin] = server_session.pins()
    assert (server_session.home / "pins" / pin).stat().st_ino == inode
    assert file.stat().st_nlink == 1
    assert not (server_session.home / "blobs").exists()
    await server_session.undo()
    assert file.read_bytes() == LARGE


async def test_a_large_file_goes_back_and_forth(server_session, project):
    file = project / "a.bin"
    file.write_bytes(b"small")
    await server_session.replace("one", file, LARGE)
    await server_session.replace("two", file, b"")
    for number in range(2):
        for step, content in enumerate((LARGE, b"small")):
            await server_session.undo(call_id=f"undo-{number}-{step}")
            assert file.read_bytes() == content
        for step, content in enumerate((LARGE, b"")):
            await server_session.undo(UndoRequest(redo=True), f"redo-{number}-{step}")
            assert file.read_bytes() == content


async def test_a_large_file_that_was_not_changed_is_let_go(server_session, project):
    file = project / "a.bin"
    file.write_bytes(LARGE)
    await server_session.checkpoints.before("c", "Replace", Effects.on(str(file)))
    assert file.stat().st_nlink == 2
    await server_session.checkpoints.after("c")
    assert (server_session.pins(), file.stat().st_nlink) == ([], 1)
    assert server_session.history.calls() == []


async def test_a_large_file_that_other_tools_write_into_is_copied(server_session, project):
    file = project / "a.bin"
    file.write_bytes(LARGE)
    await server_session.checkpoints.before("c", "sed", Effects.on(str(file)))
    with file.open("r+b") as opened:
        opened.write(b"in place")
    await server_session.checkpoints.after("c")
    assert server_session.pins() == []
    await server_session.undo()
    assert file.read_bytes() == LARGE


async def test_equal_large_contents_are_kept_once(server_session, project):
    for name in ("a", "b"):
        (project / name).write_bytes(LARGE)
        await server_session.checkpoints.before(name, "sed", Effects.on(str(project / name)))
        (project / name).write_bytes(b"x")
        await server_session.checkpoints.after(name)
    assert len([p for p in (server_session.home / "blobs").rglob("*") if p.is_file()]) == 1


async def test_a_hard_linked_large_file_is_written_in_place_and_kept_whole(server_session, project):
    file = project / "a.bin"
    file.write_bytes(LARGE)
    os.link(file, project / "b.bin")
    await server_session.replace("c", file, b"new" * 30_000)
    assert (project / "b.bin").read_bytes() == b"new" * 30_000
    await server_session.undo()
    assert (project / "b.bin").read_bytes() == LARGE
    assert file.stat().st_nlink == 2


async def test_a_pin_gets_a_copy_of_its_own_before_the_file_is_written_in_place(
    server_session, project
):
    file = project / "a.bin"
    file.write_bytes(LARGE)
    await server_session.checkpoints.before("c", "Replace", Effects.on(str(file)))
    # Somebody links the file just now, so that the replacement has to write in place.
    os.link(file, project / "b.bin")
    replace(
        file,
        [b"new"],
        expect=None,
        journal=server_session.guard,
        own_links=server_session.store.own_links,
    )
    await server_session.checkpoints.after("c")
    assert (project / "b.bin").read_bytes() == b"new"
    await server_session.undo()
    assert file.read_bytes() == LARGE


async def test_undoing_a_mode_keeps_a_large_file_apart_from_its_pin(server_session, project):
    file = project / "a.bin"
    file.write_bytes(LARGE)
    file.chmod(0o640)
    await server_session.checkpoints.before("c", "chmod", Effects.on(str(file)))
    file.chmod(0o600)
    await server_session.checkpoints.after("c")
    await server_session.undo()
    assert file.stat().st_nlink == 1
    with file.open("r+b") as opened:
        opened.write(b"in place")
    await server_session.undo(UndoRequest(redo=True, force=True), "redo")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes() == LARGE


async def test_a_kept_content_that_somebody_spoilt_is_not_put_back(server_session, project):
    file = project / "a.bin"
    file.write_bytes(LARGE)
    await server_session.replace("c", file, b"new")
    [pin] = server_session.pins()
    (server_session.home / "pins" / pin).write_bytes(b"spoilt")
    with pytest.raises(PrunedCall, match="changed by another program"):
        await server_session.undo()
    assert file.read_bytes() == b"new"


async def test_modes_are_put_back(server_session, project):
    file = project / "a.sh"
    file.write_text("echo\n")
    file.chmod(0o640)
    await server_session.checkpoints.before("c", "chmod", Effects.on(str(file)))
    file.chmod(0o755)
    await server_session.checkpoints.after("c")
    [call] = server_session.history.calls()
    assert call.changes[0].change == "mode"
    await server_session.undo()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


async def test_a_mode_somebody_else_changed_since_is_a_conflict(server_session, project):
    file = project / "a.sh"
    file.write_text("echo\n")
    file.chmod(0o640)
    await server_session.checkpoints.before("c", "chmod", Effects.on(str(file)))
    file.chmod(0o755)
    await server_session.checkpoints.after("c")
    file.chmod(0o700)
    with pytest.raises(UndoConflict, match="its mode was changed since"):
        await server_session.undo()


async def test_a_mode_the_call_did_not_touch_stays_as_somebody_made_it(server_session, project):
    file = project / "a.sh"
    file.write_text("one\n")
    await server_session.replace("c", file, b"two\n")
    file.chmod(0o700)
    await server_session.undo()
    assert (stat.S_IMODE(file.stat().st_mode), file.read_text()) == (0o700, "one\n")


async def test_a_deleted_file_comes_back_with_mode_and_attributes(server_session, project):
    file = project / "a.txt"
    file.write_text("one\n")
    file.chmod(0o640)
    os.setxattr(file, "user.note", b"kept")
    await server_session.checkpoints.before("c", "rm", Effects.on(str(file)))
    file.unlink()
    await server_session.checkpoints.after("c")
    await server_session.undo()
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("one\n", 0o640)
    assert os.getxattr(file, "user.note") == b"kept"


async def test_names_that_are_no_utf_8_are_put_back(server_session, project):
    place = os.fsencode(project) + b"/caf\xe9.txt"
    Path(os.fsdecode(place)).write_text("one\n")
    await server_session.replace("c", Path(os.fsdecode(place)), b"two\n")
    await server_session.undo()
    assert Path(os.fsdecode(place)).read_text() == "one\n"


async def test_a_tree_too_big_to_remember_is_named(server_session, project, monkeypatch):
    monkeypatch.setattr(directory_trees, "MAX_FILES", 3)
    monkeypatch.setattr(
        list_descendants,
        "__kwdefaults__",
        {"max_files": 3, "max_bytes": 99},
    )
    for number in range(5):
        (project / f"{number}.txt").write_text("x")
    await server_session.checkpoints.before("c", "make", Effects.on(str(project)))
    (project / "0.txt").write_text("y")
    await server_session.checkpoints.after("c")
    [entry] = server_session.journal.entries()
    assert entry.left_out == (str(project),)


@pytest.mark.parametrize("kill_at", range(0, 60, 3))
def test_a_kill_at_any_point_leaves_a_journal_that_tells_the_truth(tmp_path, project, kill_at):
    file = project / "a.txt"
    file.write_bytes(LARGE)
    before = tree(project)
    calls = [
        ("Read", {"file_path": str(file), "limit": 5}),
        ("Edit", {"file_path": str(file), "old_string": "0123", "new_string": "x",
                  "replace_all": True}),
    ]  # fmt: skip
    in_a_process(project, tmp_path / "home", calls, kill_at)
    is_changed = tree(project) != before

    async def look_back() -> None:
        async with open_session(project, tmp_path / "home") as session:
            assert bool(session.history()) == is_changed
            assert file.stat().st_nlink == 1
            result = await session.undo()
            assert result.ok == is_changed, result.text
            assert tree(project) == before

    asyncio.run(look_back())


async def test_a_call_that_runs_is_not_taken_for_a_dead_one(server_session, project):
    file = project / "a.txt"
    file.write_text("one\n")
    await server_session.checkpoints.before("c", "slow", Effects.on(str(file)))
    file.write_text("half\n")
    assert Desk(server_session.home).history.calls() == []
    file.write_text("two\n")
    await server_session.checkpoints.after("c")
    [call] = Desk(server_session.home).history.calls()
    assert (call.call_id, call.cut_off) == ("c", False)


async def test_a_file_written_long_after_a_crash_is_not_taken_for_the_calls(
    server_session, project
):
    file = project / "a.txt"
    file.write_text("one\n")
    await server_session.checkpoints.before("c", "slow", Effects.on(str(file)))
    file.write_text("by hand, the day after\n")
    late = file.stat().st_mtime + LATE_S + 5
    os.utime(file, (late, late))
    server_session.journal.leave()
    server_session.journal.close()
    later = Desk(server_session.home)
    [call] = later.history.calls()
    assert call.cut_off
    with pytest.raises(UndoConflict, match="long after"):
        await later.undo()
    assert file.read_text().startswith("by hand")


async def test_a_torn_record_is_skipped_and_said(server_session, project):
    file = project / "a.txt"
    await server_session.replace("c", file, b"1")
    server_session.checkpoints.close()
    journal = server_session.journal.directory / "journal.jsonl"
    with journal.open("ab") as opened:
        opened.write(b'{"seq":9,"crc":"000')
    later = Desk(server_session.home)
    outcome = await later.undo()
    assert not file.exists()
    assert outcome.calls[0].call_id == "c"


async def test_a_full_part_is_closed_and_still_read(server_session, project, monkeypatch):
    monkeypatch.setattr(journal_module, "PART_BYTES", 1000)
    other = Desk(server_session.home)
    for number in range(6):
        writer = server_session if number % 2 else other
        await writer.replace(f"c{number}", project / "a.txt", b"%d" % number * 300)
    assert len(list(server_session.journal.directory.glob("journal*.jsonl"))) > 2
    assert [call.call_id for call in server_session.history.calls()] == [f"c{n}" for n in range(6)]
    await server_session.undo(UndoRequest(call_id="c3"))
    assert (project / "a.txt").read_bytes() == b"2" * 300


def test_a_half_written_file_is_repaired_when_a_session_opens(tmp_path, project):
    """The writer is killed while it writes a hard-linked file in place."""
    home = tmp_path / "home"
    file = project / "a.txt"
    file.write_text("one\n" * 500)
    os.link(file, project / "b.txt")
    calls = [
        ("Read", {"file_path": str(file)}),
        ("Write", {"file_path": str(file), "content": "two\n" * 400}),
    ]
    outcomes = set()
    for kill_at in range(5, 60, 4):
        in_a_process(project, home, calls, kill_at)
        repair_in_place(home)
        content = file.read_text()
        assert content in {"one\n" * 500, "two\n" * 400}
        outcomes.add(content)
        file.write_text("one\n" * 500)
    assert len(outcomes) == 2
    assert not list((home / "in-place").glob("*.pre-image"))


OFF = {"fileCheckpointingEnabled": False}


async def test_changes_are_not_recorded_where_the_settings_say_so(project, tmp_path):
    home = tmp_path / "data"
    async with Session(
        project, home=home, permission_mode="bypassPermissions", settings=OFF
    ) as session:
        assert (await session.call("Write", file_path="new.txt", content="new")).ok
        assert (await session.call("Bash", command="echo more >> new.txt; python3 -c pass")).ok
        result = await session.undo()
    assert result.code == "undo.nothing"
    assert "`fileCheckpointingEnabled: false`" in result.text
    assert (project / "new.txt").read_text() == "newmore\n"
    assert not list(home.rglob("journal*"))
    assert not (home / "snapshots").exists()


async def test_what_was_recorded_before_can_be_undone_once_and_redone(project, tmp_path):
    home = tmp_path / "data"
    async with Session(project, home=home, permission_mode="acceptEdits") as session:
        await session.call("Write", file_path="a.txt", content="recorded")
        await session.call("Write", file_path="b.txt", content="recorded")
    async with Session(
        project, home=home, session_id=session.id, allow=["Write", "Undo"], settings=OFF
    ) as again:
        await again.call("Write", file_path="b.txt", content="not recorded")
        conflict = await again.undo()
        (project / "b.txt").write_text("recorded")
        first, second, none = [await again.undo() for _ in range(3)]
        assert not (project / "a.txt").exists()
        redone = await again.undo(redo=True)
    assert conflict.code == "undo.conflict"
    assert first.ok, first.text
    assert second.ok, second.text
    assert none.code == "undo.nothing"
    assert redone.ok, redone.text
    assert (project / "a.txt").read_text() == "recorded"
