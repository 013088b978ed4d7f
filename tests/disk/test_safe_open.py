"""Where links lead, also those that may not be read."""

import os

import pytest

from handaxe.disk.safe_open import resolve_links

SHUT = "/proc/1/root"


@pytest.fixture
def shut():
    """A link that the system shows and does not let us read."""
    try:
        os.readlink(SHUT)
    except PermissionError:
        return SHUT
    pytest.skip("this user may read every link")


def test_links_are_followed_like_by_the_system(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/up").symlink_to("../c")
    (tmp_path / "c").symlink_to(tmp_path / "a/b")

    for path in ("a/up/x", "c/../y", "a/./b/../up", "missing/x"):
        assert resolve_links(f"{tmp_path}/{path}") == os.path.realpath(tmp_path / path)


def test_a_link_that_may_not_be_read_stands_for_itself(tmp_path, shut):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/out").symlink_to(f"{shut}/etc")
    (tmp_path / "near").symlink_to("d")

    assert resolve_links(f"{shut}/etc/passwd") == f"{shut}/etc/passwd"
    assert resolve_links(tmp_path / "near/out/../passwd") == f"{shut}/passwd"


def test_a_loop_behind_such_a_link_ends(tmp_path, shut):
    (tmp_path / "loop").symlink_to("loop")

    assert resolve_links(f"{tmp_path}/loop/..{shut}").startswith("/")
