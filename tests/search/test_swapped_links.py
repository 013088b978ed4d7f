"""A link takes the place of a file or directory during a search: nothing from outside appears.

`tests/long/search_races.py` does the same hundreds of times.
"""

import pytest
from link_swapper import swapping
from search_tree import plant

from handaxe.contract.ports.search import NameQuery, TextQuery
from handaxe.search.walk import tree_scan

TRIES = 12


def race(tmp_path, what: str):
    """A tree, and two names in it to be swapped, one of them a link that leads outside."""
    outside = plant(tmp_path / "outside", {"file": "secret\n" * 3, "deep/file": "secret\n" * 3})
    ours = {f"d{n}/deep/file": "ours\n" for n in range(3)}
    root = plant(tmp_path / "root", {**ours, "a.txt": "ours\n"})
    names = {
        "file": (root / "d1/deep/file", outside / "file"),
        "directory": (root / "d1/deep", outside / "deep"),
        "ancestor": (root / "d1", outside),
    }
    one, target = names[what]
    link = root / "link"
    link.symlink_to(target)
    return root, one, link


@pytest.mark.parametrize("what", ["file", "directory", "ancestor"])
async def test_text_from_outside_is_never_shown_or_counted(search, tmp_path, what):
    root, one, link = race(tmp_path, what)
    seen = []

    with swapping(one, link):
        for mode in ("content", "files", "count") * (TRIES // 3):
            found = await search.find_text(
                TextQuery(pattern="secret", root=str(root), mode=mode, timeout_s=20)
            )
            seen.append((found.lines, found.entries, found.total_files, found.elsewhere))

    assert seen == [([], [], 0, [])] * TRIES


@pytest.mark.parametrize("what", ["file", "directory", "ancestor"])
async def test_our_own_text_is_still_found(search, tmp_path, what):
    root, one, link = race(tmp_path, what)

    with swapping(one, link):
        found = await search.find_text(TextQuery(pattern="ours", root=str(root), mode="content"))

    assert {line.text for line in found.lines} == {"ours"}
    assert f"{root}/d0/deep/file" in {line.path for line in found.lines}


async def test_the_file_that_is_named_is_the_one_that_is_searched(search, tmp_path):
    _, one, link = race(tmp_path, "file")
    texts = set()

    with swapping(one, link):
        for _ in range(TRIES):
            query = TextQuery(pattern=".*", root=str(one), is_file=True, mode="content")
            texts.update(line.text for line in (await search.find_text(query)).lines)

    assert texts <= {"ours"}


@pytest.mark.parametrize("small_tree", [3_000, -1])
@pytest.mark.parametrize("what", ["directory", "ancestor"])
async def test_names_from_outside_are_never_listed(search, tmp_path, monkeypatch, what, small_tree):
    monkeypatch.setattr(tree_scan, "SMALL_TREE", small_tree)
    root, one, link = race(tmp_path, what)
    (tmp_path / "outside/only_outside.md").write_text("")
    (tmp_path / "outside/deep/only_outside.md").write_text("")
    seen = []

    with swapping(one, link):
        for _ in range(TRIES):
            found = await search.find_names(NameQuery(pattern="**/only_outside.md", root=str(root)))
            seen.append((found.paths, found.total))

    assert seen == [([], 0)] * TRIES
