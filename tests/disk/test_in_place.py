import contextlib
import errno
import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest
from hostile_places import as_nobody, mounted

from handaxe.disk import locks
from handaxe.disk.atomic import (
    DiskWriteFailed,
    Intent,
    LockTimeout,
    NeedsJournal,
    VersionChanged,
    read_regular,
    read_version,
    replace,
)
from handaxe.undo.in_place import InPlaceJournal, RecoveredWrite, recover


def _twins(place: Path, content: bytes = b"old") -> tuple[Path, Path]:
    (place / "project").mkdir()
    file, twin = place / "project" / "a", place / "twin"
    file.write_bytes(content)
    os.link(file, twin)
    return file, twin


def test_a_hard_linked_file_is_written_in_place_under_a_journal(place: Path):
    file, twin = _twins(place)
    inode = file.stat().st_ino

    with pytest.raises(NeedsJournal) as refused:
        replace(file, [b"new content"], expect=None)
    assert refused.value.reason == "it has other hard links"
    assert twin.read_bytes() == b"old"

    version = replace(file, [b"new content"], expect=None, journal=InPlaceJournal(place / "j"))

    assert twin.read_bytes() == b"new content"
    assert file.stat().st_ino == inode
    assert version == read_version(file)
    assert os.listdir(place / "j") == ["lock"]
    assert os.listdir(file.parent) == ["a"]


def test_shrinking_and_growing_in_place_leaves_exactly_the_new_bytes(place: Path):
    file, twin = _twins(place, os.urandom(100_000))

    for size in (5, 0, 300_000, 299_999):
        content = os.urandom(size)
        replace(file, [content], expect=None, journal=InPlaceJournal(place / "j"))
        assert twin.read_bytes() == content


def test_in_place_compares_first_and_keeps_mode_and_attributes(place: Path):
    file, _ = _twins(place)
    file.chmod(0o4755)
    os.setxattr(file, "user.note", b"keep me")
    _, version = read_regular(file)
    journal = InPlaceJournal(place / "j")

    replace(file, [b"new"], expect=version, journal=journal)
    with pytest.raises(VersionChanged):
        replace(file, [b"newer"], expect=version, journal=journal)

    assert stat.S_IMODE(file.stat().st_mode) == 0o4755
    assert os.getxattr(file, "user.note") == b"keep me"
    assert replace(file, [b"n"], expect=None, mode=0o600, journal=journal).mode == 0o600


def test_a_mounted_file_is_written_in_place(place: Path):
    source, target = place / "source", place / "target"
    source.write_bytes(b"old")
    target.touch()
    with mounted(target, "--bind", str(source)):
        with pytest.raises(NeedsJournal) as refused:
            replace(target, [b"new"], expect=None)
        replace(target, [b"new"], expect=None, journal=InPlaceJournal(place / "j"))

        assert "mount point" in refused.value.reason
        assert source.read_bytes() == b"new"
    assert sorted(os.listdir(place)) == ["j", "source", "target"]


def test_a_writable_file_in_a_closed_directory_is_written_in_place(open_place: Path):
    closed = open_place / "closed"
    closed.mkdir()
    file = closed / "a"
    file.write_bytes(b"old")
    file.chmod(0o666)

    as_nobody(
        lambda: (
            replace(
                file, [b"new"], expect=None, journal=InPlaceJournal(open_place / "j")
            ).size_bytes
        )
    )

    assert file.read_bytes() == b"new"
    assert file.stat().st_uid == 0


def test_a_disk_that_is_too_small_leaves_the_file_and_its_time_as_they_were(
    place: Path, small_disk: Path
):
    file = small_disk / "a"
    file.write_bytes(b"old" * 1000)
    os.utime(file, ns=(1_000_000_000, 1_000_000_000))
    os.link(file, small_disk / "twin")

    with pytest.raises(DiskWriteFailed) as failed:
        replace(file, [bytes(500_000)], expect=None, journal=InPlaceJournal(place / "j"))

    assert failed.value.errno == errno.ENOSPC
    assert not failed.value.damaged
    assert file.read_bytes() == b"old" * 1000
    assert file.stat().st_mtime_ns == 1_000_000_000
    assert os.listdir(place / "j") == ["lock"]


def test_a_journal_that_cannot_be_kept_means_no_write(place: Path, small_disk: Path):
    file, twin = _twins(place, bytes(300_000))

    with pytest.raises(DiskWriteFailed) as failed:
        replace(file, [b"new"], expect=None, journal=InPlaceJournal(small_disk / "j"))

    assert failed.value.errno == errno.ENOSPC
    assert twin.read_bytes() == bytes(300_000)


@contextlib.contextmanager
def _crash(place: Path, intent: Intent, half: bytes) -> Generator[None]:
    """A journal entry whose writer died after writing `half`."""
    with InPlaceJournal(place / "j")(intent):
        entry = next((place / "j").glob("*.pre-image"))
        kept = entry.read_bytes()
    Path(intent.path).write_bytes(half)
    entry.write_bytes(kept)
    yield


@pytest.mark.parametrize(
    ("half", "outcome", "after"),
    [
        (b"old content", "old", b"old content"),
        (b"new content!", "new", b"new content!"),
        (b"new content", "restored", b"old content"),
        (b"", "restored", b"old content"),
        (b"old content\0\0\0", "restored", b"old content"),
    ],
)
def test_recovery_makes_a_file_whole(place: Path, half: bytes, outcome: str, after: bytes):
    file, twin = _twins(place, b"old content")
    with _crash(place, _intent(file, b"old content", b"new content!"), half):
        found = recover(place / "j")

    assert [(result.path, result.outcome) for result in found] == [(str(file), outcome)]
    assert twin.read_bytes() == after
    kept = [path.read_bytes() for path in (place / "j").glob("*.found")]
    assert kept == ([half] if outcome == "restored" else [])
    assert recover(place / "j") == []


def test_recovery_leaves_a_file_alone_that_somebody_replaced(place: Path):
    file, _ = _twins(place, b"old content")
    with _crash(place, _intent(file, b"old content", b"new"), b"half"):
        file.unlink()
        file.write_bytes(b"a person's work")
        found = recover(place / "j")

    assert [result.outcome for result in found] == ["other"]
    assert file.read_bytes() == b"a person's work"
    kept = next((place / "j").glob("*.kept"))
    assert kept.read_bytes().endswith(b"\nold content")


def test_recovery_forgets_a_file_that_is_gone_and_reports_what_it_cannot_do(place: Path):
    file, twin = _twins(place, b"old content")
    with _crash(place, _intent(file, b"old content", b"new"), b"half"):
        file.unlink()
        assert recover(place / "j") == [RecoveredWrite(str(file), "gone")]
    (place / "j" / "0.pre-image").write_bytes(b"not an entry")

    assert [result.outcome for result in recover(place / "j")] == ["failed"]
    assert twin.read_bytes() == b"half"


def test_recovery_does_not_disturb_a_writer(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(locks, "WAIT_S", 0.05)
    file, _ = _twins(place)

    with InPlaceJournal(place / "j")(_intent(file, b"old", b"new")), pytest.raises(LockTimeout):
        recover(place / "j")


def test_there_is_nothing_to_recover_without_a_journal(place: Path):
    assert recover(place / "nowhere") == []
    assert os.listdir(place) == []


def _intent(file: Path, old: bytes, new: bytes) -> Intent:
    from hashlib import sha256

    digests = (sha256(old).hexdigest(), sha256(new).hexdigest())
    return Intent(str(file), old, *digests, file.stat().st_ino)
