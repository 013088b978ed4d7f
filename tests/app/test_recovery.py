"""What a killed process leaves, and the next session of the project that works on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.disk.locks import LockTimeout, hold
from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import LOG_NAME
from handaxe.undo.journal_files.liveness import LivenessFile, get_liveness_directory

pytestmark = pytest.mark.proves("SS-4")

LARGE = "line\n" * 40_000
"""Kept by a second name, since it is too large for the journal."""
KILLED = """
import asyncio, os, signal, sys
from handaxe import Session
from handaxe.disk import temp_files

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def main(project, tool, given):
    async with Session(project, permission_mode="acceptEdits") as session:
        if tool == "Edit":
            await session.call("Read", file_path=given["file_path"], limit=1)
        temp_files.rename_over = temp_files.rename_new = die
        await session.call(tool, given)

asyncio.run(main(sys.argv[1], sys.argv[2], eval(sys.argv[3])))
"""


def kill_at_rename(project: Path, tool: str, **given: str) -> None:
    """Make a change in a process that is killed when the new content is to get its name."""
    command = [sys.executable, "-c", KILLED, str(project), tool, repr(given)]
    assert subprocess.run(command, check=False).returncode == -9


def names(place: Path) -> list[str]:
    return sorted(os.listdir(place)) if place.exists() else []


async def edit(project: Path, old: str, new: str) -> str:
    async with Session(project, permission_mode="acceptEdits") as session:
        await session.call("Read", file_path="big.txt", offset=1, limit=2)
        result = await session.call(
            "Edit", file_path="big.txt", old_string=old, new_string=new, replace_all=False
        )
        return "" if result.ok else result.text


@pytest.fixture
def killed(project):
    (project / "big.txt").write_text(LARGE + "the end\n")
    subprocess.run(["git", "init", "-q", project], check=True)
    subprocess.run(["git", "-C", project, "add", "."], check=True)
    kill_at_rename(
        project, "Edit", file_path="big.txt", old_string="the end\n", new_string="an end\n"
    )
    assert [name for name in names(project) if name.startswith(".handaxe-")]
    return project


async def test_after_a_kill_at_the_rename_the_next_session_edits_and_undoes(killed):
    assert await edit(killed, "the end\n", "my end\n") == ""
    big = killed / "big.txt"
    assert big.read_text() == LARGE + "my end\n"
    async with Session(killed) as session:
        assert session.warnings == ()
    done = subprocess.run(
        [sys.executable, "-m", "handaxe", "undo", "--root", killed],
        capture_output=True,
        check=False,
    )
    assert b"big.txt" in done.stdout
    assert big.read_text() == LARGE + "the end\n"


async def test_the_next_session_removes_what_git_status_would_show(killed):
    async with Session(killed):
        assert names(killed) == [".git", "big.txt"]
        # The content that nobody needs any more has no second name either.
        assert (killed / "big.txt").stat().st_nlink == 1
        assert names(get_liveness_directory(find_data_home())) == []


async def test_a_session_of_another_project_leaves_the_rest_of_a_killed_one_alone(killed, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    before = names(killed)
    async with Session(tmp_path / "elsewhere"):
        assert names(killed) == before
    async with Session(killed / ".."):
        assert names(killed) == [".git", "big.txt"]


async def test_they_go_also_while_a_session_lives_that_is_older_than_the_kill(killed):
    alive = LivenessFile(find_data_home(), "somebody")
    alive.hold()
    for file in get_liveness_directory(find_data_home()).iterdir():
        os.utime(file, (1, 1))
    async with Session(killed):
        assert names(killed) == [".git", "big.txt"]
    alive.drop()


async def test_temporary_files_of_a_living_writer_stay(killed):
    alive = LivenessFile(find_data_home(), "somebody")
    alive.hold()
    theirs = killed / f".handaxe-{'0' * 16}.late.tmp"
    theirs.write_text("theirs")
    async with Session(killed):
        assert names(killed) == [".git", theirs.name, "big.txt"]
    alive.drop()


async def test_a_pin_of_another_living_session_is_no_hard_link_outside(project):
    (project / "big.txt").write_text(LARGE + "the end\n")
    pins = find_data_home() / "pins"
    info = (project / "big.txt").stat()
    pins.mkdir(parents=True)
    os.link(project / "big.txt", pins / f"{info.st_dev:x}-{info.st_ino:x}-{'0' * 12}-{'1' * 12}")
    assert await edit(project, "the end\n", "my end\n") == ""


async def test_a_hard_link_outside_is_still_found_beside_kept_content(project, tmp_path):
    big = project / "big.txt"
    big.write_text(LARGE + "the end\n")
    os.link(big, tmp_path / "outside")
    pins = find_data_home() / "pins"
    info = big.stat()
    pins.mkdir(parents=True)
    # Of the same name, and a copy by now: it is no name of the file.
    (pins / f"{info.st_dev:x}-{info.st_ino:x}-{'0' * 12}-{'1' * 12}").write_text("copy")
    assert "hard link" in await edit(project, "the end\n", "my end\n")
    assert (tmp_path / "outside").read_text() == LARGE + "the end\n"


async def test_a_new_file_that_got_no_name_leaves_nothing(project):
    kill_at_rename(project, "Write", file_path="deep/new.txt", content="new")
    async with Session(project) as session:
        assert names(project / "deep") == []
        assert session.history() == []


async def test_while_a_session_works_others_know_and_afterwards_not(session, project):
    assert (await session.call("Write", file_path="a.txt", content="a")).ok
    (name,) = names(get_liveness_directory(find_data_home()))
    assert name.startswith(f"{session.id}.")
    with (
        (get_liveness_directory(find_data_home()) / name).open() as file,
        pytest.raises(LockTimeout),
    ):
        hold(file.fileno(), wait_s=0)
    await session.close()
    assert names(get_liveness_directory(find_data_home())) == []


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda lines: [*lines[:-1], lines[-1][:20]], "the last record broke off after 20 bytes"),
        (lambda lines: [*lines[:2], b"{spoilt\n", *lines[3:]], "line 3: "),
        (lambda lines: [*lines[:2], *lines[3:]], "record 3 was expected here, not 4"),
    ],
)
async def test_what_was_dropped_of_a_damaged_log_is_a_warning(project: Path, harm, said):
    (project / "a.txt").write_text("hello\n")
    async with Session(project, session_id="s") as session:
        await session.call("Read", file_path="a.txt")
    log = find_data_home() / "sessions" / "s" / LOG_NAME
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(harm(lines)))
    harmed = log.read_bytes()
    async with Session(project, session_id="s") as session:
        (warning,) = session.warnings
        assert said in warning
        assert (await session.call("Read", file_path="a.txt")).ok
    log.write_bytes(harmed)
    words = [sys.executable, "-m", "handaxe", "tools", "--root", project, "--session-id", "s"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "warning: The log of this session was damaged." in shown.stderr
    assert said in shown.stderr
    async with Session(project, session_id="other") as session:
        assert session.warnings == ()
