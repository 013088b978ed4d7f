"""Ignore files are read as ripgrep reads them."""

import os
import subprocess

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handaxe.search.deadline import SearchDeadline
from handaxe.search.rg.rg_binary import find_ripgrep
from handaxe.search.walk.ignore_files import Ignores, read_ignores_above
from handaxe.search.walk.walk import DirectoryWalk

FILES = [
    f"{directory}{name}"
    for directory in ("", "src/", "src/gen/", "build/", "build/sub/", "a.d/")
    for name in ("a.py", "b.log", "c.tmp", "gen", "keep.log")
    if f"{directory}{name}" != "src/gen"
]
lines = st.lists(
    st.sampled_from(
        [
            *("*.log", "!keep.log", "build/", "/build", "build/**", "src/gen", "gen", "gen/"),
            *("**/sub", "*.py[co]", "a.*", "!a.py", "/*.tmp", "src/*.py", "# comment", "", "s?b"),
            *("**/gen/*.py", "!src/gen/a.py", "[ab].*", "build/*", "!build/sub/", "*", "!*/"),
        ]
    ),
    max_size=4,
).map("\n".join)


def listed_by_ripgrep(root) -> set[str]:
    output = subprocess.run(
        [find_ripgrep(()) or "rg", "--no-config", "--hidden", "--no-require-git", "--files", "./"],
        cwd=root,
        capture_output=True,
        check=False,
        text=True,
    ).stdout
    return {line[2:] for line in output.splitlines()}


def listed_by_us(root, ignores: Ignores) -> set[str]:
    fd = os.open(root, os.O_RDONLY)
    try:
        walk = DirectoryWalk(str(root), SearchDeadline(30), fd=fd, ignores=ignores)
        return {
            visit[0] + entry.name
            for visit in walk
            for entry in visit[1]
            if entry.is_file(follow_symlinks=False)
            and entry.name not in walk.find_ignored_names(visit)
        }
    finally:
        os.close(fd)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(top=lines, inner=lines, other=lines)
def test_the_walk_finds_what_ripgrep_finds(tmp_path, top, inner, other):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text(top)
    (tmp_path / "src/.gitignore").write_text(inner)
    (tmp_path / "build/.ignore").write_text(other)

    assert listed_by_us(tmp_path, read_ignores_above(str(tmp_path))) == listed_by_ripgrep(tmp_path)
    below = tmp_path / "src"
    assert listed_by_us(below, read_ignores_above(str(below))) == listed_by_ripgrep(below)
