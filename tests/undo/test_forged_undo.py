"""The undo record is not believed blindly: forged, foreign, damaged and shared data directories."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import pty
import stat
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from handaxe import Session
from handaxe.contract.faults import SetupError
from handaxe.disk.append_log import LineLog, scan
from handaxe.disk.private import find_shared_access
from handaxe.frontends.cli.main import run
from handaxe.storage.home import find_data_home
from handaxe.undo.journal_files.records import (
    AfterRecord,
    BeforeRecord,
    JournalStart,
    PathState,
    TrackedRecord,
    encode,
)
from handaxe.undo.path_state import read_state

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def data() -> Path:
    """The data directory of the test."""
    return Path(os.environ["HANDAXE_HOME"])


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of the user's that lies in no project."""
    path = tmp_path / "elsewhere" / "victim"
    path.parent.mkdir()
    path.write_text("dear to me\n")
    return path


def forge(data: Path, *records: JournalStart | BeforeRecord | AfterRecord | TrackedRecord) -> Path:
    """What anybody can write who knows the format: checksums need no secret."""
    directory = data / "sessions" / "forged"
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    log = LineLog(directory / "journal.jsonl")
    for record in records:
        log.append(encode(record))
    log.close()
    (directory / "journal.lock").touch(mode=0o600)
    return directory


def forged_change(found: PathState, left: PathState) -> tuple[BeforeRecord, AfterRecord]:
    at = time.time()
    return BeforeRecord("c1", "Write", at, (found,)), AfterRecord("c1", at, (left,))


def file_state(path: Path, content: bytes) -> PathState:
    digest = hashlib.sha256(content).hexdigest()
    return PathState(
        str(path), "file", digest=digest, size_bytes=len(content), mode=0o644, content=content
    )


def undo(project: Path, capsys, *words: str) -> tuple[int, str]:
    code = run(["undo", "--root", str(project), *words])
    out = capsys.readouterr()
    return code, out.out + out.err


@pytest.mark.proves("SS-4")
@pytest.mark.parametrize("root", ["PROJECT", "/"])
def test_a_forged_record_creates_and_deletes_nothing_elsewhere(
    project, data, victim, capsys, root, tmp_path
):
    claimed = str(project) if root == "PROJECT" else root
    planted = tmp_path / "elsewhere" / "planted"
    forge(
        data,
        JournalStart("forged", claimed),
        *forged_change(file_state(planted, b"evil\n"), PathState(str(planted), "absent")),
    )
    code, text = undo(project, capsys)
    assert (code, str(planted) in text, planted.exists()) == (3, True, False)
    assert "--outside" in text
    forge(data, *forged_change(PathState(str(victim), "absent"), read_state(str(victim))[0]))
    code, text = undo(project, capsys, "--json")
    assert json.loads(text)["code"] == "undo.outside"
    assert json.loads(text)["data"]["paths"] == [str(victim)]
    assert victim.exists()
    assert undo(project, capsys, "--outside")[0] == 0
    assert not victim.exists()


def test_a_forged_record_plants_no_hook_in_the_project(project, data, capsys):
    hook = project / ".git/hooks/post-commit"
    hook.parent.mkdir(parents=True)
    forge(
        data,
        JournalStart("forged", str(project)),
        *forged_change(file_state(hook, b"#!/bin/sh\n"), PathState(str(hook), "absent")),
    )
    assert undo(project, capsys)[0] == 3
    assert not hook.exists()


def test_a_link_in_the_project_leads_no_undo_elsewhere(project, data, victim, capsys):
    (project / "way").symlink_to(victim.parent)
    place = project / "way" / victim.name
    state = msgspec.structs.replace(read_state(str(victim))[0], path=str(place))
    forge(
        data,
        JournalStart("forged", str(project)),
        *forged_change(PathState(str(place), "absent"), state),
    )
    assert undo(project, capsys)[0] == 3
    assert victim.exists()


