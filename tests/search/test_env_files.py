"""Text in `.env` and its kind is not shown, unless Read may show it or the file is named."""

import pytest
from search_tree import counts, glob, grep, lines, names, plant

from handaxe.search.local_search import LocalSearch

TREE = {
    ".env": "KEY=hidden\n",
    "a.txt": "KEY=shown\n",
    "sub/.ENV.local": "KEY=hidden\n",
    "sub/.env.example": "KEY=shown\n",
    "sub/.env/settings.txt": "KEY=shown\n",
}
SHOWN = ["a.txt", "sub/.env.example", "sub/.env/settings.txt"]


async def test_such_files_are_left_out_and_counted_in_every_mode(search, tmp_path):
    plant(tmp_path, TREE)

    by_line = await grep(search, tmp_path, "KEY", mode="content")
    by_file = await grep(search, tmp_path, "KEY")
    by_count = await grep(search, tmp_path, "KEY", mode="count")

    assert sorted(lines(by_line, tmp_path)) == sorted(f"{path}:1:KEY=shown" for path in SHOWN)
    assert sorted(names(by_file, tmp_path)) == sorted(SHOWN)
    assert counts(by_count, tmp_path) == dict.fromkeys(SHOWN, 1)
    for found in (by_line, by_file, by_count):
        assert (found.skipped.withheld, found.skipped.withheld_is_least) == (2, False)


async def test_whether_they_match_does_not_show(search, tmp_path):
    plant(tmp_path, TREE)

    matching = await grep(search, tmp_path, "hidden")
    nothing = await grep(search, tmp_path, "in no file")

    assert (matching.entries, matching.elsewhere) == ([], [])
    assert (matching.skipped, matching.elsewhere) == (nothing.skipped, nothing.elsewhere)


async def test_ignored_ones_are_left_out_of_the_second_look_too(search, tmp_path):
    plant(tmp_path, {".gitignore": ".env\n", ".env": "KEY=hidden\n", "a.txt": "hay\n"})

    found = await grep(search, tmp_path, "hidden")
    all_files = await grep(search, tmp_path, "hidden", respect_ignore=False)

    assert (found.entries, found.elsewhere) == ([], [])
    assert (all_files.entries, all_files.skipped.withheld) == ([], 1)


async def test_what_read_may_read_is_searched(tmp_path):
    plant(tmp_path, TREE)
    search = LocalSearch(may_read=lambda: lambda path: path == f"{tmp_path}/.env")

    found = await grep(search, tmp_path, "hidden", mode="content")

    assert (lines(found, tmp_path), found.skipped.withheld) == ([".env:1:KEY=hidden"], 1)


async def test_the_file_that_is_named_is_searched(search, tmp_path):
    plant(tmp_path, TREE)

    found = await grep(search, tmp_path / ".env", "KEY", mode="content", is_file=True)

    assert [line.text for line in found.lines] == ["KEY=hidden"]


async def test_what_a_tree_was_known_to_hold_is_counted_by_the_rules_of_today(tmp_path, settled):
    plant(tmp_path, TREE)
    allowed: set[str] = set()
    search = LocalSearch(may_read=lambda: allowed.__contains__)

    first = await grep(search, tmp_path, "KEY")
    allowed.add(f"{tmp_path}/.env")
    second = await grep(search, tmp_path, "KEY")

    assert (first.skipped.withheld, second.skipped.withheld) == (2, 1)


async def test_their_names_are_listed(tmp_path):
    plant(tmp_path, TREE)

    found = await glob(LocalSearch(), tmp_path, "**/.[eE]*")

    assert names(found, tmp_path) == [".env", "sub/.ENV.local", "sub/.env.example"]


@pytest.mark.parametrize("vcs", [".git", ".hg", ".svn", ".jj", ".sl", ".bzr"])
async def test_version_control_directories_are_neither_searched_nor_listed(vcs, tmp_path):
    plant(tmp_path, {f"{vcs}/config": "foo\n", f"sub/{vcs}/config": "foo\n", "a": "foo\n"})
    search = LocalSearch()

    assert names(await grep(search, tmp_path, "foo", respect_ignore=False), tmp_path) == ["a"]
    for pattern in ("**", f"{vcs}/*", f"sub/{vcs}/config", f"**/{vcs}/*"):
        found = await glob(search, tmp_path, pattern, respect_ignore=False)
        assert names(found, tmp_path) == (["a"] if pattern == "**" else [])


async def test_our_own_data_directory_is_left_out_of_a_search_from_above(tmp_path):
    plant(tmp_path, {"data [1]/log": "foo\n", "data 1/log": "foo\n", "a": "foo\n"})
    search = LocalSearch(own_places=(f"{tmp_path}/data [1]",))

    for mode in ("files", "count", "content"):
        found = await grep(search, tmp_path, "foo", mode=mode, respect_ignore=False)
        paths = {item.path for item in (*found.entries, *found.lines)}
        assert paths == {f"{tmp_path}/a", f"{tmp_path}/data 1/log"}
        assert not found.skipped.denied
    listed = await glob(search, tmp_path, "**/log", respect_ignore=False)
    inside = await grep(search, tmp_path / "data [1]", "foo")

    assert names(listed, tmp_path) == ["data 1/log"]
    assert names(inside, tmp_path) == ["data [1]/log"]
