"""Directories for a while: what killed processes left is removed, what is in use or not ours stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.expected_types import require

from handaxe.process import temp_dir
from handaxe.process.temp_dir import TempDirectory, remove_stale_directories

HOLDER = """
import sys, time
from handaxe.process.temp_dir import TempDirectory
held = TempDirectory("preview", sys.argv[1])
print(held.path, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def no_youth(monkeypatch):
    """A change of the clock cannot be had, so the limit is moved instead."""
    monkeypatch.setattr(temp_dir, "_NEW_S", -10.0)


def holder(place: Path) -> tuple[subprocess.Popen, Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place)], stdout=subprocess.PIPE, text=True
    )
    return process, Path(require(process.stdout).readline().strip())


def test_what_is_held_stays_and_what_a_killed_process_left_goes(tmp_path):
    process, place = holder(tmp_path)
    try:
        (place / "deep").mkdir()
        (place / "deep").chmod(0)
        assert remove_stale_directories(str(tmp_path)) == 0
        assert place.exists()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        require(process.stdout).close()
    assert remove_stale_directories(str(tmp_path)) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_young_one_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(temp_dir, "_NEW_S", 3600.0)
    (tmp_path / "handaxe-preview-x").mkdir()
    assert remove_stale_directories(str(tmp_path)) == 0


def test_a_link_and_other_names_stay(tmp_path):
    target = tmp_path / "mine"
    target.mkdir()
    (target / "file").write_text("x")
    (tmp_path / "handaxe-preview-x").symlink_to(target)
    (tmp_path / "handaxe-other-x").mkdir()
    assert remove_stale_directories(str(tmp_path)) == 0
    assert (target / "file").read_text() == "x"
    assert (tmp_path / "handaxe-other-x").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to give a directory away")
def test_what_belongs_to_somebody_else_stays(tmp_path):
    place = tmp_path / "handaxe-preview-x"
    place.mkdir()
    os.chown(place, 1000, 1000)
    assert remove_stale_directories(str(tmp_path)) == 0
    assert place.exists()


def test_a_directory_is_there_for_the_time_of_its_use(tmp_path):
    with TempDirectory("probe", str(tmp_path)) as scratch:
        Path(scratch.path, "file").write_text("x")
    assert list(tmp_path.iterdir()) == []
