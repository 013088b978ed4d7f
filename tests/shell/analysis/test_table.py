"""The decision table: every command in table.toml gets the verdict its group names."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest
from reference import decision

TABLE = tomllib.loads((Path(__file__).parent / "table.toml").read_text("utf-8"))["group"]
KEYS = ("allow", "ask", "deny", "deny_read", "deny_edit", "git_clean")


def _wrong(group) -> list[str]:
    wrong: list[str] = []
    extra = {key: group[key] for key in KEYS if key in group}
    for command in group["commands"]:
        found = decision(command, group.get("mode", "default"), **extra)
        wanted = group["verdict"]
        right = found.verdict != "allow" if wanted == "not_allow" else found.verdict == wanted
        if not right:
            wrong.append(f"{found.verdict} {command!r}: {found.reason}")
    return wrong


@pytest.mark.parametrize("group", TABLE, ids=lambda group: group["title"])
def test_every_command_gets_the_verdict_of_its_group(group):
    assert _wrong(group) == []


def test_the_table_is_large():
    assert sum(len(group["commands"]) for group in TABLE) >= 500


LINKED = (
    "the same options where they stay in the tree pass",
    "a quoted variable is one word",
)


@pytest.mark.parametrize("title", LINKED)
def test_what_passes_beside_links_and_odd_names_shows_nothing_from_outside(title, tmp_path):
    """In real bash, in a tree made to lead astray: links, blanks, dashes, names that are paths."""
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    outside.mkdir()
    (outside / "key.py").write_text("FROM-OUTSIDE x\n")
    for name in ("src", "a", "b", "x1", f"src/w {tmp_path}/outside"):
        (tree / name).mkdir(parents=True)
    for place in (tree, tree / "src", tree / "a", tree / "b", tree / "x1"):
        (place / "link").symlink_to(outside)
        (place / "key.py").symlink_to(tree / "README.md")
        (place / "-L").write_text("")
        (place / f"w {'..'} x.py").write_text("")
    (tree / "README.md").write_text("inside\n")
    group = next(group for group in TABLE if group["title"] == title)
    assert "FROM-OUTSIDE" in _printed("grep -R x .", tree), "the tree does not lead astray"
    for command in group["commands"]:
        assert "FROM-OUTSIDE" not in _printed(command, tree), command


def _printed(command: str, cwd: Path) -> str:
    ran = subprocess.run(
        ["bash", "-c", command], cwd=cwd, capture_output=True, check=False, timeout=20
    )
    return ran.stdout.decode("utf-8", "replace")
