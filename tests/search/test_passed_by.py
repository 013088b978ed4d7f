"""What a search did not look at is counted, and looked at if need be."""

import os
import shutil

import pytest
from search_tree import glob, grep, lines, names, opened_path, plant

from handaxe.search.deadline import SearchDeadline
from handaxe.search.local_search import LocalSearch
from handaxe.search.rg import exclusion_probe, fallback, ripgrep
from handaxe.search.rg.fallback import FallbackSearch
from handaxe.search.walk import ignored_survey, tree_scan

RIPGREP = LocalSearch()
TREE = {
    ".gitignore": "dist/\n*.log\n*.gen.py\n",
    "dist/bundle.js": "needle\n",
    "dist/deep/x.py": "needle\nneedle\n",
    "a.log": "needle\n",
    "b.gen.py": "needle\n",
    "c.py": "hay\n",
    "d.js": "hay\n",
    "e.py": b"\0hay needle",
    "f.js": b"\0hay",
}


def hiding(what: str) -> LocalSearch:
    return LocalSearch(hidden=lambda: lambda path: what in path)


@pytest.mark.parametrize("mode", ["files", "content", "count"])
@pytest.mark.parametrize(
    ("query", "ignored", "binary"),
    [
        ({}, 3, 2),
        ({"file_type": "py"}, 2, 1),
        ({"file_type": "js"}, 1, 1),
        ({"glob": "*.js"}, 1, 1),
        ({"glob": "!*.log"}, 2, 2),
        ({"glob": "!dist"}, 2, 2),
        ({"respect_ignore": False}, 0, 2),
    ],
)
async def test_every_answer_tells_what_was_passed_by(
    search, tmp_path, mode, query, ignored, binary
):
    plant(tmp_path, TREE)

    for pattern in ("hay", "nowhere to be found"):
        skipped = (await grep(search, tmp_path, pattern, mode=mode, **query)).skipped
        assert (skipped.ignored, skipped.binary) == (ignored, binary)


async def test_a_page_that_is_cut_tells_of_ignored_files_but_not_of_binary_ones(search, tmp_path):
    plant(tmp_path, {**TREE, "many": "hay\n" * 20})

    found = await grep(search, tmp_path, "hay", mode="content", limit=2)

    assert (found.has_more, found.skipped.ignored, found.skipped.binary) == (True, 3, None)


@pytest.mark.parametrize("mode", ["files", "count"])
async def test_of_many_files_some_are_shown_but_everything_is_counted(search, tmp_path, mode):
    plant(tmp_path, TREE)

    found = await grep(search, tmp_path, "hay", mode=mode, limit=1)

    assert (found.has_more, found.skipped.ignored, found.skipped.binary) == (True, 3, 2)


async def test_one_file_passes_nothing_by(search, tmp_path):
    plant(tmp_path, TREE)

    skipped = (await grep(search, tmp_path / "c.py", "hay", is_file=True)).skipped

    assert (skipped.ignored, skipped.binary, skipped.links) == (0, 0, 0)


async def test_links_are_counted(search, tmp_path):
    plant(tmp_path, {".gitignore": "*.tmp\n", "sub/a": "hay\n"})
    for name in ("to_file", "sub/to_directory", "away.tmp", "secret"):
        (tmp_path / name).symlink_to(tmp_path)

    assert (await grep(search, tmp_path, "hay")).skipped.links == 3
    assert (await grep(hiding("/secret"), tmp_path, "hay")).skipped.links == 2


async def test_what_a_rule_hides_is_not_counted_as_ignored(search, tmp_path):
    plant(tmp_path, {".gitignore": "secret*\n", "secret.log": "needle\n", "secrets/a": "needle\n"})

    found = await grep(hiding("/secret"), tmp_path, "needle")

    assert (found.skipped.ignored, found.elsewhere) == (0, [])


@pytest.mark.parametrize("mode", ["files", "content", "count"])
async def test_what_a_rule_hides_is_not_counted_as_binary_or_unreadable(search, tmp_path, mode):
    late = b"needle\n" + b"x" * 100_000 + b"\0"
    plant(tmp_path, {"secret.o": b"\0needle", "secret.late": late, "a.o": b"\0", "b": "needle\n"})
    plant(tmp_path, {"secret.txt": "needle\n"})
    (tmp_path / "secret.txt").chmod(0)

    skipped = (await grep(hiding("/secret"), tmp_path, "needle", mode=mode)).skipped

    assert (skipped.binary, skipped.unreadable) == (1, 0)


