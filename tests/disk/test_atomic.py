import errno
import os
import shutil
import socket
import stat
import subprocess
import threading
from multiprocessing import get_context
from pathlib import Path

import pytest
from crowd import limit_file_size, write_too_much
from hostile_places import NOBODY, as_nobody, mounted
from hypothesis import given
from hypothesis import strategies as st
from tests.holding import open_descriptors

from handaxe.disk import temp_files as renames
from handaxe.disk.atomic import (
    ABSENT,
    DiskWriteFailed,
    NeedsJournal,
    NotRegularFile,
    UnexpectedSymlink,
    Version,
    VersionChanged,
    delete,
    read_regular,
    read_version,
    remove_leftovers,
    replace,
    set_mode,
)
from handaxe.disk.content_writer import Content


def test_a_new_file_appears_with_its_version(place: Path):
    version = replace(place / "a.txt", [b"one ", memoryview(b"two")], expect=ABSENT)

    assert read_regular(place / "a.txt") == (b"one two", version)
    assert os.listdir(place) == ["a.txt"]


def test_an_old_file_is_replaced_if_it_is_the_expected_one(place: Path):
    first = replace(place / "a", [b"one"], expect=ABSENT)
    second = replace(place / "a", [b"two"], expect=first)

    assert read_regular(place / "a") == (b"two", second)
    assert os.listdir(place) == ["a"]


def test_touched_but_equal_content_is_replaced(place: Path):
    version = replace(place / "a", [b"one"], expect=ABSENT)
    os.utime(place / "a", ns=(1, 1))

    replace(place / "a", [b"two"], expect=version)

    assert (place / "a").read_bytes() == b"two"


@pytest.mark.parametrize("other", [b"two", b"three", b""])
def test_other_content_is_refused_and_reported(place: Path, other: bytes):
    version = replace(place / "a", [b"one"], expect=ABSENT)
    (place / "a").write_bytes(other)

    with pytest.raises(VersionChanged) as refused:
        replace(place / "a", [b"mine"], expect=version)

    assert refused.value.actual == read_version(place / "a")
    assert (place / "a").read_bytes() == other
    assert os.listdir(place) == ["a"]


def test_a_file_that_is_there_or_gone_against_expectation_is_refused(place: Path):
    version = replace(place / "a", [b"one"], expect=ABSENT)

    with pytest.raises(VersionChanged) as there:
        replace(place / "a", [b"x"], expect=ABSENT)
    with pytest.raises(VersionChanged) as gone:
        replace(place / "b", [b"x"], expect=version)

    assert there.value.actual == version
    assert gone.value.actual == ABSENT
    assert os.listdir(place) == ["a"]


def test_nothing_expected_takes_what_is_there(place: Path):
    replace(place / "a", [b"one"], expect=None)
    replace(place / "a", [b"two"], expect=None)

    assert (place / "a").read_bytes() == b"two"


@pytest.mark.parametrize("size", [1 << 19, (1 << 19) + 1, 5_000_000])
def test_big_content_is_checked_written_and_hashed_like_small(place: Path, size: int):
    old, new = os.urandom(size), os.urandom(size)
    (place / "a").write_bytes(old)
    _, version = read_regular(place / "a")

    after = replace(place / "a", [new[:1000], new[1000:]], expect=version)
    with pytest.raises(VersionChanged):
        replace(place / "a", [old], expect=version)

    assert read_regular(place / "a") == (new, after)
    assert os.listdir(place) == ["a"]


@given(st.lists(st.binary(max_size=40_000), max_size=12))
def test_pieces_are_written_hashed_and_compared_as_their_sum(pieces: list[bytes]):
    content = Content(pieces)
    whole = b"".join(pieces)
    fd = os.memfd_create("content")
    try:
        content.write_to(fd)
        assert os.pread(fd, len(whole) + 1, 0) == whole
        assert content.is_in(fd)
        assert content.digest() == Content([whole]).digest()
        if whole:
            os.pwrite(fd, bytes([whole[-1] ^ 1]), len(whole) - 1)
            assert not content.is_in(fd)
    finally:
        os.close(fd)


def test_thousands_of_pieces_are_written(place: Path):
    pieces = [b"%06d" % number for number in range(20_000)]

    replace(place / "a", pieces, expect=ABSENT)

    assert (place / "a").read_bytes() == b"".join(pieces)


