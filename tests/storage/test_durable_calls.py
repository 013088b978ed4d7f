"""Whole calls on a disk that fails: no change without a way back, no success that is not durable."""

import asyncio
import errno
import os
from pathlib import Path

import pytest
from tests.storage.undoable import open_session

from handaxe.disk import early_sync, order


class FailingSync:
    """A sync that the disk took and could not do."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def wait(self) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("name", ["a.txt", "new.txt", "d/e/new.txt"])
async def test_without_a_durable_record_nothing_changes(
    name: str, tmp_path: Path, project: Path, monkeypatch
):
    (project / "a.txt").write_text("one\n")
    async with open_session(project, tmp_path / "home") as session:
        await session.call("Read", file_path="a.txt")
        monkeypatch.setattr(early_sync, "begin_sync", FailingSync)

        result = await session.call("Write", file_path=name, content="two\n")

    assert result.code == "undo.not_recorded"
    assert os.listdir(project) == ["a.txt"]
    assert (project / "a.txt").read_text() == "one\n"


async def test_without_a_durable_record_nothing_is_edited_from_then_on(
    tmp_path: Path, project: Path, monkeypatch
):
    (project / "a.txt").write_text("one\n")
    async with open_session(project, tmp_path / "home") as session:
        await session.call("Read", file_path="a.txt")
        with monkeypatch.context() as failing:
            failing.setattr(early_sync, "begin_sync", FailingSync)
            # It fails before it would have to wait, so the failed sync is nobody's so far.
            missed = await session.call(
                "Edit", file_path="a.txt", old_string="none", new_string="x"
            )
        edited = await session.call("Edit", file_path="a.txt", old_string="one", new_string="x")

    assert not missed.ok
    assert edited.code == "undo.not_recorded"
    assert (project / "a.txt").read_text() == "one\n"


async def test_a_name_that_is_not_durable_is_no_success(tmp_path: Path, project: Path, monkeypatch):
    (project / "a.txt").write_text("one\n")
    async with open_session(project, tmp_path / "home") as session:
        await session.call("Read", file_path="a.txt")
        with monkeypatch.context() as failing:
            failing.setattr(order, "begin_sync", FailingSync)
            result = await session.call("Write", file_path="a.txt", content="two\n")
        undone = await session.call("Undo")

    assert result.code == "file.write_failed"
    assert "input/output error" in result.text
    assert undone.ok, undone.text
    assert (project / "a.txt").read_text() == "one\n"


async def test_a_failed_sync_is_told_to_its_own_call_only(
    tmp_path: Path, project: Path, monkeypatch
):
    def fail_in_d(fd: int) -> object:
        is_d = os.readlink(f"/proc/self/fd/{fd}").endswith("/d")
        return FailingSync() if is_d else early_sync.begin_sync(fd)

    monkeypatch.setattr(order, "begin_sync", fail_in_d)
    names = [f"{folder}/{n}.txt" for n in range(5) for folder in "cde"]
    async with open_session(project, tmp_path / "home") as session:
        results = await asyncio.gather(
            *(session.call("Write", file_path=name, content="x") for name in names)
        )

    assert [result.ok for result in results] == [not name.startswith("d/") for name in names]


async def test_calls_leave_no_descriptor_behind(tmp_path: Path, project: Path):
    async with open_session(project, tmp_path / "home") as session:
        await session.call("Write", file_path="warm.txt", content="x")
        before = len(os.listdir("/proc/self/fd"))
        for number in range(30):
            await session.call("Write", file_path=f"{number}.txt", content="x")
        assert len(os.listdir("/proc/self/fd")) <= before + 1
    assert not early_sync._on_their_way
