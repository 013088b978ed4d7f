"""After a search it is known which paths named the same files all the time."""

import os

import pytest
from search_tree import plant

from handaxe.search.walk import unchanged_paths as unchanged
from handaxe.search.walk.unchanged_paths import UnchangedPaths

PATHS = [b"a/b/file", b"a/other", b"top"]


@pytest.fixture
def tree(tmp_path):
    """A tree that changes before the search begins, by the clock of this test."""
    root = plant(tmp_path / "root", {os.fsdecode(path): "" for path in PATHS})
    fd = os.open(root, os.O_RDONLY)
    yield root, fd
    os.close(fd)


def begun(fd: int, monkeypatch: pytest.MonkeyPatch, *, are_named: bool = False) -> UnchangedPaths:
    """A search that begins after everything there is now, whatever the clock's ticks."""
    newest = os.stat(".", dir_fd=fd).st_ctime_ns
    for _, _, files, directory in os.fwalk(".", dir_fd=fd):
        newest = max(newest, os.fstat(directory).st_ctime_ns)
        newest = max([newest, *(os.stat(f, dir_fd=directory).st_ctime_ns for f in files)])
    search = UnchangedPaths(fd, are_named=are_named)
    monkeypatch.setattr(search, "_old_ns", newest + 1)
    # Clocks tick coarsely: what comes now is later than what was.
    while os.stat("..", dir_fd=fd).st_ctime_ns <= newest:
        os.mkdir("../tick", dir_fd=fd)
        os.rmdir("../tick", dir_fd=fd)
    return search


def test_a_tree_that_stays_as_it_is_is_sure(tree, monkeypatch):
    _, fd = tree
    search = begun(fd, monkeypatch)

    assert search.select_unsure(PATHS) == []
    assert search.find_moving([b"", b"a", b"a/b"]) == set()


def test_what_was_moved_away_and_back_is_not_sure(tree, monkeypatch):
    root, fd = tree
    search = begun(fd, monkeypatch)

    (root / "a/b").rename(root / "a/c")
    (root / "a/b").symlink_to("/")
    (root / "a/b").unlink()
    (root / "a/c").rename(root / "a/b")

    assert search.select_unsure(PATHS) == [b"a/b/file"]
    assert search.find_moving([b"a/b", b""]) == {b"a/b"}


def test_a_file_that_was_replaced_is_not_sure(tree, monkeypatch):
    root, fd = tree
    search = begun(fd, monkeypatch)

    (root / "a/new").write_text("")
    (root / "a/new").rename(root / "a/other")

    assert search.select_unsure(PATHS) == [b"a/other"]


def test_new_files_beside_others_leave_these_sure(tree, monkeypatch):
    root, fd = tree
    search = begun(fd, monkeypatch)

    (root / "a/new").write_text("")

    assert search.select_unsure(PATHS) == []


def test_a_link_now_is_not_sure_where_a_file_was_named(tree, monkeypatch):
    root, fd = tree
    (root / "link").symlink_to("top")
    search = begun(fd, monkeypatch, are_named=True)

    assert search.select_unsure([b"link"]) == [b"link"]
    assert search.select_unsure([b"top"]) == []


def test_nothing_is_sure_where_the_clock_is_not_ours(tree, monkeypatch):
    _, fd = tree
    monkeypatch.setattr(unchanged, "_LOCAL", frozenset())

    assert UnchangedPaths(fd).select_unsure(PATHS) == PATHS
    assert UnchangedPaths(fd).find_moving([b"a"]) == {b"a"}


def test_nothing_is_sure_if_the_clock_was_set_back(tree, monkeypatch):
    _, fd = tree
    search = begun(fd, monkeypatch)
    monkeypatch.setattr(search, "_began_ns", search._began_ns + 3_600_000_000_000)

    assert search.select_unsure(PATHS) == PATHS
