"""A directory that nobody can stand in is told before a command is started there."""

import os

import pytest

from handaxe.shell.exec.command import find_cwd_problem


@pytest.fixture
def place(tmp_path):
    inner = tmp_path / "outer/inner"
    inner.mkdir(parents=True)
    yield inner
    for directory in (tmp_path / "outer", inner):
        if directory.exists():
            directory.chmod(0o755)


@pytest.mark.parametrize("is_confined", [True, False])
def test_an_open_directory_can_be_entered_and_a_missing_one_cannot(tmp_path, place, is_confined):
    (tmp_path / "file").touch()
    assert find_cwd_problem(str(place), is_confined=is_confined) is None
    assert find_cwd_problem(f"{place}/no", is_confined=is_confined) == "No such file or directory"
    assert find_cwd_problem(f"{tmp_path}/file", is_confined=is_confined) == "Not a directory"


@pytest.mark.parametrize("closed", ["inner", "outer"])
def test_modes_count_for_root_too_once_it_is_confined(place, closed):
    (place if closed == "inner" else place.parent).chmod(0o600)
    assert find_cwd_problem(str(place), is_confined=True) == "Permission denied"
    if os.geteuid() == 0:
        assert find_cwd_problem(str(place), is_confined=False) is None
