"""Syncs that are begun early: what is waited for is done, and no failure is lost."""

import errno
import os
from multiprocessing import get_context
from pathlib import Path

import pytest

from handaxe.disk import early_sync, order
from handaxe.disk.atomic import ABSENT, Order, WriteFailed, read_regular, replace
from handaxe.disk.early_sync import begin_sync
from handaxe.disk.lines import LineLog, LogFailed, scan

pytestmark = pytest.mark.skipif(
    early_sync._library() is None, reason="the C library has no aio_fsync"
)


class Failing:
    """A sync that was begun and fails."""

    def __init__(self, *_: object, **__: object) -> None:
        self.fd = -1

    def wait(self) -> None:
        raise OSError(errno.EIO, "input/output error")


@pytest.mark.parametrize("content_only", [True, False])
def test_a_begun_sync_ends(place: Path, content_only: bool):
    with (place / "a").open("wb", buffering=0) as file:
        file.write(b"x")
        sync = begin_sync(file.fileno(), content_only=content_only)
        assert sync is not None
        sync.wait()

    assert not early_sync._on_their_way


def test_a_sync_that_cannot_work_says_so_at_its_end():
    reading, writing = os.pipe()
    sync = begin_sync(writing)
    assert sync is not None
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        sync.wait()
    os.close(reading)
    os.close(writing)


def test_what_is_no_descriptor_is_left_to_the_ordinary_sync():
    assert begin_sync(100_000) is None


def _sync_in_a_child(path: str) -> None:
    log = LineLog(path)
    log.append(b"1")
    log.begin_sync()
    log.sync()
    log.close()


def test_a_forked_child_does_not_wait_for_threads_it_does_not_have(place: Path):
    _sync_in_a_child(str(place / "parent"))

    child = get_context("fork").Process(target=_sync_in_a_child, args=(str(place / "child"),))
    child.start()
    child.join(30)

    assert child.exitcode == 0


def test_a_log_waits_for_what_it_has_begun_and_for_what_came_after(place: Path, monkeypatch):
    synced: list[int] = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd)))
    log = LineLog(place / "log")
    log.append(b"1")
    log.sync()
    synced.clear()
    log.append(b"2")
    log.begin_sync()
    log.append(b"3")

    log.sync()
    log.sync()

    assert synced[-1:] == [(place / "log").stat().st_size]
    assert len(synced) <= 2
    log.close()
    assert [record.payload for record in scan(place / "log")] == [b"1", b"2", b"3"]


def test_a_begun_sync_that_failed_is_final_for_the_log(place: Path, monkeypatch):
    log = LineLog(place / "log")
    log.append(b"1")
    monkeypatch.setattr(early_sync, "begin_sync", Failing)
    log.begin_sync()

    for _ in range(2):
        with pytest.raises(LogFailed, match="input/output error"):
            log.sync()
    with pytest.raises(LogFailed):
        log.append(b"2")
    log.close()


def test_a_log_holds_no_descriptor_after_it_is_closed(place: Path):
    before = os.listdir("/proc/self/fd")
    for number in range(20):
        log = LineLog(place / f"log{number}")
        log.append(b"1")
        log.begin_sync()
        log.close()

    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_whatever_must_be_durable_before_comes_before_directories_and_names(place: Path):
    seen: list[list[str]] = []
    before = Order(lambda: seen.append(sorted(os.listdir(place))))

    replace(place / "d" / "a", [b"x"], expect=ABSENT, make_parents=True, order=before)

    assert seen[0] == []
    seen.clear()
    replace(place / "d" / "a", [b"y"], expect=None, order=Order(lambda: seen.append(
        [(place / "d" / "a").read_text()])))  # fmt: skip
    assert seen == [["x"]]


@pytest.mark.parametrize("name", ["a", "new", "d/e/new"])
def test_what_comes_before_may_stop_the_change_and_nothing_stays(place: Path, name: str):
    (place / "a").write_bytes(b"old")

    def refuse() -> None:
        raise RuntimeError("not durable")

    with pytest.raises(RuntimeError):
        replace(place / name, [b"x"], expect=None, make_parents=True, order=Order(refuse))

    assert os.listdir(place) == ["a"]
    assert (place / "a").read_bytes() == b"old"


def test_writing_in_place_waits_as_well(place: Path):
    (place / "a").write_bytes(b"old")
    os.link(place / "a", place / "twin")
    seen: list[bytes] = []
    from handaxe.disk.in_place import InPlaceJournal

    replace(
        place / "a",
        [b"new"],
        expect=None,
        journal=InPlaceJournal(place / "journal"),
        order=Order(lambda: seen.append((place / "twin").read_bytes())),
    )

    assert seen == [b"old"]
    assert (place / "twin").read_bytes() == b"new"


def test_a_late_name_is_waited_for_by_whoever_asked_for_it(place: Path):
    late: list[order.LateName] = []

    version = replace(place / "a", [b"x"], expect=ABSENT, order=Order(late_names=late))

    assert read_regular(place / "a") == (b"x", version)
    assert [name.path for name in late] == [str(place / "a")]
    # The lock of the directory is free again, whatever is still on its way.
    replace(place / "b", [b"y"], expect=ABSENT)
    late[0].wait()


def test_a_late_name_that_fails_says_that_the_content_is_there(place: Path, monkeypatch):
    late: list[order.LateName] = []
    monkeypatch.setattr(order, "begin_sync", Failing)
    replace(place / "a", [b"x"], expect=ABSENT, order=Order(late_names=late))

    with pytest.raises(WriteFailed) as caught:
        late[0].wait()

    assert caught.value.applied
    assert (place / "a").read_bytes() == b"x"


def test_without_the_library_everything_is_synced_at_once(place: Path, monkeypatch):
    monkeypatch.setattr(order, "begin_sync", lambda _fd: None)
    late: list[order.LateName] = []

    replace(place / "a", [b"x"], expect=ABSENT, order=Order(late_names=late))

    assert late == []