@pytest.mark.parametrize(
    ("query", "matches", "files", "example"),
    [
        ({}, 5, 4, "a.log"),
        ({"file_type": "py"}, 3, 2, "b.gen.py"),
        ({"glob": "*.js"}, 1, 1, "dist/bundle.js"),
        ({"glob": "!*.py"}, 2, 2, "a.log"),
    ],
)
async def test_the_second_look_is_about_files_the_query_asks_for(
    search, tmp_path, query, matches, files, example
):
    plant(tmp_path, {**TREE, "e.py": "hay"})

    (look,) = (await grep(search, tmp_path, "needle", **query)).elsewhere

    assert (look.reason, look.matches, look.files) == ("ignored", matches, files)
    assert look.example == f"{tmp_path}/{example}"
    assert look.is_complete


async def test_an_ignored_binary_file_is_no_text_with_a_match(search, tmp_path):
    plant(tmp_path, {".gitignore": "*.o\nout/\n", "a.o": b"\0needle", "out/b.o": b"\0needle"})

    found = await grep(search, tmp_path, "needle")

    assert (found.elsewhere, found.skipped.ignored) == ([], 2)


async def test_ignored_names_that_look_like_options_or_are_no_utf8(search, tmp_path):
    ignored = {"--version.log": "needle\n", os.fsdecode(b"-\xff.log"): "needle\n"}
    plant(tmp_path, {".gitignore": "*.log\n-dir/\n", "-dir/x": "needle\n", **ignored})

    (look,) = (await grep(search, tmp_path, "needle")).elsewhere

    assert (look.matches, look.files) == (3, 3)


@pytest.mark.usefixtures("settled")
async def test_a_directory_that_vanishes_is_passed_by(search, tmp_path, monkeypatch):
    plant(tmp_path, {"a/x.py": "hay\n", "gone/y.py": "hay\n", "z.py": "hay\n"})
    real = os.scandir

    def scandir(fd):
        listing = real(fd)
        if opened_path(fd).endswith("/a"):
            shutil.rmtree(tmp_path / "gone", ignore_errors=True)
        return listing

    monkeypatch.setattr(os, "scandir", scandir)

    by_name = await glob(search, tmp_path, "**/*.py")
    by_text = await grep(search, tmp_path, "hay")

    assert sorted(names(by_name, tmp_path)) == ["a/x.py", "z.py"]
    assert by_name.skipped.unreadable == 1
    assert sorted(names(by_text, tmp_path)) == ["a/x.py", "z.py"]


