"""Where the data directory is when the user's home cannot be written to, or is not known."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.disk import hostile_places
from tests.disk.hostile_places import as_nobody

from handaxe.contract.faults import SetupError
from handaxe.storage.home import (
    explain_temporary_home,
    find_data_home,
    get_user_directories,
    list_own_paths,
)

VARIABLES = ("HANDAXE_HOME", "HANDAXE_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "XDG_STATE_HOME",
             "XDG_CONFIG_HOME", "HOME")  # fmt: skip


@pytest.fixture
def homeless(tmp_path, monkeypatch):
    """No home but `/dev/null`, and a directory for temporary files that everybody may use."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for place in (tmp_path, *tmp_path.parents):
        if stat.S_IMODE(place.stat().st_mode) == 0o700:
            place.chmod(0o755)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("HOME", "/dev/null")
    return temporary


def handaxe(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def test_commands_work_without_a_home_and_find_each_others_sessions(homeless, project):
    (project / "a.txt").write_text("hello\n")
    read = handaxe("call", "Read", "file_path=a.txt", "--session-id", "s", cwd=project)
    assert (read.returncode, "hello" in read.stdout) == (0, True)
    assert "HANDAXE_HOME" in read.stderr
    listed = handaxe("sessions", "list", cwd=project)
    assert listed.stderr.count("HANDAXE_HOME") == 1
    assert " s " in f" {listed.stdout} "
    (home,) = homeless.glob("handaxe-*")
    assert home.name == f"handaxe-{os.geteuid()}"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    doctor = handaxe("doctor", "--json", cwd=project)
    found = json.loads(doctor.stdout)["disk.home"]
    assert (doctor.returncode, found["standing"]) == (0, "weak")
    assert "HANDAXE_HOME" in found["advice"]


def test_a_directory_that_somebody_else_may_have_put_there_is_not_used(homeless, project):
    mine = homeless / f"handaxe-{os.geteuid()}"
    other = homeless / "other"
    other.mkdir(mode=0o700)
    mine.symlink_to(other)
    refused = handaxe("call", "Read", "file_path=a.txt", cwd=project)
    assert refused.returncode == 2
    assert "HANDAXE_HOME" in refused.stderr
    assert list(other.iterdir()) == []
    doctor = handaxe("doctor", "--json", "--check", cwd=project)
    found = json.loads(doctor.stdout)
    assert (doctor.returncode, found["problem.home"]["standing"]) == (0, "no")
    assert {"git.version", "limits.files", "mcp.servers"} <= set(found)


@pytest.mark.parametrize("kind", ["file", "open", "link to nothing", "of another user"])
def test_what_is_no_directory_of_ours_alone_is_refused(homeless, kind):
    mine = homeless / f"handaxe-{os.geteuid()}"
    if kind == "file":
        mine.touch(mode=0o600)
    elif kind == "link to nothing":
        mine.symlink_to(homeless / "nothing")
    else:
        mine.mkdir(mode=0o700)
        if kind == "open":
            mine.chmod(0o770)
        elif os.geteuid():
            pytest.skip("only root can give a directory away")
        else:
            os.chown(mine, hostile_places.NOBODY, -1)
    with pytest.raises(SetupError, match="HANDAXE_HOME"):
        find_data_home()
    assert not (homeless / "nothing").exists()


@pytest.mark.parametrize("uid", [hostile_places.NOBODY, 54_321])
@pytest.mark.parametrize("home", [None, "", "/", "/root", "read-only", "a file"])
def test_every_unwritable_home_leads_to_the_same_private_directory(
    homeless, monkeypatch, tmp_path, uid, home
):
    monkeypatch.setattr(hostile_places, "NOBODY", uid)
    (tmp_path / "read-only").mkdir(mode=0o755)
    (tmp_path / "a file").touch()
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", str(tmp_path / home) if home[:1] not in ("", "/") else home)
    if os.stat("/").st_mode & 0o002 and home in ("", "/"):
        pytest.skip("everybody may write to / here")

    def look():
        first = find_data_home()
        info = first.stat()
        told = explain_temporary_home(first) or ""
        own = str(first) in list_own_paths(first)
        return first, find_data_home(), info.st_uid, stat.S_IMODE(info.st_mode), told, own

    first, again, owner, mode, told, is_own = as_nobody(look)
    assert first == again == homeless / f"handaxe-{uid}"
    assert (owner, mode, is_own) == (uid, 0o700, True)
    assert "HANDAXE_HOME" in told


def test_a_home_that_can_be_made_or_is_named_is_taken_as_it_is(homeless, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "new"))
    assert find_data_home() == tmp_path / "new/.local/state/handaxe"
    assert explain_temporary_home(find_data_home()) is None
    assert not (tmp_path / "new").exists()
    monkeypatch.setenv("HANDAXE_HOME", "/dev/null/named")
    assert find_data_home() == Path("/dev/null/named")
    assert list(homeless.iterdir()) == []


def test_settings_of_a_user_without_a_home_are_never_those_of_the_current_directory(
    homeless, monkeypatch, project
):
    monkeypatch.setattr(hostile_places, "NOBODY", 54_321)
    monkeypatch.delenv("HOME")
    monkeypatch.chdir(project)
    (project / "~" / ".handaxe").mkdir(parents=True)
    places = as_nobody(lambda: (*get_user_directories(), *list_own_paths(find_data_home())))
    assert [place for place in places if place.startswith(str(project))] == []