@pytest.mark.parametrize("trick", ["manifest", "pin"])
def test_a_forged_record_of_a_crash_removes_nothing(project, data, victim, capsys, trick):
    """Found while undo was looked into: a look at the history was enough."""
    at = time.time()
    (data / "pins" / "1-1-").mkdir(parents=True, mode=0o700)
    climbing = f"pin:1-1-/{'../' * 12}{victim}"
    records = {
        "manifest": TrackedRecord(
            "c1", "Bash", at, (os.fsencode(project),), os.fsencode(victim), 10
        ),
        "pin": BeforeRecord(
            "c1", "Write", at, (PathState(str(project / "x"), "absent", kept=climbing),)
        ),
    }
    forge(data, JournalStart("forged", str(project)), records[trick])
    run(["history", "--root", str(project)])
    capsys.readouterr()
    assert victim.read_text() == "dear to me\n"


def test_a_forged_entry_for_writing_in_place_is_left_alone(project, data, victim):
    directory = data / "in-place"
    directory.mkdir(mode=0o700)
    header = {
        "path": base64.b64encode(os.fsencode(victim)).decode(), "old_digest": hashlib.sha256(b"evil").hexdigest(),
        "new_digest": "0" * 64, "ino": victim.stat().st_ino,
    }  # fmt: skip
    (directory / "ab.pre-image").write_bytes(json.dumps(header).encode() + b"\nevil")
    Session(project)
    assert victim.read_text() == "dear to me\n"


def changed(project: Path) -> Path:
    """The journal of a session that has written a file."""

    async def write() -> str:
        async with Session(project, permission_mode="acceptEdits") as session:
            assert (await session.call("Write", file_path="a.txt", content="new\n")).ok
            return session.id

    return Path(os.environ["HANDAXE_HOME"]) / "sessions" / asyncio.run(write()) / "journal.jsonl"


def without_seals(journal: Path) -> None:
    """As an older version wrote it."""
    records = [json.loads(line.payload) for line in scan(journal)]
    assert all(len(record.pop("seal")) == 64 for record in records)
    journal.unlink()
    log = LineLog(journal)
    for record in records:
        log.append(json.dumps(record, separators=(",", ":")).encode())
    log.close()


def test_older_records_without_a_seal_are_undone_in_their_project(project, capsys):
    without_seals(changed(project))
    assert undo(project, capsys)[0] == 0
    assert not (project / "a.txt").exists()


def test_a_seal_is_for_one_session_and_one_record(project, capsys, victim, data):
    journal = changed(project)
    lines = [line.payload for line in scan(journal)]
    other = data / "sessions" / "copied"
    other.mkdir(mode=0o700)
    log = LineLog(other / "journal.jsonl")
    for line in lines:
        log.append(line.replace(os.fsencode(project / "a.txt"), os.fsencode(victim)))
    log.close()
    code, text = undo(project, capsys, "--session-id", "copied", "--force")
    assert (code, str(victim) in text) == (3, True)
    assert "not written by you" in text


def test_a_store_that_brings_its_own_key_is_not_believed(project, monkeypatch, capsys, victim):
    """A repository may hold a data directory, and a variable may point there."""
    brought = project / ".data"
    brought.mkdir(mode=0o700)
    (brought / "undo-key").write_bytes(b"k" * 32)
    (brought / "undo-key").chmod(0o600)
    monkeypatch.setenv("HANDAXE_HOME", str(brought))
    key = hmac.digest(b"k" * 32, b"journal of forged", "sha256")
    directory = brought / "sessions/forged"
    directory.mkdir(parents=True, mode=0o700)
    log = LineLog(directory / "journal.jsonl")
    change = forged_change(PathState(str(victim), "absent"), read_state(str(victim))[0])
    for record in (JournalStart("forged", str(project)), *change):
        payload = encode(record)
        seal = hmac.digest(key, payload, "sha256").hex().encode()
        log.append(payload[:-1] + b',"seal":"' + seal + b'"}')
    log.close()
    code, text = undo(project, capsys)
    assert (code, "not written by you" in text) == (3, True)
    assert victim.exists()


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_data_directory_that_others_can_write_is_refused(project, data, mode):
    data.chmod(mode)
    with pytest.raises(SetupError, match="can be written by other users"):
        Session(project)
    with pytest.raises(SetupError, match="HANDAXE_HOME"):
        find_data_home()


