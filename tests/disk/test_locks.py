import fcntl
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from crowd import count_up
from tests.waiting import HANG_S, blocked_until

from handaxe.disk import locks
from handaxe.disk.atomic import ABSENT, VersionChanged, read_regular, replace


def test_a_lock_is_had_once_and_given_back(place: Path):
    first, second = (os.open(place, os.O_RDONLY) for _ in range(2))
    try:
        assert locks.hold(first)
        with pytest.raises(locks.LockTimeout):
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


def _queue(fd: int, start: int = 0, end: int = 0) -> list[int]:
    """The places of all who wait for the lock of a directory, in order."""
    if end and start >= end:
        return []
    asked = struct.pack("hhqqi", fcntl.F_WRLCK, 0, start, end - start if end else 0, 0)
    kind, _, found, _, _ = struct.unpack("hhqqi", fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))
    if kind == fcntl.F_UNLCK:
        return []
    return [*_queue(fd, start, found), found, *_queue(fd, found + 1, end)]


def test_a_writer_that_takes_the_lock_again_at_once_lets_a_waiting_one_go_first(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(locks, "_MOST_IDLE_S", HANG_S)
    greedy, patient = (os.open(place, os.O_RDONLY) for _ in range(2))
    turns, is_over = [0], threading.Event()

    def take_again_and_again() -> None:
        while not is_over.is_set():
            locks.hold(greedy)
            turns[0] += 1
            time.sleep(0.002)
            locks.release(greedy)

    thread = threading.Thread(target=take_again_and_again)
    try:
        thread.start()
        for _ in range(5):
            soon_after = turns[0] + 3
            blocked_until(lambda at_least=soon_after: turns[0] >= at_least)
            before = turns[0]
            locks.hold(patient)
            # The turn that was under way, and one that began before the queue was seen.
            assert turns[0] - before <= 2
            locks.release(patient)
    finally:
        is_over.set()
        thread.join(HANG_S)
        os.close(greedy)
        os.close(patient)


def test_writers_get_the_lock_in_the_order_in_which_they_came(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(locks, "_MOST_IDLE_S", HANG_S)
    first, *others = fds = [os.open(place, os.O_RDONLY) for _ in range(6)]
    served: list[int] = []

    def wait_for_turn(fd: int) -> None:
        locks.hold(fd)
        served.append(fd)
        locks.release(fd)

    try:
        locks.hold(first)
        with ThreadPoolExecutor(len(others)) as pool:
            for number, fd in enumerate(others):
                pool.submit(wait_for_turn, fd)
                blocked_until(lambda waiting=number + 1: len(_queue(first)) == waiting)
            locks.release(first)
        assert served == others
        assert _queue(first) == []
    finally:
        for fd in fds:
            os.close(fd)


def test_who_gives_up_leaves_the_queue(place: Path):
    first, second = (os.open(place, os.O_RDONLY) for _ in range(2))
    try:
        locks.hold(first)
        with pytest.raises(locks.LockTimeout):
            locks.hold(second, wait_s=0.01)
        assert _queue(first) == []
    finally:
        os.close(first)
        os.close(second)


def test_a_process_that_is_stopped_while_it_waits_stops_nobody_behind_it(place: Path):
    first, second = (os.open(place, os.O_RDONLY) for _ in range(2))
    program = (
        "import os, sys; from handaxe.disk import locks;"
        "locks.hold(os.open(sys.argv[1], os.O_RDONLY), wait_s=float(sys.argv[2]))"
    )
    locks.hold(first)
    with subprocess.Popen([sys.executable, "-c", program, place, str(HANG_S)]) as other:
        try:
            blocked_until(lambda: len(_queue(first)) == 1)
            other.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
            locks.release(first)
            for _ in range(3):
                assert locks.hold(second)
                locks.release(second)
            assert len(_queue(first)) == 1
            other.send_signal(signal.SIGCONT)
            assert other.wait(HANG_S) == 0
        finally:
            other.kill()
            os.close(first)
            os.close(second)


def test_shared_locks_keep_only_an_exclusive_one_out(place: Path):
    fds = [os.open(place, os.O_RDONLY) for _ in range(3)]
    try:
        assert locks.hold(fds[0], shared=True)
        assert locks.hold(fds[1], shared=True, wait_s=0)
        with pytest.raises(locks.LockTimeout):
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
        with pytest.raises(locks.LockTimeout):
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
    except VersionChanged:
        return False
    return True


def test_of_many_creators_exactly_one_wins(place: Path):
    for number in range(10):
        path = str(place / f"{number}" / "a" / "b")
        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(_create, [path] * 8)) == [False] * 7 + [True]