class TestLargeTrees:
    """Ripgrep alone: a tree too large to be walked beside each search, with much to tell of."""

    @pytest.fixture(autouse=True)
    def _nothing_is_small(self, monkeypatch):
        monkeypatch.setattr(tree_scan, "SMALL_TREE", 0)
        monkeypatch.setattr(exclusion_probe, "QUIET_BYTES", 0)
        monkeypatch.setattr(fallback, "SURVEY_S", 30)

    async def test_what_would_take_long_to_count_is_counted_in_part_or_not_at_all(self, tmp_path):
        plant(tmp_path, {"deep/c.py": "hay\n", "deep/d.log": "", **TREE})

        skipped = (await grep(RIPGREP, tmp_path, "hay")).skipped

        assert (skipped.ignored, skipped.ignored_is_least) == (3, True)
        assert (skipped.binary, skipped.links) == (None, None)

    async def test_no_ignored_entry_met_means_that_nobody_counted(self, tmp_path):
        plant(tmp_path, {"deep/.gitignore": "*.log\n", "deep/a.log": "", "deep/c.py": "hay\n"})

        skipped = (await grep(RIPGREP, tmp_path, "hay")).skipped

        assert (skipped.ignored, skipped.ignored_is_least) == (None, True)

    async def test_nothing_found_means_a_second_look_all_the_same(self, tmp_path):
        plant(tmp_path, {"deep/c.py": "hay\n", **TREE})

        found = await grep(RIPGREP, tmp_path, "needle")

        ignored, binary = found.elsewhere
        assert (ignored.reason, ignored.matches, ignored.files) == ("ignored", 5, 4)
        assert (binary.reason, binary.files, binary.example) == ("binary", 1, f"{tmp_path}/e.py")
        assert (found.skipped.ignored, found.skipped.binary) == (3, None)

    async def test_a_look_at_binary_files_that_finds_nothing_is_told_of(self, tmp_path):
        plant(tmp_path, TREE)

        found = await grep(RIPGREP, tmp_path, "nowhere to be found")

        (look,) = found.elsewhere
        assert (look.reason, look.files, look.is_complete) == ("binary", 0, True)

    async def test_binary_files_are_not_looked_at_where_that_would_take_long(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(fallback, "LOOK_S", 0)
        plant(tmp_path, {"a.bin": b"\0needle"})

        assert (await grep(RIPGREP, tmp_path, "needle")).elsewhere == []

    async def test_a_survey_that_was_cut_short_says_at_least(self, tmp_path, monkeypatch):
        monkeypatch.setattr(fallback, "SURVEY_S", 0)
        monkeypatch.setattr(fallback, "SURVEY_SHARE", 0)
        plant(tmp_path, {".gitignore": "*.log\n", "a.log": "needle\n", "b/c/d/e.log": "needle\n"})

        found = await grep(RIPGREP, tmp_path, "needle")

        look, _ = found.elsewhere
        assert (look.files, look.is_complete) == (1, False)
        assert (found.skipped.ignored, found.skipped.ignored_is_least) == (1, True)

    async def test_too_many_ignored_entries_are_searched_in_part(self, tmp_path, monkeypatch):
        monkeypatch.setattr(ignored_survey, "MAX_TARGETS", 3)
        plant(tmp_path, {".gitignore": "*.log\n", **{f"{n}.log": "needle\n" for n in range(5)}})

        found = await grep(RIPGREP, tmp_path, "needle")

        look, _ = found.elsewhere
        assert (look.files, look.is_complete, found.skipped.ignored) == (3, False, 5)


class TestLargeQuietTrees:
    """Ripgrep alone: too large to be walked, but with little to tell of, so that ripgrep tells it."""

    @pytest.fixture(autouse=True)
    def _nothing_is_small(self, monkeypatch):
        monkeypatch.setattr(tree_scan, "SMALL_TREE", 0)

    @pytest.mark.parametrize("mode", ["files", "content", "count"])
    async def test_everything_but_links_is_counted(self, tmp_path, mode):
        plant(tmp_path, {**TREE, "deep/er/.ignore": "x\n", "deep/er/x": "hay\n"})
        (tmp_path / "a.log").rename(tmp_path / "deep/b.log")
        (tmp_path / "c.log").symlink_to("c.py")

        skipped = (await grep(RIPGREP, tmp_path, "hay", mode=mode)).skipped

        assert (skipped.ignored, skipped.ignored_is_least, skipped.binary) == (4, False, 2)
        assert skipped.links is None

    async def test_what_a_rule_hides_is_in_no_number(self, tmp_path):
        plant(tmp_path, TREE)

        skipped = (await grep(hiding("b.gen"), tmp_path, "hay")).skipped

        assert (skipped.ignored, skipped.ignored_is_least) == (2, False)

    @pytest.mark.parametrize("name", [b"a\xff.log", b"a\nb.log"])
    async def test_a_name_that_ripgrep_cannot_tell_leaves_the_number_open(self, tmp_path, name):
        plant(tmp_path, {**TREE, f"deep/{os.fsdecode(name)}": ""})

        skipped = (await grep(RIPGREP, tmp_path, "hay")).skipped

        assert (skipped.ignored, skipped.ignored_is_least) == (3, True)

    async def test_no_second_look_where_no_file_is_binary(self, tmp_path):
        plant(tmp_path, {"a": "hay\n"})

        found = await grep(RIPGREP, tmp_path, "needle")

        assert (found.elsewhere, found.skipped.binary) == ([], 0)

    async def test_a_second_look_goes_to_all_that_ripgrep_told_of(self, tmp_path, monkeypatch):
        monkeypatch.setattr(FallbackSearch, "_list_ignored", None)
        far = {
            "a/b/c/d/.ignore": "e\nf\ng\n",
            "a/b/c/d/e/x": "needle\n" * 2,
            "a/b/c/d/f": "needle\n",
        }
        plant(tmp_path, {**far, "a/b/c/d/g": b"needle\0\n"})

        found = await grep(RIPGREP, tmp_path, "needle")

        (look,) = found.elsewhere
        assert (look.reason, look.matches, look.files) == ("ignored", 3, 2)
        assert (look.example, look.is_complete) == (f"{tmp_path}/a/b/c/d/e/x", True)

    async def test_a_second_look_finds_what_ripgrep_cannot_tell_by_itself(self, tmp_path):
        plant(tmp_path, {".ignore": "*.log\n", os.fsdecode(b"a\xff.log"): "needle\n"})

        (look,) = (await grep(RIPGREP, tmp_path, "needle")).elsewhere

        assert (look.reason, look.files) == ("ignored", 1)


@pytest.mark.parametrize("small_tree", [0, 3_000])
@pytest.mark.parametrize("mode", ["files", "content"])
async def test_a_tree_with_much_to_tell_of_gets_the_same_answer_every_time(
    tmp_path, monkeypatch, small_tree, mode
):
    """The first time ripgrep is asked, and broken off once it has said too much."""
    monkeypatch.setattr(tree_scan, "SMALL_TREE", small_tree)
    plant(tmp_path, {**TREE, **{f"many/{number}.bin": b"\0" for number in range(600)}})
    search = LocalSearch()

    first, *others = [await grep(search, tmp_path, "hay", mode=mode) for _ in range(3)]

    assert [found.skipped for found in others] == [first.skipped] * 2
    assert first.skipped.binary == (602 if small_tree else None)
    assert sorted(names(first, tmp_path)) == (["c.py", "d.js"] if mode == "files" else [])


async def test_with_a_filter_binary_files_are_counted_only_among_few(tmp_path, monkeypatch):
    """Ripgrep would have something to tell of every single entry."""
    plant(tmp_path, TREE)
    assert (await grep(LocalSearch(), tmp_path, "hay", glob="*.py")).skipped.binary == 1

    monkeypatch.setattr(exclusion_probe, "MAX_FILTERED", 5)
    for query, ignored in (({"glob": "*.py"}, 1), ({"file_type": "py"}, 2)):
        skipped = (await grep(LocalSearch(), tmp_path, "hay", **query)).skipped
        assert (skipped.ignored, skipped.binary, skipped.links) == (ignored, None, 0)


class TestChangedTrees:
    """A change in what is skipped counts in the next search."""

    @pytest.fixture
    def root(self, tmp_path):
        return plant(tmp_path / "root", {**TREE, "deep/er/a": "hay\n"})

    async def counts(self, search, root, **query):
        skipped = (await grep(search, root, "hay", **query)).skipped
        return skipped.ignored, skipped.links

    @pytest.mark.parametrize(
        ("change", "ignored", "links"),
        [
            (lambda root: (root / "deep/er/link").symlink_to("a"), 3, 1),
            (lambda root: (root / "deep/b.log").write_text(""), 4, 0),
            (lambda root: (root / "new/dist").mkdir(parents=True), 4, 0),
            (lambda root: shutil.rmtree(root / "dist"), 2, 0),
            (lambda root: (root / ".gitignore").write_text("*.log\n"), 1, 0),
            (lambda root: (root / "deep/.ignore").write_text("er\n"), 4, 0),
            (lambda root: (root.parent / ".ignore").write_text("c.py\n"), 4, 0),
            (lambda root: (root.rename(root.parent / "old"), plant(root, {"a": ""})), 0, 0),
        ],
    )
    async def test_a_change_counts_at_once(self, search, root, change, ignored, links):
        await self.counts(search, root)

        change(root)

        assert await self.counts(search, root) == (ignored, links)

    async def test_it_may_grow_and_shrink(self, search, root, monkeypatch):
        monkeypatch.setattr(tree_scan, "SMALL_TREE", 200)
        many = {f"deep/er/{number}": "hay\n" for number in range(300)}
        assert await self.counts(search, root) == (3, 0)
        for _ in range(2):
            plant(root, many)
            assert await self.counts(search, root) == (3, None)
            shutil.rmtree(root / "deep/er")
            assert await self.counts(search, root) == (3, 0)

    async def test_out_of_time_does_not_mean_large(self, search, root, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(SearchDeadline, "is_over", lambda _: True)
            assert await self.counts(search, root) == (3, None)

        assert await self.counts(search, root) == (3, 0)

    async def test_another_question_is_another_walk(self, search, root):
        assert await self.counts(search, root) == (3, 0)
        assert await self.counts(search, root, file_type="py") == (2, 0)
        assert await self.counts(search, root, respect_ignore=False) == (0, 0)
        assert await self.counts(search, root) == (3, 0)

    async def test_the_second_look_goes_to_the_files_all_the_same(self, search, root):
        for _ in range(2):
            looks = (await grep(search, root, "needle")).elsewhere
            assert [(look.reason, look.files) for look in looks] == [("ignored", 4), ("binary", 1)]


@pytest.mark.parametrize("share", [0, 1000])
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"limit": 7},
        {"limit": 7, "offset": 100},
        {"limit": 9, "before": 1, "after": 1},
        {"limit": 5, "glob": "!d0"},
    ],
)
async def test_a_page_is_the_same_whichever_run_finds_it(tmp_path, monkeypatch, share, query):
    """All matches lie far behind in path order, and in no hurry."""
    files = {f"d{n % 5}/f{n}": "hay\n" * 30 for n in range(100)}
    plant(tmp_path, {**files, **{f"e/f{n}": "x\nneedle\ny\n" * 9 for n in range(30)}})
    whole = await grep(
        RIPGREP, tmp_path, "needle", mode="content", **{**query, "limit": None, "offset": 0}
    )
    begin = query.get("offset", 0)
    end = begin + query.get("limit", 250)

    monkeypatch.setattr(ripgrep, "GLANCE_S", 0)
    monkeypatch.setattr(ripgrep, "SORTED_SHARE", share)
    found = await grep(RIPGREP, tmp_path, "needle", mode="content", **query)

    assert lines(found, tmp_path) == lines(whole, tmp_path)[begin:end]
    assert found.has_more == (whole.shown_lines > end)
