import hashlib
import os
import socket
import threading
from pathlib import Path

import pytest

from handaxe.disk.atomic import (
    ABSENT,
    NotRegularFile,
    SizeLimitExceeded,
    UnexpectedSymlink,
    Version,
    read_regular,
    read_version,
)
from handaxe.disk.safe_open import stat_without_links


def test_reading_gives_the_bytes_and_their_version(place: Path):
    file = place / "a.txt"
    file.write_bytes(b"hello")
    file.chmod(0o640)

    data, version = read_regular(file)

    info = file.stat()
    assert data == b"hello"
    assert version == Version(
        digest=hashlib.sha256(b"hello").hexdigest(),
        size_bytes=5,
        mtime_ns=info.st_mtime_ns,
        mode=0o640,
        dev=info.st_dev,
        ino=info.st_ino,
        nlink=1,
    )
    assert read_version(file) == version


@pytest.mark.parametrize("size", [0, 1, 4095, 1 << 20, (1 << 20) + 1, 3_000_000])
def test_every_size_is_read_and_hashed_whole(place: Path, size: int):
    file = place / "a"
    content = os.urandom(size)
    file.write_bytes(content)

    data, version = read_regular(file, max_bytes=size)

    assert data == content
    assert read_version(file) == version
    assert version.digest == hashlib.sha256(content).hexdigest()


def test_a_missing_file_is_absent(place: Path):
    assert read_version(place / "nothing") == ABSENT
    with pytest.raises(FileNotFoundError):
        read_regular(place / "nothing")


def test_a_file_over_the_limit_is_refused_without_reading_it(place: Path):
    file = place / "sparse"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)

    with pytest.raises(SizeLimitExceeded) as refused:
        read_regular(file, max_bytes=1 << 30)

    assert refused.value.size_bytes == 1 << 40


def test_only_regular_files_are_read_and_nothing_waits(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    fifo = place / "fifo"
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(place)
        listener.bind("socket")

    kinds: dict[str, str] = {}
    for path in (fifo, place / "socket", place, Path("/dev/zero"), Path("/proc/kmsg")):
        with pytest.raises(NotRegularFile) as refused:
            read_regular(path)
        kinds[path.name] = refused.value.kind

    assert kinds == {
        "fifo": "FIFO",
        "socket": "socket",
        place.name: "directory",
        "zero": "character device",
        "kmsg": "kernel file",
    }


def test_a_waiting_writer_of_a_fifo_is_not_woken(place: Path):
    fifo = place / "fifo"
    os.mkfifo(fifo)
    woken = threading.Event()

    def write() -> None:
        with fifo.open("wb"):
            woken.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(NotRegularFile):
        read_regular(fifo)
    assert not woken.is_set()
    with fifo.open("rb"):
        writer.join(5)


def test_a_link_in_any_part_of_the_path_is_refused(place: Path):
    real = place / "real"
    real.mkdir()
    (real / "a").write_bytes(b"x")
    (place / "link").symlink_to(real)
    (real / "b").symlink_to("a")

    for path in (place / "link" / "a", real / "b"):
        with pytest.raises(UnexpectedSymlink):
            read_regular(path)


def test_odd_spellings_of_a_real_path_are_read(place: Path, monkeypatch: pytest.MonkeyPatch):
    (place / "d").mkdir()
    (place / "d" / "a").write_bytes(b"x")
    monkeypatch.chdir(place)

    for path in (f"{place}//d/./a", f"{place}/d/../d/a", "d/a"):
        assert read_regular(path)[0] == b"x"


def test_names_of_any_bytes_are_read(place: Path):
    path = os.fsdecode(os.fsencode(place) + b"/\xff\xfe \n(deleted)")
    Path(path).write_bytes(b"x")

    assert read_regular(path)[0] == b"x"


def test_equal_content_is_the_same_whatever_its_times(place: Path):
    file = place / "a"
    file.write_bytes(b"x")
    before = read_version(file)
    os.utime(file, ns=(1, 1))
    file.chmod(0o600)
    after = read_version(file)

    assert isinstance(before, Version)
    assert before != after
    assert before.has_same_content(after)
    assert not before.has_same_content(ABSENT)


def test_a_status_is_given_only_where_no_link_is_on_the_way(place: Path):
    (place / "file").write_bytes(b"12")
    (place / "to-file").symlink_to("file")
    (place / "below").mkdir()
    (place / "to-below").symlink_to("below")
    (place / "below" / "inner").write_bytes(b"123")
    os.mkfifo(place / "fifo")

    seen = stat_without_links(str(place / "file"))
    assert seen is not None
    assert seen.st_ino == (place / "file").stat().st_ino
    assert stat_without_links(str(place / "fifo")) is not None
    assert stat_without_links(str(place)) is not None
    for name in ("to-file", "to-below", "to-below/inner", "to-below/missing", "missing/deeper"):
        assert stat_without_links(str(place / name)) is None, name
    for name in ("missing", "below/missing"):
        with pytest.raises(FileNotFoundError):
            stat_without_links(str(place / name))
