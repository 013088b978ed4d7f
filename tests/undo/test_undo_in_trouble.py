"""Undo, and the record that it rests on, where the system refuses."""

import errno
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.storage.sessions import list_sessions, read_session_root
from handaxe.undo.journal_files.journal_scan import find_damage

LARGE = b"line\n" * 300_000
DYING = """
import asyncio, os, sys
from handaxe import Session

async def main():
    root, home = sys.argv[1:]
    make, made = os.mkdir, []
    def die_at_the_second(path, *rest, **more):
        if path in {"x", "y"}:
            made.append(path)
        if len(made) > 1:
            os._exit(9)
        return make(path, *rest, **more)
    os.mkdir = die_at_the_second
    async with Session(root, home=home, session_id="S", permission_mode="acceptEdits") as session:
        await session.call("Write", file_path="x/y/z/n.txt", content="new")

asyncio.run(main())
"""


def command(home: Path, *arguments: str, limit_bytes: int | None = None):
    """`handaxe ...` in a process that cannot make a file longer than the limit."""

    def limit() -> None:
        if limit_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

    return subprocess.run(
        [sys.executable, "-m", "handaxe", *arguments],
        env={**os.environ, "HANDAXE_HOME": str(home)},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def failing(monkeypatch):
    """A call of the system that fails on one kind of path from now on."""

    def begin(name: str, wanted: str) -> None:
        real = getattr(os, name)

        def fail(fd: int) -> None:
            if wanted in os.readlink(f"/proc/self/fd/{fd}"):
                raise OSError(errno.EIO, "Input/output error")
            real(fd)

        monkeypatch.setattr(os, name, fail)

    return begin


@pytest.mark.parametrize("is_shared", [False, True])
async def test_an_undo_that_fails_leaves_a_large_file_in_its_place(project, failing, is_shared):
    file = project / "a.txt"
    file.write_bytes(LARGE)
    async with Session(project, permission_mode="acceptEdits") as session:
        await session.call("Read", file_path="a.txt")
        done = await session.call(
            "Edit", file_path="a.txt", old_string="line\n", new_string="LINE\n", replace_all=True
        )
        assert done.ok, done.text
        new = file.read_bytes()
        if is_shared:
            # Somebody made the name one of another file, with the very same content.
            (project / "third").write_bytes(new)
            file.unlink()
            os.link(project / "third", file)
        failing("fsync", ".handaxe-")
        failed = await session.undo()
    assert failed.code == "undo.failed", failed.text
    assert file.read_bytes() == new


async def test_a_name_that_became_one_of_another_file_is_put_back_without_touching_that(project):
    file, third = project / "a.txt", project / "third"
    file.write_text("one\n")
    file.chmod(0o640)
    third.write_text("two\n")
    third.chmod(0o600)
    async with Session(project, permission_mode="acceptEdits") as session:
        await session.call("Read", file_path="a.txt")
        await session.call("Edit", file_path="a.txt", old_string="one", new_string="two")
        file.unlink()
        os.link(third, file)
        undone = await session.undo(force=True)
    assert undone.ok, undone.text
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("one\n", 0o640)
    assert (third.read_text(), third.stat().st_mode & 0o777) == ("two\n", 0o600)


async def test_an_undo_that_may_not_last_says_that_the_file_is_as_before(project, failing):
    file = project / "sub/a.txt"
    file.parent.mkdir()
    file.write_text("one\n")
    async with Session(project, permission_mode="acceptEdits") as session:
        await session.call("Read", file_path="sub/a.txt")
        await session.call("Edit", file_path="sub/a.txt", old_string="one", new_string="two")
        failing("fsync", str(file.parent))
        failed = await session.undo()
    assert failed.code == "undo.failed"
    assert file.read_text() == "one\n" or "Nothing was changed" in failed.text
    assert ("is as before" in failed.text) == (file.read_text() == "one\n")


async def test_undo_and_history_stay_of_use_when_the_record_can_take_no_more(project, failing):
    (project / "a.txt").write_text("one\n")
    async with Session(project, permission_mode="acceptEdits") as session:
        await session.call("Read", file_path="a.txt")
        await session.call("Edit", file_path="a.txt", old_string="one", new_string="two")
        failing("fdatasync", "journal.jsonl")
        refused = await session.call("Write", file_path="b.txt", content="b\n")
        undone = await session.undo()
        history = [call.tool for call in session.history()]
    assert refused.code == undone.code == "undo.not_recorded"
    assert history == ["Edit"]
    assert (project / "a.txt").read_text() == "two\n"


async def test_directories_are_taken_back_that_a_crash_left_half_made(project, tmp_path):
    home = tmp_path / "data"
    died = subprocess.run(
        [sys.executable, "-c", DYING, str(project), str(home)], capture_output=True, check=False
    )
    assert died.returncode == 9, died.stderr
    assert [path.name for path in project.iterdir()] == ["x"]
    async with Session(project, home=home, session_id="S") as session:
        undone = await session.undo()
    assert undone.ok, undone.text
    assert not (project / "x").exists()


async def test_an_undo_from_the_shell_tells_what_it_did_where_the_log_is_full(project, tmp_path):
    home = tmp_path / "data"
    (project / "long.txt").write_text("a long line of text\n" * 1500)
    async with Session(project, home=home, session_id="S", permission_mode="acceptEdits") as one:
        await one.call("Read", file_path="long.txt")
        await one.call("Write", file_path="n.txt", content="new\n")
    log = home / "sessions/S/events.jsonl"
    arguments = ("undo", "--root", str(project), "--session-id", "S")
    undone = command(home, *arguments, limit_bytes=log.stat().st_size)
    assert undone.returncode == 0, undone.stderr
    assert "removed: " in undone.stdout
    assert "The event log could not be written" in undone.stdout
    assert not (project / "n.txt").exists()


async def test_a_session_that_cannot_be_copied_whole_is_not_copied(project, tmp_path):
    home = tmp_path / "data"
    (project / "long.txt").write_text("a long line of text\n" * 1500)
    async with Session(project, home=home, session_id="S") as session:
        await session.call("Read", file_path="long.txt")
    forked = command(home, "sessions", "fork", "S", limit_bytes=1000)
    assert (forked.returncode, forked.stdout) == (2, "")
    assert "could not be copied" in forked.stderr
    assert [found.id for found in list_sessions(home, find_damage)] == ["S"]


def test_a_log_that_a_full_disk_left_empty_is_listed_under_the_time_it_was_made(tmp_path):
    log = tmp_path / "sessions/S/events.jsonl"
    log.parent.mkdir(parents=True)
    log.touch()
    [found] = list_sessions(tmp_path, find_damage)
    assert found.time == log.stat().st_mtime
    assert read_session_root(log) is None


async def test_changes_are_found_by_the_log_where_the_record_lost_its_beginning(project, tmp_path):
    home = tmp_path / "data"
    async with Session(project, home=home, session_id="S", permission_mode="acceptEdits") as one:
        await one.call("Write", file_path="n.txt", content="new\n")
    journal = home / "sessions/S/journal.jsonl"
    first, _, rest = journal.read_bytes().partition(b"\n")
    journal.write_bytes(b"?" * len(first) + b"\n" + rest)
    listed = command(home, "history", "--root", str(project), "--json")
    assert json.loads(listed.stdout), listed.stderr
    undone = command(home, "undo", "--root", str(project))
    assert undone.returncode == 0, undone.stderr
    assert not (project / "n.txt").exists()


def test_what_a_kill_left_unfinished_in_our_own_directory_is_swept(project, tmp_path):
    home = tmp_path / "data"
    left = home / "in-place/.handaxe-0123456789abcdef.tmp"
    left.parent.mkdir(parents=True)
    left.write_text("half")
    Session(project, home=home)
    assert not left.exists()


def make_with_number(directory: Path, inode: int, content: str) -> Path:
    """A file that has got the number of one that is gone, as file systems give it out again."""
    for number in range(3000):
        file = directory / f"other{number}.txt"
        file.write_text(content)
        if file.stat().st_ino == inode:
            return file
    pytest.skip("this file system does not give numbers out again")


def set_clock(monkeypatch, seconds: float) -> None:
    """Let the calls take it to be so much later than the file system does."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + seconds)


@pytest.mark.parametrize("clock_s", [0, 3600])
@pytest.mark.parametrize("was_linked", [False, True])
@pytest.mark.parametrize("force", [False, True])
async def test_undo_never_writes_into_another_file_that_has_the_number_of_the_old_one(
    tmp_path, monkeypatch, was_linked, force, clock_s
):
    # A clock that is set back after the call makes later files look older than the call.
    set_clock(monkeypatch, clock_s)
    root = tmp_path / "root"
    root.mkdir()
    file, second = root / "a.txt", root / "b.txt"
    file.write_text("old\n")
    if was_linked:
        os.link(file, second)
    inode = file.stat().st_ino
    async with Session(root, home=tmp_path / "home", permission_mode="acceptEdits") as session:
        await session.call("Read", file_path="a.txt")
        assert (await session.call("Write", file_path="a.txt", content="new\n")).ok
        file.unlink()
        second.unlink(missing_ok=True)
        other = make_with_number(root, inode, "mine\n" if force else "new\n")
        kept = other.read_text()
        os.link(other, file)
        result = await session.call("Undo", force=force)
        assert result.ok, result.text
        assert file.read_text() == "old\n"
        assert other.read_text() == kept
        assert (await session.call("Undo", call_id=result.id)).ok
        assert file.read_text() == other.read_text() == kept


async def test_undo_writes_in_place_where_only_the_time_of_a_file_with_two_names_has_changed(
    tmp_path,
):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("old\n")
    os.link(root / "a.txt", root / "b.txt")
    async with Session(root, home=tmp_path / "home", permission_mode="acceptEdits") as session:
        await session.call("Read", file_path="a.txt")
        assert (await session.call("Write", file_path="a.txt", content="new\n")).ok
        os.utime(root / "b.txt", (1, 1))
        assert (await session.call("Undo")).ok
    assert (root / "b.txt").read_text() == "old\n"
    assert (root / "a.txt").samefile(root / "b.txt")


@pytest.mark.parametrize("clock_s", [-40 * 24 * 3600, -60, 60])
@pytest.mark.parametrize("from_shell", [False, True])
@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("Edit", {"file_path": "a.txt", "old_string": "old", "new_string": "new"}),
        ("Bash", {"command": "sh -c 'echo new > a.txt'", "description": "Write"}),
    ],
)
async def test_a_file_with_a_name_elsewhere_keeps_it_when_undone_after_the_clock_was_set(
    tmp_path, monkeypatch, tool, words, from_shell, clock_s
):
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    file, second = root / "a.txt", tmp_path / "second"
    file.write_text("old\n")
    os.link(file, second)
    set_clock(monkeypatch, clock_s)
    async with Session(
        root, home=home, session_id="S", permission_mode="bypassPermissions"
    ) as session:
        await session.call("Read", file_path="a.txt")
        done = await session.call(tool, **words)
        assert done.ok, done.text
        assert second.read_text() == "new\n"
        if not from_shell:
            assert (await session.undo()).ok
    if from_shell:
        undone = command(home, "undo", "--root", str(root), "--session-id", "S")
        assert undone.returncode == 0, undone
    assert file.read_text() == second.read_text() == "old\n"
    assert file.samefile(second)


async def test_a_name_that_a_file_got_after_the_call_keeps_what_it_was_given(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    file, copy = root / "a.txt", tmp_path / "copy"
    file.write_text("old\n")
    async with Session(
        root, home=tmp_path / "home", permission_mode="bypassPermissions"
    ) as session:
        assert (await session.call("Bash", command="echo new > a.txt")).ok
        os.link(file, copy)
        assert (await session.undo()).ok
    assert (file.read_text(), copy.read_text()) == ("old\n", "new\n")
