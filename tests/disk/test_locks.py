import os
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from crowd import count_up
from tests.waiting import HANG_S

from handaxe.disk import locks
from handaxe.disk.atomic import ABSENT, Changed, read_regular, replace


def test_a_lock_is_had_once_and_given_back(place: Path):
    first, second = (os.open(place, os.O_RDONLY) for _ in range(2))
    try:
        assert locks.hold(first)
        with pytest.raises(locks.Locked):
            locks.hold(second, wait_s=0.01)
        locks.release(first)
        assert locks.hold(second)
    finally:
        os.close(first)
        os.close(second)


def test_a_waiter_gets_the_lock_soon_after_it_is_free(place: Path):
    first, second = (os.open(place, os.O_RDONLY) for _ in range(2))
    try:
        locks.hold(first)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(locks.hold, second)
            time.sleep(0.05)
            locks.release(first)
            assert waiting.result(HANG_S)
    finally:
        os.close(first)
        os.close(second)


def test_shared_locks_keep_only_an_exclusive_one_out(place: Path):
    fds = [os.open(place, os.O_RDONLY) for _ in range(3)]
    try:
        assert locks.hold(fds[0], shared=True)
        assert locks.hold(fds[1], shared=True, wait_s=0)
        with pytest.raises(locks.Locked):
            locks.hold(fds[2], wait_s=0.01)
    finally:
        for fd in fds:
            os.close(fd)


def test_a_descriptor_that_knows_no_locks_is_not_an_error(place: Path):
    fd = os.open(place, os.O_PATH)
    try:
        assert not locks.hold(fd)
    finally:
        os.close(fd)


def test_a_write_gives_up_when_the_directory_stays_locked(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(locks, "WAIT_S", 0.05)
    other = os.open(place, os.O_RDONLY)
    try:
        locks.hold(other)
        with pytest.raises(locks.Locked):
            replace(place / "a", [b"x"], expect=ABSENT)
    finally:
        os.close(other)
    assert os.listdir(place) == []


def test_no_update_is_lost_between_processes(place: Path):
    path = str(place / "count")
    replace(path, [b"0"], expect=ABSENT)

    with get_context("spawn").Pool(3) as pool:
        pool.starmap(count_up, [(path, 40)] * 3)

    assert read_regular(path)[0] == b"120"
    assert os.listdir(place) == ["count"]


def test_no_update_is_lost_between_threads(place: Path):
    path = str(place / "count")
    replace(path, [b"0"], expect=ABSENT)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count_up, [path] * 4, [25] * 4))

    assert read_regular(path)[0] == b"100"


def _create(path: str) -> bool:
    try:
        replace(path, [b"mine"], expect=ABSENT, make_parents=True)
    except Changed:
        return False
    return True


def test_of_many_creators_exactly_one_wins(place: Path):
    for number in range(10):
        path = str(place / f"{number}" / "a" / "b")
        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(_create, [path] * 8)) == [False] * 7 + [True]