def test_a_new_file_gets_the_mode_the_umask_leaves(place: Path):
    before = os.umask(0o027)
    try:
        version = replace(place / "a", [b"x"], expect=ABSENT)
    finally:
        os.umask(before)

    assert version.mode == 0o640
    assert replace(place / "b", [b"x"], expect=ABSENT, mode=0o600).mode == 0o600


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o644, 0o755, 0o4755, 0o2775, 0o777])
def test_the_mode_of_an_old_file_is_kept(place: Path, mode: int):
    (place / "a").write_bytes(b"x")
    (place / "a").chmod(mode)

    assert replace(place / "a", [b"y"], expect=None).mode == mode
    assert stat.S_IMODE((place / "a").stat().st_mode) == mode


def test_the_mode_can_be_changed_with_the_content(place: Path):
    (place / "a").write_bytes(b"x")

    assert replace(place / "a", [b"y"], expect=None, mode=0o4711).mode == 0o4711


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_owner_and_extended_attributes_are_kept(place: Path):
    file = place / "a"
    file.write_bytes(b"x")
    os.chown(file, 1234, 4321)
    file.chmod(0o6755)
    os.setxattr(file, "user.note", b"keep me")
    os.setxattr(file, "trusted.note", b"me too")

    replace(file, [b"y"], expect=None)

    info = file.stat()
    assert (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (1234, 4321, 0o6755)
    assert os.getxattr(file, "user.note") == b"keep me"
    assert os.getxattr(file, "trusted.note") == b"me too"


def _acl(*entries: tuple[int, int, int]) -> bytes:
    """A POSIX ACL as the kernel stores it: version 2, then tag, permissions, id."""
    body = b"".join(
        tag.to_bytes(2, "little") + permissions.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, permissions, who in entries
    )
    return (2).to_bytes(4, "little") + body


NO_ID = 0xFFFFFFFF
ACL = _acl((1, 6, NO_ID), (2, 4, 1234), (4, 4, NO_ID), (0x10, 4, NO_ID), (0x20, 0, NO_ID))


def test_an_acl_is_kept_and_none_is_caught_from_the_directory(place: Path):
    try:
        os.setxattr(place, "system.posix_acl_default", ACL)
    except OSError:
        pytest.skip("this file system has no ACLs")
    old = place / "old"
    old.write_bytes(b"x")
    os.removexattr(old, "system.posix_acl_access")
    listed = place / "listed"
    listed.write_bytes(b"x")
    os.setxattr(listed, "system.posix_acl_access", ACL)
    (place / "by kernel").write_bytes(b"x")

    replace(old, [b"y"], expect=None)
    replace(listed, [b"y"], expect=None)
    replace(place / "new", [b"y"], expect=ABSENT)

    assert "system.posix_acl_access" not in os.listxattr(old)
    assert os.getxattr(listed, "system.posix_acl_access") == ACL
    new, by_kernel = place / "new", place / "by kernel"
    assert new.stat().st_mode == by_kernel.stat().st_mode
    assert [os.getxattr(new, name) for name in os.listxattr(new)] == [
        os.getxattr(by_kernel, name) for name in os.listxattr(by_kernel)
    ]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give directories away")
def test_a_new_file_takes_the_group_of_a_set_group_directory(place: Path):
    os.chown(place, 0, 4321)
    place.chmod(0o2775)

    replace(place / "a", [b"x"], expect=ABSENT)
    replace(place / "d" / "b", [b"x"], expect=ABSENT, make_parents=True)

    assert (place / "a").stat().st_gid == 4321
    assert (place / "d" / "b").stat().st_gid == 4321


def test_missing_parents_are_made_only_if_asked_for(place: Path):
    with pytest.raises(DiskWriteFailed) as failed:
        replace(place / "x" / "y" / "a", [b"x"], expect=ABSENT)
    assert failed.value.errno == errno.ENOENT
    assert os.listdir(place) == []

    replace(place / "x" / "y" / "a", [b"x"], expect=ABSENT, make_parents=True)
    assert (place / "x" / "y" / "a").read_bytes() == b"x"


def test_parents_made_for_a_failed_write_are_removed(place: Path):
    version = replace(place / "a", [b"x"], expect=ABSENT)

    with pytest.raises(VersionChanged):
        replace(place / "x" / "y" / "z", [b"x"], expect=version, make_parents=True)
    with pytest.raises(DiskWriteFailed) as failed:
        replace(place / "x" / ("n" * 256), [b"x"], expect=ABSENT, make_parents=True)

    assert failed.value.reason == "could not open the file to compare it: the name is too long"
    assert os.listdir(place) == ["a"]


def test_a_file_in_the_place_of_a_parent_is_an_error(place: Path):
    (place / "a").write_bytes(b"x")

    for name in ("a/b", "a/b/c"):
        with pytest.raises(DiskWriteFailed) as failed:
            replace(place / name, [b"x"], expect=ABSENT, make_parents=True)
        assert failed.value.errno == errno.ENOTDIR


def test_a_link_is_refused_in_every_part_of_the_path(place: Path):
    outside = place / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(b"safe")
    project = place / "project"
    project.mkdir()
    (project / "dir").symlink_to(outside)
    (project / "file").symlink_to(outside / "a")
    (project / "dangling").symlink_to(outside / "b")

    for name in ("dir/a", "dir/new", "dir/x/y", "file", "dangling", "dangling/x"):
        for expect in (None, ABSENT):
            with pytest.raises(UnexpectedSymlink):
                replace(project / name, [b"evil"], expect=expect, make_parents=True)

    assert sorted(os.listdir(project)) == ["dangling", "dir", "file"]
    assert os.listdir(outside) == ["a"]
    assert (outside / "a").read_bytes() == b"safe"


def test_special_files_are_refused_and_left_alone(place: Path, monkeypatch: pytest.MonkeyPatch):
    os.mkfifo(place / "fifo")
    (place / "dir").mkdir()
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")

    for name in ("fifo", "dir", "socket", "/dev/null", "/dev/full"):
        for expect in (None, ABSENT):
            with pytest.raises(NotRegularFile):
                replace(place / name, [b"x"], expect=expect)

    assert sorted(os.listdir(place)) == ["dir", "fifo", "socket"]


@pytest.mark.parametrize("path", ["", "/", ".", "a/..", "a/", "nul\0"])
def test_a_path_that_names_no_file_is_refused(path: str):
    with pytest.raises(DiskWriteFailed):
        replace(path, [b"x"], expect=None)


def test_the_longest_names_and_any_bytes_in_them_work(place: Path):
    for raw in (b"n" * 255, b"\xff\xfe\n\t ", "ü".encode() * 127):
        path = os.fsdecode(os.fsencode(place) + b"/" + raw)
        version = replace(path, [b"x"], expect=ABSENT)
        replace(path, [b"y"], expect=version)
        assert read_regular(path)[0] == b"y"
    assert len(os.listdir(place)) == 3


def test_a_full_disk_changes_nothing_and_says_so(small_disk: Path):
    version = replace(small_disk / "a", [b"old"], expect=ABSENT, mode=0o640)

    for size in (300_000, 3_000_000):
        with pytest.raises(DiskWriteFailed) as failed:
            replace(small_disk / "a", [bytes(size)], expect=version)
        assert failed.value.errno == errno.ENOSPC
        assert (
            failed.value.reason
            == "could not write the temporary file: no space is left on the device"
        )
        assert not failed.value.applied

    assert read_regular(small_disk / "a") == (b"old", version)
    assert os.listdir(small_disk) == ["a"]


def test_a_disk_without_inodes_changes_nothing_and_says_so(small_disk: Path):
    version = replace(small_disk / "a", [b"old"], expect=ABSENT)
    for number in range(6):
        (small_disk / f"{number}").touch()

    for path in (small_disk / "a", small_disk / "new", small_disk / "x" / "new"):
        with pytest.raises(DiskWriteFailed) as failed:
            replace(path, [b"new"], expect=None, make_parents=True)
        assert failed.value.errno == errno.ENOSPC

    assert read_regular(small_disk / "a") == (b"old", version)
    assert len(os.listdir(small_disk)) == 7


def test_parents_are_removed_when_the_disk_fills_up_on_the_way(small_disk: Path):
    for number in range(5):
        (small_disk / f"{number}").touch()

    with pytest.raises(DiskWriteFailed):
        replace(small_disk / "x" / "y" / "z" / "a", [b"x"], expect=ABSENT, make_parents=True)

    assert sorted(os.listdir(small_disk)) == ["0", "1", "2", "3", "4"]


def test_a_size_limit_changes_nothing_and_says_so(place: Path):
    version = replace(place / "a", [b"old"], expect=ABSENT)

    with get_context("spawn").Pool(1, limit_file_size) as pool:
        reason, code = pool.apply(write_too_much, (str(place / "a"),))

    assert reason == "could not write the temporary file: the file would pass the size limit"
    assert code == errno.EFBIG
    assert read_regular(place / "a") == (b"old", version)
    assert os.listdir(place) == ["a"]


def test_a_read_only_file_system_says_so(place: Path):
    disk = place / "disk"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "tmpfs"):
        (disk / "a").write_bytes(b"x")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        for name in ("a", "new"):
            with pytest.raises(DiskWriteFailed) as failed:
                replace(disk / name, [b"y"], expect=None)
            assert "the file system is read-only" in failed.value.reason
        assert os.listdir(disk) == ["a"]


