"""Ignore files are read as ripgrep reads them."""

import subprocess

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handaxe.search.deadline import SearchDeadline
from handaxe.search.rg.rg_binary import find_ripgrep
from handaxe.search.walk.root import SearchPlace
from handaxe.search.walk.tree_scan import TreeScan

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


def listed_by_ripgrep(root, *options: str) -> set[str]:
    output = subprocess.run(
        [
            find_ripgrep(()) or "rg",
            "--no-config",
            "--hidden",
            "--no-require-git",
            "--files",
            *options,
            "./",
        ],
        cwd=root,
        capture_output=True,
        check=False,
        text=True,
    ).stdout
    return {line[2:] for line in output.splitlines()}


def listed_by_us(root) -> tuple[set[str], bool]:
    with SearchPlace(str(root), is_file=False, respect_ignore=True) as place:
        scan = TreeScan(place, SearchDeadline(30), None)
        assert scan.scan()
        return set(scan.files), place.is_ignored


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(top=lines, inner=lines, other=lines)
def test_a_scan_finds_what_ripgrep_finds(tmp_path, top, inner, other):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text(top)
    (tmp_path / "src/.gitignore").write_text(inner)
    (tmp_path / "build/.ignore").write_text(other)

    for root in (tmp_path, tmp_path / "src"):
        files, is_ignored = listed_by_us(root)
        options = ["--no-ignore-parent"] if is_ignored else []
        assert files == listed_by_ripgrep(root, *options)
