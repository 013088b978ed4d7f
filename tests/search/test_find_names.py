"""Files by name: a small tree is scanned, ripgrep lists a larger one."""

import os

import pytest
from search_tree import glob, names, opened_path, plant

from handaxe.contract.faults.search import RipgrepFailed
from handaxe.contract.ports.search import BadQuery
from handaxe.search.local_search import LocalSearch
from handaxe.search.walk import tree_scan

SEARCH = LocalSearch()


@pytest.fixture(autouse=True, params=["scan", "ripgrep"])
def way(request, monkeypatch) -> str:
    """Which way a tree is read: without ripgrep only if it is small."""
    if request.param == "ripgrep":
        monkeypatch.setattr(tree_scan, "SMALL_TREE", -1)
    return request.param


async def test_newest_first_and_equal_times_by_path(tmp_path):
    plant(tmp_path, {"new.py": "", "b.py": "", "sub/a.py": "", "x.txt": ""})
    os.utime(tmp_path / "sub/a.py", (1_699_999_999, 1_699_999_999))

    assert names(await glob(SEARCH, tmp_path, "**/*.py"), tmp_path) == [
        "new.py",
        "b.py",
        "sub/a.py",
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("**", ["a.py", "src/b.py", "src/deep/c.py", "src/d.ts", "src/deep/e.tsx", ".dot/f"]),
        ("src/*", ["src/b.py", "src/d.ts"]),
        ("src/**", ["src/b.py", "src/deep/c.py", "src/d.ts", "src/deep/e.tsx"]),
        ("**/*.{ts,tsx}", ["src/d.ts", "src/deep/e.tsx"]),
        ("{src,.dot}/*", ["src/b.py", "src/d.ts", ".dot/f"]),
        ("src/[!b].*", ["src/d.ts"]),
        ("*/deep/*.py", ["src/deep/c.py"]),
        (".dot/*", [".dot/f"]),
        ("src/deep/../*.py", ["src/b.py"]),
        ("nowhere/**", []),
        ("A.PY", []),
    ],
)
async def test_patterns(tmp_path, pattern, expected):
    files = ("a.py", "src/b.py", "src/deep/c.py", "src/d.ts", "src/deep/e.tsx", ".dot/f")
    plant(tmp_path, dict.fromkeys(files, ""))
    plant(tmp_path, {".git/config": "", "src/.hg/x.py": ""})

    assert names(await glob(SEARCH, tmp_path, pattern), tmp_path) == expected
    absolute = await glob(SEARCH, tmp_path, f"{tmp_path}/{pattern}")
    assert names(absolute, tmp_path) == expected


async def test_the_cap_is_said_with_the_true_total(tmp_path):
    plant(tmp_path, {f"{n:03}.txt": "" for n in range(130)})

    found = await glob(SEARCH, tmp_path, "*.txt")

    assert (len(found.paths), found.total) == (100, 130)
    assert names(found, tmp_path)[:2] == ["000.txt", "001.txt"]


async def test_a_search_begins_where_the_literal_beginning_leads(tmp_path, monkeypatch, way):
    plant(tmp_path, {"src/api/a.py": "", "src/ui/b.py": "", "other/api/c.py": ""})
    entered: list[str] = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda fd: entered.append(opened_path(fd)) or real(fd))

    assert names(await glob(SEARCH, tmp_path, "src/*/a.py"), tmp_path) == ["src/api/a.py"]
    expected = {"src", "src/api", "src/ui"} if way == "scan" else {"src"}
    assert {path.removeprefix(f"{tmp_path}/") for path in entered} == expected


async def test_ignored_files_are_counted_also_in_ignored_directories(tmp_path):
    plant(
        tmp_path,
        {
            ".gitignore": "build/\n*.log\n!keep.log\n",
            "build/deep/a.py": "",
            "build/b.txt": "",
            "c.py": "",
            "d.log": "",
            "keep.log": "",
        },
    )

    python = await glob(SEARCH, tmp_path, "**/*.py")
    logs = await glob(SEARCH, tmp_path, "**/*.log")

    assert (names(python, tmp_path), python.ignored_matches) == (["c.py"], 1)
    assert (names(logs, tmp_path), logs.ignored_matches) == (["keep.log"], 1)
    everything = await glob(SEARCH, tmp_path, "**/*.py", respect_ignore=False)
    assert everything.total == 2


@pytest.mark.parametrize("rule", ["build/", "build/**", "/build"])
async def test_an_ignored_directory_can_be_asked_for(tmp_path, rule):
    plant(tmp_path, {".gitignore": f"{rule}\n", "build/a.py": ""})

    by_path = await glob(SEARCH, tmp_path / "build", "*.py")
    by_pattern = await glob(SEARCH, tmp_path, "build/*.py")

    assert names(by_path, tmp_path) == names(by_pattern, tmp_path) == ["build/a.py"]


