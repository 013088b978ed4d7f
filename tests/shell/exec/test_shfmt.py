"""shfmt is a third parser of compound commands where it is installed; without it nothing gets weaker."""

import shutil
import sysconfig

import pytest
from tests.shell.analysis.reference import decision

from handaxe.shell.analysis.parser import cross_check
from handaxe.shell.exec.shfmt import find_cross_check

COMPOUND = 'ls "a b" | wc -l && pwd'
UNREAD = "cat <(ls | wc"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where programs of this Python are looked for."""
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    return tmp_path


@pytest.mark.skipif(shutil.which("shfmt") is None, reason="needs shfmt")
def test_shfmt_counts_commands():
    count = find_cross_check()
    assert count is not None
    assert count(COMPOUND) == 3
    assert count(UNREAD) is None
    assert decision(COMPOUND, cross_check=count).verdict == "allow"


def test_without_shfmt_tree_sitter_still_has_to_agree(place, monkeypatch):
    assert find_cross_check.__wrapped__() is None
    assert decision(COMPOUND, cross_check=None).verdict == "allow"
    monkeypatch.setattr(cross_check, "_load_tree_sitter", lambda: None)
    # Another text, because the facts about a command are kept.
    found = decision(f"{COMPOUND} && id", cross_check=None)
    assert (found.verdict, "tree-sitter" in found.reason) == ("ask", True)


@pytest.mark.parametrize("body", ["exit 1", "echo no JSON", 'echo "{}"'])
def test_a_shfmt_that_does_not_work_makes_compound_commands_ask(place, body):
    (place / "shfmt").write_text(f"#!/bin/sh\n{body}\n")
    (place / "shfmt").chmod(0o755)
    count = find_cross_check.__wrapped__()
    assert decision(COMPOUND, cross_check=count).verdict == "ask"
    assert decision("ls a", cross_check=count).verdict == "allow"


def test_a_shfmt_of_the_search_path_is_never_used(place, tmp_path, monkeypatch):
    own = tmp_path / "project"
    own.mkdir()
    (own / "shfmt").write_text("#!/bin/sh\nexit 0\n")
    (own / "shfmt").chmod(0o755)
    monkeypatch.setenv("PATH", str(own))
    assert find_cross_check.__wrapped__() is None