@pytest.mark.parametrize("place", ["journal.jsonl", "", ".."])
def test_a_record_that_others_can_write_is_refused(project, capsys, place):
    journal = changed(project)
    shared = journal.parent / place
    shared.chmod(0o777)
    code, text = undo(project, capsys)
    assert (code, "can be written by other users" in text) == (2, True)
    assert (project / "a.txt").exists()
    assert run(["gc"]) == 2
    assert run(["history", "--root", str(project)]) == 2
    Session(project, session_id=journal.parent.name)


@as_root
@pytest.mark.parametrize("place", ["journal.jsonl", "", "..", "../.."])
def test_root_obeys_no_record_of_another_user(project, capsys, place):
    """Found: root put back what somebody else's journal said."""
    journal = changed(project)
    os.chown(journal.parent / place, NOBODY, NOBODY)
    code, text = undo(project, capsys)
    assert (code, f"another user (uid {NOBODY})" in text) == (2, True)
    assert (project / "a.txt").exists()


@as_root
def test_an_ordinary_user_obeys_no_record_of_root():
    os.seteuid(NOBODY)
    try:
        told = find_shared_access("/etc")
    finally:
        os.seteuid(0)
    assert told == "/etc belongs to another user (uid 0)"


def test_a_link_of_the_users_own_may_lead_to_the_data(project, tmp_path, capsys, monkeypatch):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("HANDAXE_HOME", str(tmp_path / "link"))
    changed(project)
    assert undo(project, capsys)[0] == 0


@as_root
def test_a_link_of_another_user_leads_nowhere(project, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    monkeypatch.setenv("HANDAXE_HOME", str(link))
    with pytest.raises(SetupError, match=r"the link .* belongs to another user"):
        Session(project)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_everything_is_the_owners_alone_whatever_the_umask(
    project, tmp_path, umask, monkeypatch, capsys
):
    home, own = tmp_path / "new" / "data", tmp_path / "own"
    monkeypatch.setenv("HANDAXE_HOME", str(home))
    monkeypatch.setenv("HANDAXE_CONFIG_HOME", str(own))
    before = os.umask(umask)
    try:
        assert run(["trust", str(project)]) == 0
        changed(project)
        call = ["call", "Bash", "command=echo x | tee y", "--root", str(project)]
        assert run([*call, "--permission-mode", "bypassPermissions"]) == 0
        assert undo(project, capsys)[0] == 0
    finally:
        os.umask(before)
    assert (own / "undo-key").stat().st_mode & 0o777 == 0o600
    for place in (home.parent, *home.parent.rglob("*"), own):
        mode = place.lstat().st_mode
        if not stat.S_ISLNK(mode) and "pins" not in place.parts:
            assert not mode & 0o077, (place, oct(mode))


@pytest.mark.parametrize(("answer", "is_gone"), [("n", False), ("y", True)])
async def test_a_person_is_shown_what_lies_outside_and_asked(project, tmp_path, answer, is_gone):
    outside = tmp_path / "outside"
    outside.mkdir()
    async with Session(project, permission_mode="bypassPermissions") as session:
        assert (await session.call("Write", file_path=str(outside / "f"), content="x")).ok
    near, far = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "handaxe", "undo"], cwd=project, stdin=far, stderr=far,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(far)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(near, 4096)
    os.write(near, f"{answer}\n".encode())
    assert process.wait(30) == (0 if is_gone else 3)
    os.close(near)
    assert os.fsencode(outside / "f") in shown
    assert (outside / "f").exists() is not is_gone


async def test_the_program_that_holds_a_session_may_undo_outside_what_it_sealed(project, tmp_path):
    place = tmp_path / "f"
    async with Session(project, permission_mode="bypassPermissions") as session:
        assert (await session.call("Write", file_path=str(place), content="x")).ok
        assert (await session.undo()).ok
    assert not place.exists()


def test_a_record_without_a_seal_gives_a_file_no_rights_of_its_owner(project, data, capsys):
    tool = project / "tool"
    state = msgspec.structs.replace(file_state(tool, b"x\n"), mode=0o6755)
    forge(
        data,
        JournalStart("forged", str(project)),
        *forged_change(state, PathState(str(tool), "absent")),
    )
    assert undo(project, capsys)[0] == 0
    assert tool.stat().st_mode & 0o7777 == 0o755