def test_an_immutable_file_says_so(place: Path):
    file = place / "a"
    file.write_bytes(b"x")
    if not shutil.which("chattr") or subprocess.run(["chattr", "+i", file], check=False).returncode:
        pytest.skip("files cannot be made immutable here")
    try:
        with pytest.raises(DiskWriteFailed) as failed:
            replace(file, [b"y"], expect=None)
        with pytest.raises(DiskWriteFailed) as not_deleted:
            delete(file, expect=None)
    finally:
        subprocess.run(["chattr", "-i", file], check=True)

    assert failed.value.reason == "could not write the file: it is marked immutable (chattr +i)"
    assert "immutable" in not_deleted.value.reason
    assert os.listdir(place) == ["a"]


def test_another_user_can_not_write_without_permission(open_place: Path):
    (open_place / "a").write_bytes(b"x")
    (open_place / "a").chmod(0o644)
    open_place.chmod(0o755)

    def write() -> list[str]:
        reasons: list[str] = []
        for name in ("a", "new"):
            with pytest.raises(DiskWriteFailed) as failed:
                replace(open_place / name, [b"y"], expect=None)
            reasons.append(failed.value.reason)
        return reasons

    assert as_nobody(write) == [
        "could not write the file: permission denied",
        "could not create the file: a file cannot be made beside it: permission denied",
    ]
    assert os.listdir(open_place) == ["a"]