async def test_links_lead_nowhere_outside_and_loops_end(tmp_path):
    plant(tmp_path, {"root/a.txt": "", "root/sub/b.txt": "", "outside/secret.txt": ""})
    root = tmp_path / "root"
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "leak.txt").symlink_to(tmp_path / "outside/secret.txt")
    (root / "inner.txt").symlink_to("sub/b.txt")
    (root / "gone.txt").symlink_to("nowhere")
    (root / "self.txt").symlink_to("self.txt")
    (root / "loop").symlink_to(root)

    found = await glob(SEARCH, root, "**/*.txt")

    assert sorted(names(found, root)) == ["a.txt", "inner.txt", "sub/b.txt"]
    assert found.skipped.links == 3
    assert (await glob(SEARCH, root, "out/*.txt")).paths == []
    assert (await glob(SEARCH, root, f"{tmp_path}/outside/*.txt")).paths == []


async def test_only_files_are_listed(tmp_path):
    plant(tmp_path, {"dir.py/a.py": ""})
    os.mkfifo(tmp_path / "fifo.py")

    assert names(await glob(SEARCH, tmp_path, "**/*.py"), tmp_path) == ["dir.py/a.py"]


async def test_names_that_are_no_utf8(tmp_path):
    plant(tmp_path, {os.fsdecode(b"bad\xff.py"): ""})

    assert names(await glob(SEARCH, tmp_path, "*.py"), tmp_path) == ["bad\udcff.py"]


async def test_what_a_rule_hides_is_neither_shown_nor_counted(tmp_path):
    plant(tmp_path, {".gitignore": "*.log\n", "secret/a.py": "", "secret.log": "", "b.py": ""})
    search = LocalSearch(hidden=lambda: lambda path: "/secret" in path)

    for pattern in ("**/*.py", "**/*", "secret/*", "**/*.log", "secret*"):
        found = await glob(search, tmp_path, pattern)
        assert not any("secret" in path for path in found.paths)
        assert found.ignored_matches == 0
    assert found.skipped.denied


async def test_no_time_at_all_says_where_to_go_on(tmp_path):
    plant(tmp_path, {"a/b.py": ""})

    found = await glob(SEARCH, tmp_path, "**/*.py", timeout_s=0.000_001)

    assert (found.is_complete, found.unvisited) == (False, [str(tmp_path)])


@pytest.mark.parametrize("pattern", ["[", "{a", "", "../x", "src/", "a\\"])
async def test_a_pattern_that_cannot_be_read_is_refused(tmp_path, pattern):
    with pytest.raises(BadQuery):
        await glob(SEARCH, tmp_path, pattern)


async def test_directories_that_cannot_be_read_are_counted(tmp_path):
    deep = tmp_path / "d"
    plant(tmp_path, {"d/a.py": "", "b.py": ""})
    deep.chmod(0)
    try:
        found = await glob(SEARCH, tmp_path, "**/*.py")
    finally:
        deep.chmod(0o755)
    if os.geteuid():
        assert (names(found, tmp_path), found.skipped.unreadable) == (["b.py"], 1)


async def test_a_large_tree_with_many_ignored_files_gives_the_same_names(tmp_path, monkeypatch):
    """What ripgrep says about each of them takes too long, so they are only counted."""
    monkeypatch.setattr(tree_scan, "SMALL_TREE", -1)
    plant(tmp_path, {f"d{n}/{n}.log": "" for n in range(400)})
    plant(tmp_path, {".gitignore": "*.log\nbuild/\n!keep.log\n", "a.py": "", "keep.log": ""})
    plant(tmp_path, {"build/b.log": ""})
    search = LocalSearch()

    for _ in range(2):
        found = await glob(search, tmp_path, "**/*.log")
        assert (names(found, tmp_path), found.ignored_matches) == (["keep.log"], 401)
        assert found.is_ignored_count_complete
        assert (found.skipped.ignored, found.skipped.links) == (None, None)


async def test_a_broken_ripgrep_is_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(tree_scan, "SMALL_TREE", -1)
    program = tmp_path / "bin/rg"
    plant(tmp_path, {"bin/rg": "#!/bin/sh\necho ripgrep 99.0.0; echo oh no >&2; exit ${2:+139}\n"})
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    with pytest.raises(RipgrepFailed, match="oh no"):
        await glob(SEARCH, tmp_path, "**")