def test_files_that_only_can_be_written_in_place_need_a_journal(open_place: Path):
    foreign = open_place / "foreign"
    foreign.write_bytes(b"x")
    foreign.chmod(0o666)
    closed = open_place / "closed"
    closed.mkdir()
    (closed / "a").write_bytes(b"x")
    (closed / "a").chmod(0o666)
    dark = open_place / "dark"
    dark.mkdir()
    (dark / "a").write_bytes(b"x")
    (dark / "a").chmod(0o666)
    dark.chmod(0o733)

    def write() -> list[str]:
        reasons: list[str] = []
        for path in (foreign, closed / "a", dark / "a"):
            with pytest.raises(NeedsJournal) as refused:
                replace(path, [b"y"], expect=None)
            reasons.append(refused.value.reason)
        return reasons

    assert as_nobody(write) == [
        "its owner cannot be given to a new file",
        "a file cannot be made beside it: permission denied",
        "its directory may not be read",
    ]
    assert sorted(os.listdir(open_place)) == ["closed", "dark", "foreign"]


def test_a_group_of_ones_own_is_kept_by_an_ordinary_user(open_place: Path):
    file = open_place / "a"
    file.write_bytes(b"x")
    os.chown(file, NOBODY, NOBODY)

    as_nobody(lambda: replace(file, [b"y"], expect=None).size_bytes)

    assert (file.stat().st_uid, file.stat().st_gid) == (NOBODY, NOBODY)


def test_a_file_that_appears_while_a_new_one_is_written_is_not_overwritten(place: Path):
    (place / "a").write_bytes(b"theirs")
    (place / "t").write_bytes(b"ours")
    fd = os.open(place, os.O_RDONLY)
    try:
        with pytest.raises(FileExistsError):
            renames.rename_new(fd, "t", "a")
        renames.rename_new(fd, "t", "b")
    finally:
        os.close(fd)

    assert (place / "a").read_bytes() == b"theirs"
    assert (place / "b").read_bytes() == b"ours"


def test_without_an_exclusive_rename_a_link_does_it(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(renames, "_load_exclusive_rename", lambda: None)

    replace(place / "a", [b"one"], expect=ABSENT)
    with pytest.raises(VersionChanged):
        replace(place / "a", [b"two"], expect=ABSENT)

    assert (place / "a").stat().st_nlink == 1
    assert os.listdir(place) == ["a"]


def test_descriptors_and_threads_do_not_pile_up(place: Path):
    def held() -> tuple[int, int]:
        return open_descriptors(), threading.active_count()

    descriptors, threads = held()
    big = bytes(600_000)
    for _ in range(20):
        version = replace(place / "a", [big], expect=None)
        replace(place / "x" / "y", [b"x"], expect=None, make_parents=True)
        for path, expect in ((place / "a", ABSENT), (place / "b", version), (place, None)):
            with pytest.raises((VersionChanged, NotRegularFile)):
                replace(path, [big], expect=expect, make_parents=True)
        delete(place / "a", expect=version)

    after = held()
    assert after[0] <= descriptors
    assert after[1] <= threads


def test_a_leftover_second_name_of_ours_is_no_hard_link(place: Path):
    replace(place / "a", [b"one"], expect=ABSENT)
    os.link(place / "a", place / ".handaxe-0123456789abcdef.tmp")

    replace(place / "a", [b"two"], expect=None)

    assert os.listdir(place) == ["a"]


def test_sweeping_removes_leftovers_and_nothing_else(place: Path):
    leftover = ".handaxe-0123456789abcdef.tmp"
    kept = [".handaxe-notours.tmp", "a.tmp", ".handaxe-0123456789ABCDEF.tmp"]
    for name in (leftover, *kept):
        (place / name).write_bytes(b"x")
    (place / ".handaxe-00000000000000d1.tmp").mkdir()

    assert remove_leftovers(place) == [leftover]
    assert sorted(os.listdir(place)) == sorted([*kept, ".handaxe-00000000000000d1.tmp"])


def test_sweeping_leaves_a_directory_alone_in_which_somebody_writes(place: Path):
    import fcntl

    (place / ".handaxe-0123456789abcdef.tmp").write_bytes(b"x")
    writer = os.open(place, os.O_RDONLY)
    fcntl.flock(writer, fcntl.LOCK_EX)
    try:
        assert remove_leftovers(place) == []
    finally:
        os.close(writer)
    assert remove_leftovers(place) == [".handaxe-0123456789abcdef.tmp"]


def test_deleting_compares_first(place: Path):
    version = replace(place / "a", [b"one"], expect=ABSENT)
    (place / "b").write_bytes(b"two")

    with pytest.raises(VersionChanged):
        delete(place / "b", expect=version)
    delete(place / "a", expect=version)
    with pytest.raises(VersionChanged) as gone:
        delete(place / "a", expect=version)

    assert gone.value.actual == ABSENT
    assert os.listdir(place) == ["b"]


def test_deleting_takes_only_regular_files(place: Path):
    (place / "dir").mkdir()
    (place / "link").symlink_to("dir")

    with pytest.raises(NotRegularFile):
        delete(place / "dir", expect=None)
    with pytest.raises(UnexpectedSymlink):
        delete(place / "link", expect=None)


def test_a_mode_can_be_set_and_taken_back(place: Path):
    replace(place / "a", [b"one"], expect=ABSENT)

    set_mode(place / "a", 0o4755)

    assert stat.S_IMODE((place / "a").stat().st_mode) == 0o4755
    with pytest.raises(DiskWriteFailed) as failed:
        set_mode(place / "b", 0o644)
    assert failed.value.errno == errno.ENOENT


def test_a_version_survives_json(place: Path):
    import msgspec

    version = replace(place / "a", [b"one"], expect=ABSENT)

    assert msgspec.json.decode(msgspec.json.encode(version), type=Version) == version
